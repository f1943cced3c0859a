package receiver_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"tocsin/internal/bench/receiver"
)

func start(t *testing.T) receiver.Client {
	t.Helper()
	server := httptest.NewServer(receiver.New(time.Now))
	t.Cleanup(server.Close)
	return receiver.Client{Base: server.URL, HTTP: server.Client()}
}

func post(ctx context.Context, url, id, body string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	if id != "" {
		request.Header.Set("webhook-id", id)
	}
	got, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	return got.Body.Close()
}

func TestRepeatsAreReported(t *testing.T) {
	c := start(t)
	for _, id := range []string{"a", "b", "a", "", "a"} {
		if err := post(t.Context(), c.URL("one"), id, "{}"); err != nil {
			t.Fatal(err)
		}
	}
	got, err := c.Await(t.Context(), "one", 2, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if got.Distinct != 2 || got.Repeats != 2 || got.Unknown != 1 || got.FirstNS == 0 || got.LastNS < got.FirstNS {
		t.Errorf("%+v, want 2 different ones, 2 repeats, 1 unknown", got)
	}
	if other, err := c.Await(t.Context(), "two", 0, 0); err != nil || other != (receiver.Count{}) {
		t.Errorf("another book holds %+v, %v", other, err)
	}
	if err := c.Forget(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	if again, err := c.Await(t.Context(), "one", 0, 0); err != nil || again != (receiver.Count{}) {
		t.Errorf("a forgotten book holds %+v, %v", again, err)
	}
}

func TestExchangesTellMessagesApart(t *testing.T) {
	c := start(t)
	for i, body := range []string{
		`{"data":{"exchange":{"executionId":"x-1","route":"r"}}}`,
		`{"alerts":[{"labels":{"executionId":"x-2"}}]}`,
		`{"data":{"exchange":{"executionId":"x-1"}}}`,
		`{"executionId":"cut`, `{}`,
	} {
		if err := post(t.Context(), c.ExecutionURL("one"), fmt.Sprint(i), body); err != nil {
			t.Fatal(err)
		}
	}
	count, err := c.Await(t.Context(), "one", 0, 0)
	if err != nil || count.Distinct != 2 || count.Repeats != 1 || count.Unknown != 2 {
		t.Errorf("%+v, %v; want 2 exchanges, 1 repeat, 2 unknown", count, err)
	}
	came, err := c.Arrivals(t.Context(), "one")
	if err != nil || len(came) != 2 || came["x-1"] != count.FirstNS || came["x-2"] != count.LastNS {
		t.Errorf("arrivals %v, %v; want those of x-1 and x-2, as in %+v", came, err, count)
	}
	sample, err := c.Sample(t.Context(), "one")
	if err != nil || sample == nil || !strings.Contains(string(sample.Body), "x-1") || sample.Header.Get("webhook-id") != "0" {
		t.Errorf("sample %+v, %v; want the first message", sample, err)
	}
}

// TestAwaitSeesTheLast lets many come at once while somebody waits for the last.
func TestAwaitSeesTheLast(t *testing.T) {
	c := start(t)
	const count = 300
	var all sync.WaitGroup
	for sender := range 10 {
		all.Go(func() {
			for i := range count / 10 {
				if err := post(t.Context(), c.URL("one"), fmt.Sprint(sender, "-", i), "{}"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	got, err := c.Await(t.Context(), "one", count, time.Minute)
	if err != nil || got.Distinct != count {
		t.Errorf("%+v, %v; want %d", got, err, count)
	}
	all.Wait()
	if got, err := c.Await(t.Context(), "one", count+1, 10*time.Millisecond); err != nil || got.Distinct != count {
		t.Errorf("%+v, %v; want the answer after its time", got, err)
	}
}

func TestHangingNeverAnswers(t *testing.T) {
	c := start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := post(ctx, c.HangURL(), "a", "{}"); err == nil {
		t.Error("it answered")
	}
}
