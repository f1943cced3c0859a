package webhook_test

import (
	"context"
	"encoding/binary"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"tocsin/notify"
	"tocsin/notify/webhook"
)

func guarded(t *testing.T, allowed ...string) *webhook.Sender {
	t.Helper()
	return newSender(t, func(o *webhook.Options) {
		o.AllowedNetworks = nil
		for _, network := range allowed {
			o.AllowedNetworks = append(o.AllowedNetworks, netip.MustParsePrefix(network))
		}
	})
}

func wantRefusal(t *testing.T, o notify.Outcome) {
	t.Helper()
	if o.Verdict != notify.VerdictRetry || !o.NothingSent || !strings.Contains(o.Error, "not public") || !strings.Contains(o.Error, "TOCSIN_OUTGOING_ALLOW") {
		t.Errorf("outcome %+v, want the guard's refusal", o)
	}
}

func TestEveryKindOfAddressIsGuarded(t *testing.T) {
	for kind, hosts := range map[string][]string{
		"loopback":       {"127.0.0.1", "127.255.255.254", "[::1]", "[0:0:0:0:0:0:0:1]"},
		"private":        {"10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.0.1", "[fc00::1]", "[fd12:3456::1]"},
		"link-local":     {"169.254.0.1", "[fe80::1]", "[fe80::1%25lo]", "[febf::1]"},
		"metadata":       {"169.254.169.254", "[fd00:ec2::254]", "[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]"},
		"shared":         {"100.64.0.1", "100.127.255.255"},
		"multicast":      {"224.0.0.1", "239.255.255.255", "[ff02::1]", "[ff0e::1]"},
		"unspecified":    {"0.0.0.0", "0.1.2.3", "[::]"},
		"broadcast":      {"255.255.255.255", "240.0.0.1"},
		"documentation":  {"192.0.2.1", "198.51.100.1", "203.0.113.1", "[2001:db8::1]", "[3fff::1]"},
		"benchmarks":     {"198.18.0.1", "198.19.255.255"},
		"protocols":      {"192.0.0.1", "192.88.99.1", "[2001::1]"},
		"IPv4-mapped":    {"[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::ffff:10.0.0.1]"},
		"IPv4-compat":    {"[::127.0.0.1]", "[::10.0.0.1]"},
		"NAT64":          {"[64:ff9b::127.0.0.1]", "[64:ff9b::a00:1]", "[64:ff9b:1::1]"},
		"6to4":           {"[2002:7f00:1::]", "[2002:a00:1::1]"},
		"Teredo":         {"[2001:0:7f00:1::]"},
		"site-local":     {"[fec0::1]"},
		"with a zone":    {"[::1%25lo]", "[ff02::1%25lo]"},
		"discard prefix": {"[100::1]"},
	} {
		for _, host := range hosts {
			t.Run(kind+" "+host, func(t *testing.T) {
				wantRefusal(t, send(t, guarded(t), delivery("http://"+host+":9/")))
			})
		}
	}
}

// Spellings that some resolvers read as an address either do not resolve, or are checked by the
// guard.
func TestOddSpellingsOfAddresses(t *testing.T) {
	var calls atomic.Int32
	server := receiver(t, func(http.ResponseWriter, *http.Request) { calls.Add(1) })
	_, port, _ := strings.Cut(strings.TrimPrefix(server.URL, "http://"), ":")
	for _, host := range []string{
		"2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1", "017700000001", "127.1", "127.0.1", "127.0.0.1.", "localhost", "LOCALHOST.", "127。0。0。1",
		"①②⑦.0.0.1", "%31%32%37.0.0.1", "user@127.0.0.1", "example.com@127.0.0.1", "[::ffff:0x7f.0.0.1]", "[0:0:0:0:0:ffff:127.0.0.1]",
	} {
		t.Run(host, func(t *testing.T) {
			if o := send(t, guarded(t), delivery("http://"+host+":"+port+"/")); o.Verdict == notify.VerdictDelivered || !o.NothingSent {
				t.Errorf("outcome %+v", o)
			}
		})
	}
	if calls.Load() > 0 {
		t.Errorf("the receiver on loopback was called %d times", calls.Load())
	}
}

func TestAllowedNetworks(t *testing.T) {
	v4 := receiver(t, answer(200, nil, ""))
	if o := send(t, guarded(t, "127.0.0.0/8"), delivery(v4.URL)); o.Verdict != notify.VerdictDelivered {
		t.Errorf("of an allowed network: %+v", o)
	}
	wantRefusal(t, send(t, guarded(t, "127.0.0.2/32"), delivery(v4.URL)))
	wantRefusal(t, send(t, guarded(t, "10.0.0.0/8", "::1/128"), delivery(v4.URL)))
	// An IPv4 network does not allow its addresses in IPv6 notation.
	wantRefusal(t, send(t, guarded(t, "127.0.0.0/8"), delivery("http://[64:ff9b::7f00:1]:9/")))
	wantRefusal(t, send(t, guarded(t, "127.0.0.0/8"), delivery("http://[::1]:9/")))

	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "[::1]:0")
	if err != nil {
		t.Log("this machine has no IPv6:", err)
		return
	}
	v6 := httptest.NewUnstartedServer(answer(200, nil, ""))
	_ = v6.Listener.Close()
	v6.Listener = listener
	v6.Start()
	t.Cleanup(v6.Close)
	if o := send(t, guarded(t, "::1/128"), delivery(v6.URL)); o.Verdict != notify.VerdictDelivered {
		t.Errorf("of an allowed IPv6 network: %+v", o)
	}
	wantRefusal(t, send(t, guarded(t, "fd00::/8"), delivery(v6.URL)))
}

