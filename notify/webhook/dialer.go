package webhook

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"code.dny.dev/ssrf"
	"golang.org/x/net/http/httpproxy"
)

// Proxy is a forward proxy through which webhooks are called.
type Proxy struct {
	// URL is the URL of the proxy, http or https, optionally with user and password.
	URL string
	// Except lists targets that are called directly, like NO_PROXY: hosts, ".suffix" and networks,
	// each optionally with a port, separated by commas. Loopback is always called directly.
	Except string
	// Resolves leaves resolving the names of receivers to the proxy. Then the proxy must protect
	// private networks, because the guard cannot know what a name means there. Otherwise a name is
	// resolved and checked here, and the proxy is asked for the address.
	Resolves bool
}

// dialer opens connections. It checks every target when it is dialled, after its name was resolved,
// so that a name that resolves to another address by then does not help an attacker.
type dialer struct {
	guard  *ssrf.Guardian
	direct net.Dialer
	// toProxy is not guarded, because the administrator has configured the proxy.
	toProxy net.Dialer
	proxy   *url.URL
	// through returns the proxy for a URL; nil means none.
	through  func(*url.URL) (*url.URL, error)
	resolves bool
	tls      *tls.Config
}

const dialTimeout = 10 * time.Second

func newDialer(allowed []netip.Prefix, proxy Proxy, config *tls.Config) (*dialer, error) {
	var v4, v6 []netip.Prefix
	for _, p := range allowed {
		switch {
		case !p.IsValid():
			return nil, errors.New("webhook sender: an allowed network is not valid; write it as 10.0.0.0/8")
		case p.Addr().Is4():
			v4 = append(v4, p)
		default:
			v6 = append(v6, p)
		}
	}
	guard := ssrf.New(ssrf.WithAnyPort(), ssrf.WithAllowedV4Prefixes(v4...), ssrf.WithAllowedV6Prefixes(v6...))
	d := &dialer{
		guard:    guard,
		direct:   net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second, Control: guard.Safe},
		toProxy:  net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second},
		resolves: proxy.Resolves, tls: config,
	}
	if proxy.URL == "" {
		return d, nil
	}
	u, err := url.Parse(proxy.URL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || (u.Path != "" && u.Path != "/") {
		return nil, errors.New("TOCSIN_OUTGOING_PROXY must have the form http://proxy.example.com:3128")
	}
	d.proxy = u
	d.through = (&httpproxy.Config{HTTPProxy: proxy.URL, HTTPSProxy: proxy.URL, NoProxy: proxy.Except}).ProxyFunc()
	return d, nil
}

// dial opens a connection to a receiver, directly or through the proxy.
func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if d.proxy != nil {
		proxy, err := d.through(&url.URL{Scheme: "https", Host: address})
		if err != nil {
			return nil, fmt.Errorf("choose a proxy: %w", err)
		}
		if proxy != nil {
			conn, err := d.tunnel(ctx, address)
			if err != nil {
				return nil, err
			}
			return &counted{Conn: conn}, nil
		}
	}
	conn, err := d.direct.DialContext(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return &counted{Conn: conn}, nil
}

// allowed returns the address of a target that the guard allows.
func (d *dialer) allowed(ctx context.Context, address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("connect: %w", err)
	}
	if ip, err := netip.ParseAddr(host); err != nil && d.resolves {
		return address, nil
	} else if err == nil {
		return address, d.safe(ip, port)
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return "", fmt.Errorf("connect: %w", err)
	}
	refused := errors.New("connect: the name has no address; correct the host")
	for _, ip := range ips {
		if refused = d.safe(ip, port); refused == nil {
			return net.JoinHostPort(ip.Unmap().String(), port), nil
		}
	}
	return "", refused
}

func (d *dialer) safe(ip netip.Addr, port string) error {
	network := "tcp6"
	if ip.Is4() || ip.Is4In6() {
		network, ip = "tcp4", ip.Unmap()
	}
	return d.guard.Safe(network, net.JoinHostPort(ip.String(), port), nil)
}

// tunnel opens a connection to a receiver through the proxy.
func (d *dialer) tunnel(ctx context.Context, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	target, err := d.allowed(ctx, address)
	if err != nil {
		return nil, err
	}
	port := d.proxy.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[d.proxy.Scheme]
	}
	conn, err := d.toProxy.DialContext(ctx, "tcp", net.JoinHostPort(d.proxy.Hostname(), port))
	if err != nil {
		return nil, fmt.Errorf("connect to the proxy: %w", err)
	}
	if d.proxy.Scheme == "https" {
		config := d.tls.Clone()
		config.ServerName, config.NextProtos = d.proxy.Hostname(), []string{"http/1.1"}
		conn = tls.Client(conn, config)
	}
	in, err := d.ask(ctx, conn, target)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	if in.Buffered() > 0 {
		// A mail server greets first, and its greeting may arrive with the proxy's answer.
		return &readAhead{conn, in}, nil
	}
	return conn, nil
}

// readAhead is a connection whose beginning has already been read.
type readAhead struct {
	net.Conn
	in *bufio.Reader
}

func (c *readAhead) Read(p []byte) (int, error) { return c.in.Read(p) }

// ask asks the proxy for a connection to a target, and returns a reader for what follows.
func (d *dialer) ask(ctx context.Context, conn net.Conn, target string) (*bufio.Reader, error) {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: target}, Host: target, Header: http.Header{}}
	if user := d.proxy.User; user != nil {
		password, _ := user.Password()
		request.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password)))
	}
	if err := request.Write(conn); err != nil {
		return nil, fmt.Errorf("ask the proxy: %w", err)
	}
	in := bufio.NewReader(conn)
	answer, err := http.ReadResponse(in, request)
	if err != nil {
		return nil, fmt.Errorf("ask the proxy: %w", err)
	}
	_ = answer.Body.Close()
	switch {
	case answer.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the proxy does not connect to the receiver: it answered %d %s; allow the receiver in the proxy", answer.StatusCode, http.StatusText(answer.StatusCode))
	case !stop():
		return nil, ctx.Err()
	}
	return in, nil
}
