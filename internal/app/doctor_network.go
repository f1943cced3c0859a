package app

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"code.dny.dev/ssrf"
	"github.com/google/uuid"

	"tocsin/internal/clickhouse"
	"tocsin/internal/seal"
	"tocsin/notify/preset"
	"tocsin/notify/webhook"
)

// mostReceivers is how many receivers are tried.
const mostReceivers = 50

// keys tries to open what is sealed of each webhook.
func (d *examination) keys(ctx context.Context) {
	if d.db == nil {
		return
	}
	opened, sealed, err := d.openWebhooks(ctx)
	switch {
	case err != nil:
		d.failed("keys", err, "")
	case sealed > 0:
		d.add(clickhouse.Broken, "keys", fmt.Sprintf("the secrets of %d of %d webhooks do not open: the key that they were sealed with is not configured", sealed, opened+sealed),
			"add the former key to TOCSIN_ENCRYPTION_KEY after a comma, or enter the secrets of these webhooks again")
	default:
		d.add(clickhouse.OK, "keys", fmt.Sprintf("the secrets of all %d webhooks open", opened), "")
	}
}

func (d *examination) openWebhooks(ctx context.Context) (opened, sealed int, err error) {
	box, err := seal.New(d.EncryptionKey)
	if err != nil {
		return 0, 0, err
	}
	conn, err := d.connect(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer closeConn(ctx, conn)
	rows, err := conn.Query(ctx,
		// A schema before receivers has no such column.
		`select webhook_id, secrets, enabled, coalesce(to_jsonb(w)->>'preset', '') from webhook w where deleted_at is null`)
	if err != nil {
		return 0, 0, fmt.Errorf("read webhooks: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var id uuid.UUID
		var secrets []byte
		var enabled bool
		var of string
		if err := rows.Scan(&id, &secrets, &enabled, &of); err != nil {
			return 0, 0, fmt.Errorf("read webhooks: %w", err)
		}
		plain, err := box.Open(secrets, "webhook/"+id.String())
		if err != nil {
			sealed++
			continue
		}
		opened++
		var target struct {
			URL    string            `json:"url"`
			Inputs map[string]string `json:"inputs"`
		}
		if json.Unmarshal(plain, &target) != nil || !enabled {
			continue
		}
		if of != "" {
			target.URL = d.presetURL(of, target.Inputs)
		}
		if of == "" || target.URL != "" {
			d.receivers = append(d.receivers, target.URL)
		}
	}
	if err := rows.Err(); err != nil {
		return 0, 0, fmt.Errorf("read webhooks: %w", err)
	}
	return opened, sealed, nil
}

// presetURL returns where the messages for a preset's receiver go, "" where that is not known.
func (d *examination) presetURL(id string, inputs map[string]string) string {
	set, err := preset.Load(d.Receivers...)
	if err != nil {
		d.failed("receivers", err, "correct the file, or take it out of TOCSIN_RECEIVERS; tocsin receivers check tells more")
		return ""
	}
	p := set.Get(id)
	if p == nil {
		d.add(clickhouse.Broken, "receivers", "a webhook is for the receiver "+id+", which is not here", "name its file in TOCSIN_RECEIVERS; its messages wait")
		return ""
	}
	to, err := p.Target(preset.Fired, "", inputs)
	if err != nil {
		return ""
	}
	return to.URL.String()
}

// bus sends a wake-up for nothing. Through Postgres it is also heard.
func (d *examination) bus(ctx context.Context) {
	if d.db == nil {
		return
	}
	a := &App{options: d.Options, replica: "doctor"}
	driver, err := a.busDriver(d.db, d.Bus.Name)
	if err != nil {
		d.failed("wake-up bus", err, "")
		return
	}
	defer a.lifecycle.close(ctx) //nolint:errcheck // nothing is pending on it
	if d.Bus.Provider == BusPostgres {
		subscription, err := driver.Subscribe(ctx)
		if err == nil {
			subscription.Close(ctx)
		}
		d.judgeBus(err)
		return
	}
	d.judgeBus(driver.Publish(ctx, []byte(`{"notifications":0}`)))
}

func (d *examination) judgeBus(err error) {
	if err != nil {
		d.add(clickhouse.Broken, "wake-up bus", fmt.Sprintf("%s: %v", d.Bus.Provider, err), "check TOCSIN_BUS and TOCSIN_BUS_URL; without the bus messages and rules wait until they are polled")
		return
	}
	d.add(clickhouse.OK, "wake-up bus", string(d.Bus.Provider), "")
}

// egress connects to the receivers of the enabled webhooks, and sends nothing.
func (d *examination) egress(ctx context.Context) {
	targets := map[string]bool{}
	for _, receiver := range d.receivers {
		if receiver == "" { // A bot, which posts to Slack's API.
			receiver = d.slackAPI()
		}
		if u, err := url.Parse(receiver); err == nil && u.Host != "" {
			targets[u.Scheme+"://"+hostPort(u)] = true
		}
	}
	if len(targets) == 0 {
		targets["https://hooks.slack.com:443"] = true
	}
	list := slices.Sorted(func(yield func(string) bool) {
		for t := range targets {
			if !yield(t) {
				return
			}
		}
	})
	left := max(0, len(list)-mostReceivers)
	list = list[:len(list)-left]
	guard := d.guard()
	errs := make([]error, len(list))
	var group sync.WaitGroup
	for i, target := range list {
		group.Go(func() { errs[i] = reach(ctx, guard, target) })
	}
	group.Wait()
	for i, target := range list {
		if errs[i] == nil {
			d.add(clickhouse.OK, "egress", target+" can be reached", "")
			continue
		}
		remedy := "open the way out for this machine: DNS, routes, firewall"
		switch {
		case errors.Is(errs[i], ssrf.ErrProhibitedIP) || errors.Is(errs[i], ssrf.ErrProhibitedNetwork):
			remedy = "its address is not public: name its network in TOCSIN_OUTGOING_ALLOW if it may be called"
		case isCertificate(errs[i]):
			remedy = "give this machine the certificate of the authority that signed the receiver's, in SSL_CERT_FILE or SSL_CERT_DIR"
		}
		d.add(clickhouse.Warn, "egress", fmt.Sprintf("%s cannot be reached: %v", target, errs[i]), remedy)
	}
	if left > 0 {
		d.add(clickhouse.Warn, "egress", fmt.Sprintf("%d more receivers were not tried", left), "")
	}
}

func (d *examination) slackAPI() string {
	if d.SlackAPIURL != "" {
		return d.SlackAPIURL
	}
	return webhook.DefaultSlackAPI
}

// guard refuses the addresses that deliveries refuse.
func (d *examination) guard() *ssrf.Guardian {
	var v4, v6 []netip.Prefix
	for _, p := range d.OutgoingAllow {
		if p.Addr().Is4() {
			v4 = append(v4, p)
		} else {
			v6 = append(v6, p)
		}
	}
	return ssrf.New(ssrf.WithAnyPort(), ssrf.WithAllowedV4Prefixes(v4...), ssrf.WithAllowedV6Prefixes(v6...))
}

// reach connects to scheme://host:port.
func reach(ctx context.Context, guard *ssrf.Guardian, target string) error {
	const bound = 5 * time.Second
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	scheme, address, _ := strings.Cut(target, "://")
	dialer := &net.Dialer{Control: guard.Safe}
	dial := dialer.DialContext
	if scheme == "https" || scheme == "smtps" {
		dial = (&tls.Dialer{NetDialer: dialer}).DialContext
	}
	conn, err := dial(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}

func hostPort(u *url.URL) string {
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "https":
		port = "443"
	default:
		port = "80"
	}
	return net.JoinHostPort(u.Hostname(), port)
}

func isCertificate(err error) bool {
	_, ok := errors.AsType[*tls.CertificateVerificationError](err)
	return ok
}
