package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// scrapeEvery is how often the Prometheus scrapes Tocsin.
const scrapeEvery = 5 * time.Second

// watch makes a Prometheus scrape an address for a time, and returns the address of the Prometheus.
func watch(ctx context.Context, target string, span time.Duration) (address string, stop func(), err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	own := listener.Addr().String()
	if err := listener.Close(); err != nil {
		return "", nil, err
	}
	dir, err := os.MkdirTemp("", "tocsin-dashboard")
	if err != nil {
		return "", nil, err
	}
	config := fmt.Sprintf("global: {scrape_interval: %s}\nscrape_configs: [{job_name: tocsin, static_configs: [{targets: [%q]}]}]\n", scrapeEvery, target)
	file := filepath.Join(dir, "prometheus.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return "", nil, err
	}
	cmd := exec.CommandContext(ctx, "prometheus", "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+own, "--log.level=warn")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return "", nil, fmt.Errorf("start Prometheus (put it in the PATH): %w", err)
	}
	stop = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = os.RemoveAll(dir)
	}
	select {
	case <-time.After(span):
		return "http://" + own, stop, nil
	case <-ctx.Done():
		stop()
		return "", nil, ctx.Err()
	}
}

// line is an answer to a query: its legend, and its values by time.
type line struct {
	labels map[string]string
	points []point
}

type point struct{ at, value float64 }

// asked returns the lines of a query over a time.
func asked(ctx context.Context, prometheus, query string, from, to time.Time) ([]line, error) {
	const steps = 120
	values := url.Values{
		"query": {query}, "start": {seconds(from)}, "end": {seconds(to)},
		"step": {strconv.FormatFloat(max(1, to.Sub(from).Seconds()/steps), 'f', 3, 64)},
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, prometheus+"/api/v1/query_range?"+values.Encode(), http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // read as far as it matters
	var answer struct {
		Error string `json:"error"`
		Data  struct {
			Result []struct {
				Metric map[string]string    `json:"metric"`
				Values [][2]json.RawMessage `json:"values"`
			} `json:"result"`
		} `json:"data"`
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return nil, fmt.Errorf("%s: %w", query, err)
	}
	if answer.Error != "" {
		return nil, fmt.Errorf("%s: %s", query, answer.Error)
	}
	var lines []line
	for _, r := range answer.Data.Result {
		l := line{labels: r.Metric}
		for _, pair := range r.Values {
			var text string
			var p point
			if err := json.Unmarshal(pair[0], &p.at); err != nil {
				return nil, fmt.Errorf("%s: %w", query, err)
			}
			if err := json.Unmarshal(pair[1], &text); err != nil {
				return nil, fmt.Errorf("%s: %w", query, err)
			}
			if p.value, err = strconv.ParseFloat(text, 64); err != nil {
				return nil, fmt.Errorf("%s: %w", query, err)
			}
			// A quantile without observations is not a number.
			if !math.IsNaN(p.value) {
				l.points = append(l.points, p)
			}
		}
		lines = append(lines, l)
	}
	return lines, nil
}

func seconds(at time.Time) string {
	return strconv.FormatFloat(float64(at.UnixMilli())/1000, 'f', 3, 64)
}
