//go:build unix

package torture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"tocsin/cmd/devstack/internal/netport"
	"tocsin/cmd/devstack/internal/proc"
	"tocsin/cmd/devstack/internal/taillog"
)

// clickHouse is an engine in a process of its own.
type clickHouse struct {
	self, library, dataDir string
	port                   int
	log                    *taillog.Writer
	client                 *http.Client

	mu     sync.Mutex
	child  *proc.Child
	tether *os.File
}

func startClickHouse(ctx context.Context, self, library, dir, name string) (*clickHouse, error) {
	log, err := os.Create(filepath.Join(dir, name+".log"))
	if err != nil {
		return nil, err
	}
	c := &clickHouse{
		self: self, library: library, dataDir: filepath.Join(dir, name), log: taillog.New(log),
		client: &http.Client{Timeout: 10 * time.Second},
	}
	if c.port, err = netport.Free(0); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c, c.launch(ctx)
}

func (c *clickHouse) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(c.port)) }

func (c *clickHouse) launch(ctx context.Context) error {
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	child, err := proc.Start(proc.Options{
		Path:  c.self,
		Args:  []string{"clickhouse", "--library", c.library, "--data", c.dataDir, "--listen", c.address(), "--tether"},
		Stdin: read, Stdout: c.log, Stderr: c.log,
	})
	_ = read.Close()
	if err != nil {
		return errors.Join(err, write.Close())
	}
	c.child, c.tether = child, write
	for pause(ctx.Done(), 50*time.Millisecond) {
		select {
		case <-child.Done():
			return fmt.Errorf("ClickHouse ended before it was ready%s", c.log.Suffix())
		default:
		}
		if answer, err := c.client.Get("http://" + c.address() + "/ping"); err == nil { //nolint:noctx // the client has a timeout
			_ = answer.Body.Close()
			return nil
		}
	}
	return ctx.Err()
}

// crash kills the engine and starts it again after a while.
func (c *clickHouse) crash(ctx context.Context, down time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.end(ctx); err != nil {
		return err
	}
	pause(ctx.Done(), down)
	return c.launch(ctx)
}

func (c *clickHouse) end(ctx context.Context, steps ...proc.Step) error {
	return errors.Join(c.child.Stop(ctx, steps...), c.tether.Close())
}

func (c *clickHouse) stop(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.client.CloseIdleConnections()
	return c.end(ctx, proc.Step{Signal: syscall.SIGTERM, Wait: 10 * time.Second})
}

// do runs a statement, with the data of an INSERT, and returns the answer.
func (c *clickHouse) do(ctx context.Context, statement string, data []byte) (string, error) {
	target := "http://" + c.address() + "/?query=" + url.QueryEscape(statement)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(data))
	if err != nil {
		return "", err
	}
	answer, err := c.client.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close() //nolint:errcheck // read to its end below
	said, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("ClickHouse: %s: %.500s", answer.Status, said)
	}
	return string(said), err
}
