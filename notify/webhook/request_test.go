package webhook_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"tocsin/notify"
	"tocsin/notify/webhook"
)

const (
	secretA = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
	secretB = "whsec_YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXphYmNkZWY="
)

func TestRequest(t *testing.T) {
	var got *http.Request
	var body []byte
	server := receiver(t, func(_ http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
	})
	s := newSender(t)
	d := delivery(strings.Replace(server.URL, "http://", "http://user:pass@", 1)+"/hook?x=1", func(d *notify.Delivery) {
		d.Webhook.SigningSecret = secretA + " " + secretB
		d.Webhook.Headers = map[string]string{
			"X-Team": "erp", "Host": "evil.example", "content-length": "1", "Webhook-Id": "forged", "user-agent": "x",
			"Transfer-Encoding": "chunked", "Connection": "close",
		}
	})
	if o := send(t, s, d); o.Verdict != notify.VerdictDelivered || o.Duration <= 0 {
		t.Fatalf("outcome %+v", o)
	}
	if got.Method != http.MethodPost || got.URL.String() != "/hook?x=1" || string(body) != `{"a":1}` {
		t.Errorf("%s %s %s", got.Method, got.URL, body)
	}
	if user, password, _ := got.BasicAuth(); user != "user" || password != "pass" {
		t.Errorf("credentials %q, %q", user, password)
	}
	if got.Host != strings.TrimPrefix(server.URL, "http://") || got.ContentLength != 7 || len(got.TransferEncoding) > 0 {
		t.Errorf("host %q, length %d, encoding %v", got.Host, got.ContentLength, got.TransferEncoding)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/json", "User-Agent": "tocsin/1.2.3", "X-Team": "erp",
		"Webhook-Id": "ab000000-0000-0000-0000-000000000001", "Connection": "",
	} {
		if value := got.Header.Get(name); value != want {
			t.Errorf("%s: %q, want %q", name, value, want)
		}
	}
	for _, secret := range []string{secretA, secretB} {
		verifier, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			t.Fatal(err)
		}
		if err := verifier.Verify(body, got.Header); err != nil {
			t.Error(err)
		}
		if verifier.Verify([]byte("{}"), got.Header) == nil {
			t.Error("another body was verified")
		}
	}
}

func TestAttemptsShareTheirID(t *testing.T) {
	var heads []http.Header
	server := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		heads = append(heads, r.Header)
		w.WriteHeader(http.StatusInternalServerError)
	})
	now := instant()
	s := newSender(t, func(o *webhook.Options) { o.Now = func() time.Time { return now } })
	for range 2 {
		_ = send(t, s, delivery(server.URL))
		now = now.Add(time.Minute)
	}
	if a, b := heads[0].Get("Webhook-Id"), heads[1].Get("Webhook-Id"); a != b || a == "" {
		t.Errorf("webhook-id %q, then %q", a, b)
	}
	if a, b := heads[0].Get("Webhook-Timestamp"), heads[1].Get("Webhook-Timestamp"); a != "1795244523" || b != "1795244583" {
		t.Errorf("webhook-timestamp %q, then %q", a, b)
	}
	if heads[0].Get("Webhook-Signature") != "" {
		t.Error("a signature without secret")
	}
}

// TestASignatureIsVerifiedByHand does what docs/webhooks.md describes for receivers without a
// library.
func TestASignatureIsVerifiedByHand(t *testing.T) {
	var head http.Header
	var body []byte
	server := receiver(t, func(_ http.ResponseWriter, r *http.Request) {
		head = r.Header
		body, _ = io.ReadAll(r.Body)
	})
	send(t, newSender(t), delivery(server.URL, func(d *notify.Delivery) {
		d.Webhook.SigningSecret, d.Webhook.FormerSecret, d.Webhook.FormerSecretUntil = secretA, secretB, time.Now().Add(time.Hour)
	}))
	signatures := strings.Split(head.Get("webhook-signature"), " ")
	if len(signatures) != 2 {
		t.Fatalf("signatures %q, want that of the new secret and that of the former one", signatures)
	}
	for i, secret := range []string{secretA, secretB} {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		if err != nil {
			t.Fatal(err)
		}
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(head.Get("webhook-id") + "." + head.Get("webhook-timestamp") + "."))
		mac.Write(body)
		if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); signatures[i] != want {
			t.Errorf("signature %q, want %q", signatures[i], want)
		}
	}
}

