package api_test

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tocsin/api"
)

// sinceTen knows that three alerts changed after the event 10, and very many after 1.
type sinceTen struct{}

func (sinceTen) ChangedSince(_ context.Context, _, fingerprint string, limit int64) (int64, bool, error) {
	switch {
	case strings.HasPrefix(fingerprint, "10-"):
		return 3, true, nil
	case strings.HasPrefix(fingerprint, "1-"):
		return limit, true, nil
	}
	return 0, false, nil
}

func TestReturningPageGetsWhatItMissed(t *testing.T) {
	b := newBench(t, func(o *api.Options) { o.InboxInterval, o.Missed = 5*time.Millisecond, sinceTen{} })
	b.beat.set("13-0")
	address := b.serve()
	const counts = `"counts":{"acknowledged":0,"firing":1,"pending":0,"resolved":0}`
	for last, missed := range map[string]string{"10-0": `,"missed":{"alerts":3,"more":false}`, "1-9": `,"missed":{"alerts":1000,"more":true}`, "": "", "odd": ""} {
		p := b.open(address, last)
		p.want(began)
		p.want("id: 13-0|event: alerts|data: {" + counts + missed + "}")
	}
	b.beat.set("14-0")
	p := b.open(address, "13-0")
	p.want(began)
	if got := p.next(); !strings.HasPrefix(got, "id: 14-0|") {
		t.Errorf("the stream says %q", got)
	}
}

// TestAThousandPages opens a thousand streams over real connections and sends all of them several
// changes.
func TestAThousandPages(t *testing.T) {
	const pages, changes = 1000, 10
	b := newBench(t, func(o *api.Options) { o.InboxInterval = 20 * time.Millisecond })
	b.beat.set("0")
	address := b.serveWithin(time.Minute)
	// Both ends of the connections are in this process.
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 0}}
	t.Cleanup(client.CloseIdleConnections)
	before, goroutines := inUse(), runtime.NumGoroutine()
	var waiting, ended sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	seen := make([]chan string, pages)
	for i := range pages {
		seen[i] = make(chan string, changes+1)
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/api/v1/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if answer.StatusCode != http.StatusOK {
			t.Fatalf("page %d: status %d", i, answer.StatusCode)
		}
		ended.Go(func() {
			defer answer.Body.Close() //nolint:errcheck // the stream is cut off
			follow(answer.Body, seen[i])
		})
	}
	refused, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/api/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := client.Do(refused); err != nil || answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("page %d: %v, %v", pages+1, answer, err)
	} else {
		_ = answer.Body.Close()
	}
	await := func(id string) {
		for i := range pages {
			waiting.Go(func() {
				for got := range seen[i] {
					if got == id {
						return
					}
				}
				t.Errorf("page %d was never notified of %s", i, id)
			})
		}
		waiting.Wait()
	}
	await("0")
	opened := inUse()
	used := processorTime(t)
	for n := 1; n <= changes; n++ {
		b.beat.set(fmt.Sprint(n))
		await(fmt.Sprint(n))
	}
	used = processorTime(t) - used
	perPage := (opened - before) / pages
	t.Logf("%d pages: %d KiB each (both ends), %d goroutines each, %v of processor time for each event and page (both ends)",
		pages, perPage>>10, (runtime.NumGoroutine()-goroutines)/pages, (used / changes / pages).Round(time.Microsecond))
	if perPage > 256<<10 {
		t.Errorf("a page takes %d KiB", perPage>>10)
	}
	cancel()
	ended.Wait()
}

// follow sends the ids of a stream to a channel until the stream ends.
func follow(stream interface{ Read([]byte) (int, error) }, ids chan<- string) {
	defer close(ids)
	buffer := make([]byte, 4096)
	rest := ""
	for {
		n, err := stream.Read(buffer)
		rest += string(buffer[:n])
		for {
			line, after, whole := strings.Cut(rest, "\n")
			if !whole {
				break
			}
			rest = after
			if id, found := strings.CutPrefix(line, "id: "); found {
				ids <- id
			}
		}
		if err != nil {
			return
		}
	}
}

// inUse returns the memory of heap and stacks.
func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