// The address that is dialled decides, at each attempt: a name that resolved to an allowed address
// before may now resolve to this machine.
func TestRebindingIsGuarded(t *testing.T) {
	address := resolver(t)
	var inner atomic.Int32
	server := receiver(t, func(w http.ResponseWriter, _ *http.Request) {
		inner.Add(1)
		w.Header().Set("Connection", "close")
	})
	target, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	allowed, loopback := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.53")
	d := delivery("http://rebinding.example:" + target.Port() + "/")
	s := guarded(t, "127.0.0.1/32")
	address.Store(&allowed)
	if o := send(t, s, d); o.Verdict != notify.VerdictDelivered {
		t.Fatalf("before: %+v", o)
	}
	address.Store(&loopback)
	wantRefusal(t, send(t, s, d))
	if inner.Load() != 1 {
		t.Errorf("called %d times", inner.Load())
	}
}

// TestRebindingIsGuardedThroughAProxy has a name, called through a proxy, that resolves to the
// private network: the proxy is given the address that was checked, and no other.
func TestRebindingIsGuardedThroughAProxy(t *testing.T) {
	address, f := resolver(t), newForward(t)
	f.refuses.Store(true)
	s := newSender(t, func(o *webhook.Options) { o.Proxy = webhook.Proxy{URL: f.url} })
	d := delivery("https://rebinding.example:8443/")
	public, private := netip.MustParseAddr("93.184.216.34"), netip.MustParseAddr("10.1.2.3")
	for range 2 {
		address.Store(&public)
		if o := send(t, s, d); o.Verdict != notify.VerdictRetry || !strings.Contains(o.Error, "403 Forbidden") {
			t.Errorf("of a public address: %+v, want that the proxy refuses", o)
		}
		if asked := f.was(); !strings.HasPrefix(asked, "CONNECT 93.184.216.34:8443 ") {
			t.Errorf("the proxy was asked %q, want the address that was checked", asked)
		}
		address.Store(&private)
		wantRefusal(t, send(t, s, d))
		if asked := f.was(); asked != "" {
			t.Errorf("the proxy was asked %q after the guard's refusal", asked)
		}
	}
}

// resolver makes all names resolve to the stored address.
func resolver(t *testing.T) *atomic.Pointer[netip.Addr] {
	t.Helper()
	address := new(atomic.Pointer[netip.Addr])
	dns := nameServer(t, address)
	former := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", dns)
	}}
	t.Cleanup(func() { net.DefaultResolver = former })
	return address
}

// nameServer answers each query for an IPv4 address with the stored one, and every other with none.
func nameServer(t *testing.T, address *atomic.Pointer[netip.Addr]) string {
	t.Helper()
	var config net.ListenConfig
	conn, err := config.ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for question := make([]byte, 1500); ; {
			n, from, err := conn.ReadFrom(question)
			if err != nil {
				return
			}
			end := 12
			for end < n && question[end] != 0 {
				end += int(question[end]) + 1
			}
			end += 5
			if end > n {
				continue
			}
			reply := append([]byte(nil), question[:end]...)
			binary.BigEndian.PutUint16(reply[2:], 0x8180) // an answer, without error
			clear(reply[6:12])
			if binary.BigEndian.Uint16(question[end-4:]) == 1 { // type A
				reply[7] = 1
				reply = append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
				reply = append(reply, address.Load().AsSlice()...)
			}
			_, _ = conn.WriteTo(reply, from)
		}
	}()
	t.Cleanup(func() { _ = conn.Close(); <-done })
	return conn.LocalAddr().String()
}

// The target of a redirect is never called, whatever its status.
func TestRedirectsIntoTheMachineAreNotFollowed(t *testing.T) {
	var calls atomic.Int32
	inner := receiver(t, func(http.ResponseWriter, *http.Request) { calls.Add(1) })
	for _, status := range []int{300, 301, 302, 303, 305, 307, 308} {
		front := receiver(t, answer(status, map[string]string{"Location": inner.URL}, ""))
		if o := send(t, newSender(t), delivery(front.URL)); o.Verdict != notify.VerdictRefused || o.StatusCode != status {
			t.Errorf("%d: %+v", status, o)
		}
	}
	if calls.Load() > 0 {
		t.Errorf("followed %d times", calls.Load())
	}
}
