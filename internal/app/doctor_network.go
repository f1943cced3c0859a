package app

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"sync"
	"time"

	"code.dny.dev/ssrf"
	"github.com/google/uuid"

	"tocsin/internal/clickhouse"
	"tocsin/internal/seal"
	"tocsin/notify/preset"
	"tocsin/notify/webhook"
)

// mostReceivers is how many receivers are tested.
const mostReceivers = 50

// keys tries to decrypt the secrets of each webhook.
func (d *examination) keys(ctx context.Context) {
	if d.db == nil {
		return
	}
	d.lacking = map[string]int{}
	opened, sealed, err := d.openWebhooks(ctx)
	for _, id := range slices.Sorted(maps.Keys(d.lacking)) {
		d.add(clickhouse.Broken, "receivers", fmt.Sprintf("enabled webhooks for the receiver %s, whose file this machine does not have: %d; their messages wait", id, d.lacking[id]), "name its file in TOCSIN_RECEIVERS")
	}
	switch {
	case err != nil:
		d.failed("keys", err, remedyPostgres)
	case sealed > 0:
		d.add(clickhouse.Broken, "keys", fmt.Sprintf("the secrets of %d of %d webhooks cannot be decrypted: their key is not configured", sealed, opened+sealed),
			"add the former key to TOCSIN_ENCRYPTION_KEY after a comma, or enter the secrets of these webhooks again")
	default:
		d.add(clickhouse.OK, "keys", fmt.Sprintf("the secrets of all %d webhooks can be decrypted", opened), "")
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
		// A schema older than receivers has no such column.
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

// presetURL returns where messages for a preset's receiver are sent; "" if unknown.
func (d *examination) presetURL(id string, inputs map[string]string) string {
	set, err := preset.Load(d.Receivers...)
	if err != nil {
		d.failed("receivers", err, "correct the file, or remove it from TOCSIN_RECEIVERS; tocsin receivers check shows details")
		return ""
	}
	p := set.Get(id)
	if p == nil {
		d.lacking[id]++
		return ""
	}
	to, err := p.Target(preset.Fired, preset.About{}, inputs)
	if err != nil {
		return ""
	}
	return to.URL.String()
}

// bus sends a wake-up without an effect. With Postgres, it also checks that the wake-up arrives.
func (d *examination) bus(ctx context.Context) {
	if d.db == nil {
		return
	}
	a := &App{options: d.Options, replica: "doctor"}
	driver, err := a.busDriver(d.db, d.Bus.Name)
	if err != nil {
		d.failed("wake-up bus", err, remedyBus)
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

// remedyBus is the remedy for an error of the bus that has none of its own.
const remedyBus = "check TOCSIN_BUS and TOCSIN_BUS_URL"

func (d *examination) judgeBus(err error) {
	if err != nil {
		text, remedy := apart(err.Error())
		d.add(clickhouse.Broken, "wake-up bus",
			fmt.Sprintf("%s: %s; without the bus, messages wait for up to TOCSIN_POLL_INTERVAL", d.Bus.Provider, text), cmp.Or(remedy, remedyBus))
		return
	}
	d.add(clickhouse.OK, "wake-up bus", string(d.Bus.Provider), "")
}

// egress connects to the receivers of the enabled webhooks in the same way as deliveries, and sends
// nothing.
func (d *examination) egress(ctx context.Context) {
	sender, err := webhook.New(webhook.Options{Now: time.Now, AllowedNetworks: d.OutgoingAllow, RootCAs: d.OutgoingCAs, Proxy: d.OutgoingProxy})
	if err != nil {
		d.failed("egress", err, "correct TOCSIN_OUTGOING_ALLOW, TOCSIN_OUTGOING_CA and TOCSIN_OUTGOING_PROXY")
		return
	}
	defer sender.Close()
	targets := map[string]*url.URL{}
	for _, receiver := range d.receivers {
		if receiver == "" { // A bot, which posts to Slack's API.
			receiver = d.slackAPI()
		}
		if u, err := url.Parse(receiver); err == nil && u.Host != "" {
			targets[shown(u)] = u
		}
	}
	if len(targets) == 0 {
		targets["https://hooks.slack.com:443"] = &url.URL{Scheme: "https", Host: "hooks.slack.com"}
	}
	list := slices.Sorted(maps.Keys(targets))
	left := max(0, len(list)-mostReceivers)
	list = list[:len(list)-left]
	errs := make([]error, len(list))
	var group sync.WaitGroup
	for i, target := range list {
		group.Go(func() {
			const bound = 5 * time.Second
			ctx, cancel := context.WithTimeout(ctx, bound)
			defer cancel()
			errs[i] = sender.Reach(ctx, targets[target])
		})
	}
	group.Wait()
	for i, target := range list {
		if errs[i] == nil {
			d.add(clickhouse.OK, "egress", target+" can be reached", "")
			continue
		}
		d.add(clickhouse.Warn, "egress", fmt.Sprintf("%s cannot be reached: %v", target, errs[i]), d.wayOut(errs[i]))
	}
	if left > 0 {
		d.add(clickhouse.Warn, "egress", fmt.Sprintf("%d more receivers were not tried: only %d are tried", left, mostReceivers), "look at the page Webhooks, which shows the receivers that are not responding")
	}
}

// wayOut returns the remedy for a receiver that cannot be reached.
func (d *examination) wayOut(err error) string {
	switch {
	case errors.Is(err, ssrf.ErrProhibitedIP) || errors.Is(err, ssrf.ErrProhibitedNetwork):
		return "its address is not public; if it may be called, name its network in TOCSIN_OUTGOING_ALLOW"
	case isCertificate(err):
		return "name a file with the certificate of the receiver's authority in TOCSIN_OUTGOING_CA"
	case d.OutgoingProxy.URL != "":
		return "check TOCSIN_OUTGOING_PROXY and allow the receiver at the proxy, or exclude it with TOCSIN_OUTGOING_NO_PROXY"
	default:
		return "let this machine reach it (DNS, routes, firewall), or name the proxy in TOCSIN_OUTGOING_PROXY"
	}
}

func (d *examination) slackAPI() string {
	if d.SlackAPIURL != "" {
		return d.SlackAPIURL
	}
	return webhook.DefaultSlackAPI
}

// shown is scheme://host:port of a URL, whose path may be a secret.
func shown(u *url.URL) string {
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "https":
		port = "443"
	default:
		port = "80"
	}
	return u.Scheme + "://" + net.JoinHostPort(u.Hostname(), port)
}

func isCertificate(err error) bool {
	_, ok := errors.AsType[*tls.CertificateVerificationError](err)
	return ok
}
