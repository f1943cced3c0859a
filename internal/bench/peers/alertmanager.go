package peers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"tocsin/internal/bench/child"
)

// Alertmanager is a running Alertmanager that sends one message for each alert.
type Alertmanager struct {
	*child.Process
	base, dir string
	client    *http.Client
}

// FindAlertmanager returns the path of Alertmanager on this machine, and its version; "" if there
// is none.
func FindAlertmanager(ctx context.Context) (path, version string) {
	for _, name := range []string{"prometheus-alertmanager", "alertmanager"} {
		if found, err := exec.LookPath(name); err == nil {
			said, _ := exec.CommandContext(ctx, found, "--version").CombinedOutput()
			first, _, _ := strings.Cut(string(said), "\n")
			return found, strings.TrimSpace(first)
		}
	}
	return "", ""
}

// configuration makes each alert a group of its own, notified at once and only once.
const configuration = `
route:
  receiver: bench
  group_by: ['...']
  group_wait: 0s
  group_interval: 1h
  repeat_interval: 24h
receivers:
  - name: bench
    webhook_configs:
      - url: %q
        send_resolved: false
        max_alerts: 1
`

// StartAlertmanager starts an Alertmanager with an empty store, in memory and without peers, that
// sends to a URL.
func StartAlertmanager(ctx context.Context, path, target string) (_ *Alertmanager, err error) {
	dir, err := os.MkdirTemp("", "tocsin-bench-alertmanager-")
	if err != nil {
		return nil, err
	}
	a := &Alertmanager{dir: dir, client: &http.Client{Timeout: time.Minute}}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	config := filepath.Join(dir, "alertmanager.yml")
	if err := os.WriteFile(config, fmt.Appendf(nil, configuration, target), 0o600); err != nil {
		return nil, err
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	a.base = "http://127.0.0.1:" + strconv.Itoa(port)
	a.Process, err = child.Start(child.Options{Path: path, Args: []string{
		"--config.file=" + config, "--storage.path=" + dir, "--web.listen-address=127.0.0.1:" + strconv.Itoa(port),
		"--cluster.listen-address=", "--log.level=error",
	}})
	if err != nil {
		return nil, err
	}
	return a, a.awaitReady(ctx)
}

func (a *Alertmanager) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		if err := a.call(ctx, http.MethodGet, "/-/ready", nil); err == nil {
			return nil
		}
		select {
		case <-a.Ended():
			return fmt.Errorf("Alertmanager ended: %s", a.Said())
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("Alertmanager is not ready: %s", a.Said()), a.End())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Alerts sends alerts, one for each execution id.
func (a *Alertmanager) Alerts(ctx context.Context, ids ...string) error {
	var body bytes.Buffer
	body.WriteByte('[')
	for i, id := range ids {
		if i > 0 {
			body.WriteByte(',')
		}
		fmt.Fprintf(&body, `{"labels":{"alertname":"failed","executionId":%q,"application":"orders","route":"order-to-erp","environment":"production","severity":"critical"},`+
			`"annotations":{"summary":"orders failed","description":"ERP refused the order: 503 Service Unavailable"}}`, id)
	}
	body.WriteByte(']')
	return a.call(ctx, http.MethodPost, "/api/v2/alerts", &body)
}

func (a *Alertmanager) call(ctx context.Context, method, path string, body io.Reader) error {
	request, err := http.NewRequestWithContext(ctx, method, a.base+path, body)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	got, err := a.client.Do(request)
	if err != nil {
		return err
	}
	said, err := io.ReadAll(got.Body)
	err = errors.Join(err, got.Body.Close())
	if err == nil && got.StatusCode != http.StatusOK {
		err = fmt.Errorf("Alertmanager answers %s: %.300s", got.Status, said)
	}
	return err
}

// End stops it and removes its files.
func (a *Alertmanager) End() error {
	a.client.CloseIdleConnections()
	return errors.Join(a.Stop(10*time.Second), os.RemoveAll(a.dir))
}

// freePort returns a port that is free at the moment.
func freePort(ctx context.Context) (int, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port := listener.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // it listens on TCP
	return port, listener.Close()
}
