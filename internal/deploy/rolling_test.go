package deploy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// messages counts what a receiver gets: the ids of its messages by exchange.
type messages struct {
	mutex sync.Mutex
	ids   map[string][]string
}

func (m *messages) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	var body struct {
		Data struct {
			Exchange struct {
				ExecutionID string `json:"executionId"`
			} `json:"exchange"`
		} `json:"data"`
	}
	_ = json.NewDecoder(r.Body).Decode(&body)
	m.mutex.Lock()
	defer m.mutex.Unlock()
	id := body.Data.Exchange.ExecutionID
	m.ids[id] = append(m.ids[id], r.Header.Get("Webhook-Id"))
}

func (m *messages) exchanges() int {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return len(m.ids)
}

// post sends a body and returns the decoded response, if it is JSON.
func post(ctx context.Context, address string, body []byte) (answer map[string]any, err error) {
	return call(ctx, http.MethodPost, address, body)
}

func get(ctx context.Context, address string) (answer map[string]any, err error) {
	return call(ctx, http.MethodGet, address, nil)
}

func call(ctx context.Context, method, address string, body []byte) (answer map[string]any, err error) {
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // read to its end
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= http.StatusBadRequest {
		return nil, fmt.Errorf("%s: %s: %s, %w", address, response.Status, text, err)
	}
	_ = json.Unmarshal(text, &answer)
	return answer, nil
}

// replica is a running server.
type replica struct {
	address string
	process *exec.Cmd
	log     *bytes.Buffer
}

func startReplica(t *testing.T, more ...string) *replica {
	t.Helper()
	postgres, _ := servers(t)
	r := &replica{address: freeAddress(t), log: &bytes.Buffer{}}
	settings := []string{"TOCSIN_LISTEN=" + r.address, "TOCSIN_ACCESS=open", "TOCSIN_OUTGOING_ALLOW=127.0.0.0/8", "TOCSIN_SHUTDOWN_DELAY=1s"}
	settings = append(settings, more...)
	r.process = tocsin(t, postgres.String(), settings, "serve")
	r.process.Stderr = r.log
	if err := r.process.Start(); err != nil {
		t.Fatal(err)
	}
	// After a failure nothing continues.
	t.Cleanup(func() { _ = r.process.Process.Kill() })
	until(t, "a replica", func(context.Context) error { return tocsin(t, postgres.String(), settings, "healthcheck").Run() })
	return r
}

// stop stops a replica as Kubernetes does.
func (r *replica) stop(t *testing.T) {
	t.Helper()
	if err := r.process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := r.process.Wait(); err != nil {
		t.Errorf("a replica ended with %v:\n%s", err, r.log)
	}
}

// TestARollingUpdateLosesNothing replaces two replicas one by one, as the chart does, while
// exchanges fail all the time. Each has one message at the end.
func TestARollingUpdateLosesNothing(t *testing.T) {
	postgres, clickhouse := servers(t)
	makeTable(t)
	says(t, true, "", tocsin(t, postgres.String(), nil, "migrate"))
	got := &messages{ids: map[string][]string{}}
	receiver := httptest.NewServer(got)
	t.Cleanup(receiver.Close)
	replicas := []*replica{startReplica(t), startReplica(t)}

	api := "http://" + replicas[0].address + "/api/v1"
	name := "rolling " + freeAddress(t)
	hook, err := post(t.Context(), api+"/webhooks", fmt.Appendf(nil, `{"name": %q, "kind": "generic", "url": %q}`, name, receiver.URL))
	if err != nil {
		t.Fatal(err)
	}
	_, err = post(t.Context(), api+"/rules", fmt.Appendf(nil, `{"name": %q, "fireMode": "PER_EXCHANGE", "severity": "INFO",
		"scope": {"applications": [%q]}, "filter": {"statuses": ["FAILED"]}, "webhookIds": [%q]}`, name, name, hook["id"]))
	if err != nil {
		t.Fatal(err)
	}

	failing, stop := context.WithCancel(t.Context())
	var inserted int
	var insertErr error
	var inserting sync.WaitGroup
	inserting.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for failing.Err() == nil {
			// They have just ended, and began up to two seconds ago: some are behind the cursor.
			statement := fmt.Sprintf(`INSERT INTO exchanges (tenant_id, start_time, execution_id, environment, application_id, route_id, status, end_time)
				SELECT 'default', now64(9) - rand(number) %% 2000 / 1000, concat('%s ', toString(%d + number)), 'test', '%s', 'r', 'FAILED', now64(9) FROM numbers(10)`, name, inserted, name)
			if _, insertErr = post(t.Context(), strings.TrimSuffix(clickhouse, "/default"), []byte(statement)); insertErr != nil { //nolint:contextcheck // what is under way is finished
				return
			}
			inserted += 10
			<-tick.C
		}
	})
	for i, old := range replicas {
		replicas[i] = startReplica(t)
		old.stop(t)
	}
	stop()
	inserting.Wait()
	if insertErr != nil || inserted < 50 {
		t.Fatalf("%d exchanges failed: %v", inserted, insertErr)
	}
	until(t, "messages", func(context.Context) error {
		if n := got.exchanges(); n != inserted {
			return fmt.Errorf("%d of %d exchanges have a message", n, inserted)
		}
		return nil
	})
	for _, r := range replicas {
		r.stop(t)
	}
	for id, messages := range got.ids {
		if len(messages) != 1 {
			t.Errorf("the exchange %s has the messages %v", id, messages)
		}
	}
	t.Logf("%d exchanges failed during the update, and each has one message", inserted)
}

// insertFailure writes one exchange that fails now.
func insertFailure(ctx context.Context, clickhouse, application string) error {
	return insertFailureOf(ctx, clickhouse, application, application)
}

func insertFailureOf(ctx context.Context, clickhouse, application, id string) error {
	statement := fmt.Sprintf(`INSERT INTO exchanges (tenant_id, start_time, execution_id, environment, application_id, route_id, status, end_time)
		VALUES ('default', now64(9), '%s', 'test', '%s', 'r', 'FAILED', now64(9))`, id, application)
	_, err := post(ctx, strings.TrimSuffix(clickhouse, "/default"), []byte(statement))
	return err
}