// A message that cannot be signed is not sent at all.
func TestUnreadableSecret(t *testing.T) {
	server := receiver(t, func(http.ResponseWriter, *http.Request) { t.Error("an unsigned request was sent") })
	o := send(t, newSender(t), delivery(server.URL, func(d *notify.Delivery) { d.Webhook.SigningSecret = "whsec_%%%" }))
	if o.Verdict != notify.VerdictRefused || !o.NothingSent || !strings.Contains(o.Error, "rotate") {
		t.Errorf("outcome %+v", o)
	}
}

func TestNoSecretIsShown(t *testing.T) {
	const token, header, password = "XXsecretTOKEN/with+slash", "Bearer abc123def456", "hunter2hunter2"
	pieces := []string{"XXsecretTOKEN", "with+slash", "abc123def456", password, "T0123ABCD", "querysecret", "MDEyMzQ1Njc4OTAx"}
	secure := func(d *notify.Delivery) {
		d.Webhook.SigningSecret = secretA
		d.Webhook.Headers = map[string]string{"Authorization": header}
	}
	path := "/services/T0123ABCD/" + token + "?key=querysecretquerysecret"
	full := func(base string) string { return strings.Replace(base, "://", "://user:"+password+"@", 1) + path }
	var echoed atomicString
	echo := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		text := r.URL.String() + "\n" + strings.ReplaceAll(r.URL.String(), "/", `\/`) + "\n" + r.Header.Get("Authorization") + "\n" +
			secretA + "\n" + password + "\n" + strings.Repeat("x", 3800) + r.URL.String() + r.URL.String()
		echoed.set(text)
		w.Header().Set("X-Echo", r.URL.String())
		w.Header().Set("Set-Cookie", "session="+token)
		w.Header().Set("Location", "http://"+r.Host+r.URL.String())
		w.WriteHeader(http.StatusFound)
		_, _ = io.WriteString(w, text)
	})
	word := receiver(t, answer(404, nil, "querysecretquerysecret"))
	for name, c := range map[string]struct {
		url    string
		change func(*notify.Delivery)
	}{
		"echoed":          {full(echo.URL), secure},
		"echoed as word":  {full(word.URL), func(d *notify.Delivery) { secure(d); slackKind(d) }},
		"refused":         {full("http://127.0.0.1:1"), secure},
		"unknown host":    {full("http://no-such-host.invalid"), secure},
		"not TLS":         {full(strings.Replace(echo.URL, "http:", "https:", 1)), secure},
		"unreadable":      {full("http://[::1") + "%zz", secure},
		"other scheme":    {full("ftp://x.example"), secure},
		"header with LF":  {full(echo.URL), func(d *notify.Delivery) { secure(d); d.Webhook.Headers["X-Bad"] = "abc123def456\nx" }},
		"secret unusable": {full(echo.URL), func(d *notify.Delivery) { secure(d); d.Webhook.SigningSecret = "whsec_MDEyMzQ1Njc4OTAx%" }},
		"guarded":         {full("http://169.254.169.254"), secure},
	} {
		t.Run(name, func(t *testing.T) {
			o := send(t, newSender(t), delivery(c.url, c.change))
			shown := fmt.Sprintf("%+v", o)
			for _, piece := range pieces {
				if strings.Contains(shown, piece) {
					t.Errorf("%q is shown in %s", piece, shown)
				}
			}
			if o.Error == "" {
				t.Errorf("no error: %s", shown)
			}
		})
	}
	if !strings.Contains(echoed.get(), "T0123ABCD") {
		t.Error("the receiver never saw what it should send back")
	}
}
