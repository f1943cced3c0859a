package receiver_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"tocsin/internal/bench/receiver"
)

func TestHostsAnswerOverTLS(t *testing.T) {
	server, at, err := receiver.Serve(t.Context(), receiver.New(time.Now), 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(at.Authority)) {
		t.Fatal("the authority is no certificate")
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}}
	c := receiver.Client{Base: at.Base, Hosts: at.Hosts, HTTP: http.DefaultClient}
	if c.FarURL(0, "b") == c.FarURL(1, "b") || c.FarURL(0, "b") != c.FarURL(2, "b") {
		t.Errorf("hosts %v are not taken in turn", at.Hosts)
	}
	// Of so many, some are answered with an error; they are sent until they are taken.
	const messages = 40
	refused := 0
	for n := range messages {
		for taken := false; !taken; {
			body := strings.NewReader(fmt.Sprintf(`{"executionId":"e-%d"}`, n))
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.FarURL(n, "book"), body)
			if err != nil {
				t.Fatal(err)
			}
			got, err := client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			if err := got.Body.Close(); err != nil {
				t.Fatal(err)
			}
			if taken = got.StatusCode == http.StatusOK; !taken {
				refused++
			}
			if got.ProtoMajor != 2 {
				t.Fatalf("answered by %s, want HTTP/2", got.Proto)
			}
		}
	}
	count, err := c.Await(t.Context(), "book", messages, time.Minute)
	if err != nil || count.Distinct != messages || count.Repeats != 0 || count.Unknown != 0 {
		t.Errorf("%+v, %v: want each of %d once", count, err, messages)
	}
	failed, err := c.Failed(t.Context(), "book")
	if err != nil || len(failed) > refused || (refused > 0) != (len(failed) > 0) {
		t.Errorf("failed %v, %v, after %d errors", failed, err, refused)
	}
}

func TestLatencyIsThatOfFarReceivers(t *testing.T) {
	drawn := make([]time.Duration, 10_000)
	for i := range drawn {
		drawn[i] = receiver.Latency()
	}
	slices.Sort(drawn)
	if least, most := drawn[0], drawn[len(drawn)-1]; least < 20*time.Millisecond || most > 500*time.Millisecond {
		t.Errorf("from %v to %v, want 20 to 500 ms", least, most)
	}
	// The median of so many lies within a millisecond; twenty times that never fails by chance.
	if median := drawn[len(drawn)/2]; median < 85*time.Millisecond || median > 115*time.Millisecond {
		t.Errorf("median %v, want 100 ms", median)
	}
	if p95 := drawn[len(drawn)*95/100]; p95 < 270*time.Millisecond {
		t.Errorf("p95 %v: there is no long tail", p95)
	}
}
