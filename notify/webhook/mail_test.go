package webhook_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/http"
	"net/http/httptest"
	netmail "net/mail"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"tocsin/internal/mailtest"
	"tocsin/notify"
	"tocsin/notify/preset"
	"tocsin/notify/template"
	"tocsin/notify/webhook"
)

const mailPassword = "correct-horse-battery"

// post is a mail server on this machine, with a sender to it.
type post struct {
	server   *mailtest.Server
	renderer *webhook.Renderer
	sender   *webhook.Sender
	webhook  notify.Webhook
	// roots trust the server.
	roots *x509.CertPool
}

// newPost starts a mail server that requires a password.
func newPost(t *testing.T) *post {
	t.Helper()
	set, err := preset.Load()
	if err != nil {
		t.Fatal(err)
	}
	secure := httptest.NewUnstartedServer(nil)
	secure.StartTLS()
	defer secure.Close()
	roots := x509.NewCertPool()
	roots.AddCert(secure.Certificate())
	server, err := mailtest.New(mailtest.Options{
		TLS: &tls.Config{Certificates: secure.TLS.Certificates, MinVersion: tls.VersionTLS12}, User: "tocsin", Password: mailPassword,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	renderer, err := webhook.NewRenderer(webhook.RendererOptions{PublicURL: "https://tocsin.example.com", Presets: set})
	if err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(server.Address)
	if err != nil {
		t.Fatal(err)
	}
	p := &post{roots: roots, server: server, renderer: renderer, sender: newSender(t, func(o *webhook.Options) { o.Presets, o.RootCAs = set, roots })}
	p.webhook = notify.Webhook{ID: uuid.UUID{2}, Kind: notify.KindGeneric, Preset: "email", Timeout: time.Minute, Inputs: map[string]string{
		"host": host, "port": port, "user": "tocsin", "password": mailPassword, "from": "Tocsin <alerts@example.com>", "to": "kim@example.com, ann@example.com",
	}}
	if fields := webhook.CheckPreset(set, &p.webhook); len(fields) > 0 {
		t.Fatal(fields)
	}
	return p
}

// write renders a message about an alert.
func (p *post) write(t interface{ Fatal(...any) }, reason notify.Reason, change ...func(*notify.Delivery)) *notify.Delivery {
	d := &notify.Delivery{NotificationID: uuid.UUID{1}, Reason: reason, Attempt: 1, Alert: template.Samples()[0], Webhook: p.webhook, At: instant()}
	if reason != notify.ReasonFired {
		d.NotificationID = uuid.UUID{1, 15: byte(len(reason))}
	}
	if reason.IsEvent() {
		d.Event = &notify.Event{At: instant(), By: "Kim"}
	}
	for _, f := range change {
		f(d)
	}
	body, problem := p.renderer.Render(d)
	if problem != nil {
		t.Fatal(problem)
	}
	d.Body = &body
	return d
}

// read returns the headers of a message, its text and its HTML.
func read(t interface{ Fatal(...any) }, content []byte) (head netmail.Header, text, html string) {
	m, err := netmail.ReadMessage(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	_, parameters, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	parts := multipart.NewReader(m.Body, parameters["boundary"])
	var texts [2]string
	for i := range texts {
		part, err := parts.NextRawPart()
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := io.ReadAll(quotedprintable.NewReader(part))
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = strings.ReplaceAll(string(decoded), "\r\n", "\n")
	}
	return m.Header, texts[0], texts[1]
}

// TestMailsAnAlertsLife checks that the messages are one conversation, sent through a server that
// requires TLS and a password.
func TestMailsAnAlertsLife(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	reasons, words := []notify.Reason{notify.ReasonFired, notify.ReasonEscalated, notify.ReasonAcknowledged, notify.ReasonResolved}, []string{"Fired", "Escalated", "Acknowledged", "Resolved"}
	for _, reason := range reasons {
		d := p.write(t, reason)
		if o := p.sender.Send(t.Context(), d); o.Verdict != notify.VerdictDelivered || o.StatusCode != 250 || o.Duration <= 0 {
			t.Fatalf("%s: %+v", reason, o)
		}
		head := p.sender.Head(d)
		got := p.server.Messages()
		sent := got[len(got)-1]
		digest := sha256.Sum256(bytes.TrimSuffix(sent.Content, []byte("\r\n")))
		whole := sha256.Sum256(sent.Content)
		if head.Method != "SMTP" || head.Host != p.server.Address || head.BodySHA256 != hex.EncodeToString(digest[:]) && head.BodySHA256 != hex.EncodeToString(whole[:]) {
			t.Errorf("described as %+v", head)
		}
	}
	alert := template.Samples()[0]
	about, ids := "<"+alert.ID.String()+"@example.com>", map[string]bool{}
	for i, m := range p.server.Messages() {
		head, text, html := read(t, m.Content)
		if !m.Encrypted || !m.SignedIn || head.Get("References") != about || head.Get("In-Reply-To") != about || head.Get("To") != "<kim@example.com>, <ann@example.com>" {
			t.Errorf("%+v %v", m, head)
		}
		ids[head.Get("Message-Id")] = true
		word := words[i]
		if !strings.HasPrefix(text, word+": ") || !strings.Contains(html, ">"+word+" · ") || !strings.Contains(html, "https://tocsin.example.com/inbox/"+alert.ID.String()) {
			t.Errorf("%s\n%s", text, html)
		}
	}
	if len(ids) != len(reasons) {
		t.Errorf("ids %v", ids)
	}
}

// TestARepeatIsRecognizable: a message whose answer was lost is sent again with the same id and the
// same bytes.
func TestARepeatIsRecognizable(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	p.server.Say(mailtest.Data, mailtest.Answer{})
	d := p.write(t, notify.ReasonFired)
	o := p.sender.Send(t.Context(), d)
	if o.Verdict != notify.VerdictRetry || o.NothingSent || o.StatusCode != 0 || !o.Unanswered() {
		t.Fatalf("%+v", o)
	}
	if o = p.sender.Send(t.Context(), d); o.Verdict != notify.VerdictDelivered {
		t.Fatalf("%+v", o)
	}
	got := p.server.Messages()
	if len(got) != 2 || !bytes.Equal(got[0].Content, got[1].Content) {
		t.Errorf("%d messages, or other bytes", len(got))
	}
	d.Generation = 1
	if o = p.sender.Send(t.Context(), d); o.Verdict != notify.VerdictDelivered {
		t.Fatalf("%+v", o)
	}
	head, _, _ := read(t, p.server.Messages()[2].Content)
	if id := head.Get("Message-Id"); id != "<"+d.NotificationID.String()+"-r1@example.com>" {
		t.Error(id)
	}
}

// TestMailIsSentToWhoHasNotGotIt sends it to recipients who do not have it, by the addresses that
// the webhook has now.
func TestMailIsSentToWhoHasNotGotIt(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	p.server.Say(mailtest.Recipient+"ann@example.com", mailtest.Answer{Code: 452, Text: "4.2.2 mailbox full"})
	d := p.write(t, notify.ReasonFired)
	o := p.sender.Send(t.Context(), d)
	if o.Verdict != notify.VerdictRetry || len(o.Reached) != 1 || o.Unanswered() {
		t.Fatalf("%+v", o)
	}
	d.Reached = o.Reached
	if o = p.sender.Send(t.Context(), d); o.Verdict != notify.VerdictDelivered {
		t.Fatalf("%+v", o)
	}
	got := p.server.Messages()
	if len(got) != 2 || strings.Join(got[0].To, " ") != "kim@example.com" || strings.Join(got[1].To, " ") != "ann@example.com" {
		t.Errorf("%+v", got)
	}
}

// TestMailIsGuarded: if a mail server may not be called, nothing is sent to it; what is stopped or
// times out before the message has delivered nothing.
func TestMailIsGuarded(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	d := p.write(t, notify.ReasonFired)
	set, err := preset.Load()
	if err != nil {
		t.Fatal(err)
	}
	guarded := newSender(t, func(o *webhook.Options) { o.Presets, o.AllowedNetworks = set, nil })
	for _, host := range []string{"127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "::ffff:127.0.0.1", "localhost"} {
		d.Webhook.Inputs["host"] = host
		wantRefusal(t, guarded.Send(t.Context(), d))
	}
	d.Webhook.Inputs["host"] = "127.0.0.1"
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if o := p.sender.Send(stopped, d); o.Verdict != notify.VerdictRetry || !o.NothingSent {
		t.Errorf("stopped before it began: %+v", o)
	}
	if got := p.server.Messages(); len(got) != 0 {
		t.Errorf("delivered %d", len(got))
	}
	d.Body.Content = []byte(`{"type":"alert.fired","data":{}}`)
	if o := p.sender.Send(t.Context(), d); o.Verdict != notify.VerdictRefused || !o.NothingSent {
		t.Errorf("a body that is no e-mail: %+v", o)
	}
}

// TestMailsHostileExchanges: whatever an exchange contains, the message has the same headers,
// reaches only the recipients, and shows the exchange's texts as text.
func TestMailsHostileExchanges(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	piece := rapid.SampledFrom([]string{
		"order 4711 ", "\r\n", "\n", "\r", "\r\nBcc: evil@example.com\r\n", "\r\n.\r\n", "\r\nRCPT TO:<evil@example.com>\r\n", "=?utf-8?q?=0D=0ABcc:_evil@example.com?=", "<script>", "\"><img src=x>",
		"{{alert.title}}", "\x00", "\u202e", "\u2028", "ü", "😀", "\xff", strings.Repeat("long ", 400), "</pre>", "&lt;", "'", "--",
	})
	text := rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(piece, 0, 8).Draw(t, "pieces"), "") })
	rapid.Check(t, func(rt *rapid.T) {
		d := p.write(rt, notify.ReasonFired, func(d *notify.Delivery) {
			a := &d.Alert
			a.Title, a.Message, a.RuleName, a.About.Owner = text.Draw(rt, "title"), text.Draw(rt, "message"), text.Draw(rt, "rule"), text.Draw(rt, "owner")
			a.Exchange.Route, a.Exchange.ErrorStack, a.Exchange.ExecutionID = text.Draw(rt, "route"), text.Draw(rt, "stack"), text.Draw(rt, "execution")
		})
		if o := p.sender.Send(t.Context(), d); o.Verdict != notify.VerdictDelivered {
			rt.Fatalf("%+v", o)
		}
		got := p.server.Messages()
		m := got[len(got)-1]
		head, _, html := read(rt, m.Content)
		if len(head) != 13 || strings.Join(m.To, " ") != "kim@example.com ann@example.com" || m.From != "alerts@example.com" {
			rt.Fatalf("%v to %v", head, m.To)
		}
		lower := strings.ToLower(html)
		if strings.Contains(lower, "<script") || strings.Contains(lower, "<img") || strings.Count(lower, "</pre>") > 1 || strings.Count(lower, "</html>") != 1 {
			rt.Fatal(html)
		}
	})
}

// TestNothingKeptOfAnEMailShowsASecret: neither the password nor a command that contained it,
// wherever the server repeats it.
func TestNothingKeptOfAnEMailShowsASecret(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	d := p.write(t, notify.ReasonFired)
	if strings.Contains(string(d.Body.Content), mailPassword) {
		t.Fatal("the stored body holds the password")
	}
	forms := []string{
		mailPassword, base64.StdEncoding.EncodeToString([]byte(mailPassword)), base64.StdEncoding.EncodeToString([]byte("\x00tocsin\x00" + mailPassword)),
	}
	rapid.Check(t, func(rt *rapid.T) {
		form := rapid.SampledFrom(forms).Draw(rt, "form")
		step := rapid.SampledFrom([]string{mailtest.Auth, mailtest.Mail, mailtest.Recipient, mailtest.Data}).Draw(rt, "step")
		code := rapid.SampledFrom([]int{421, 450, 454, 535, 550, 554}).Draw(rt, "code")
		word := rapid.StringMatching(`[A-Za-z0-9 .]{0,20}`)
		p.server.Say(step, mailtest.Answer{Code: code, Text: "5.0.0 " + word.Draw(rt, "before") + form + word.Draw(rt, "after")})
		o := p.sender.Send(t.Context(), d)
		if o.Verdict == notify.VerdictDelivered && step != mailtest.Recipient {
			rt.Fatalf("%s was not answered as specified: %+v", step, o)
		}
		kept, err := json.Marshal(map[string]any{"outcome": o, "head": p.sender.Head(d)})
		if err != nil {
			rt.Fatal(err)
		}
		shown := string(kept) + fmt.Sprintf("%+v", o)
		for _, secret := range forms {
			if strings.Contains(shown, secret) {
				rt.Fatalf("%q is kept in %s", secret, shown)
			}
		}
		if o.Error != "" && !strings.Contains(shown, "[redacted]") {
			rt.Fatalf("the server did not repeat it; this shows nothing: %s", shown)
		}
	})
}

// TestCheckMail rejects settings that make no sense for e-mail.
func TestCheckMail(t *testing.T) {
	t.Parallel()
	set, err := preset.Load()
	if err != nil {
		t.Fatal(err)
	}
	for field, change := range map[string]func(*notify.Webhook){
		"headers":           func(w *notify.Webhook) { w.Headers = map[string]string{"X": "y"} },
		"clientCertificate": func(w *notify.Webhook) { w.ClientCertificate = "x" },
		"preset.inputs.to":  func(w *notify.Webhook) { w.Inputs["to"] = "nobody" },
	} {
		w := notify.Webhook{Kind: notify.KindGeneric, Preset: "email", Inputs: map[string]string{"host": "smtp.example.com", "from": "a@example.com", "to": "b@example.com"}}
		if fields := webhook.CheckPreset(set, &w); len(fields) > 0 {
			t.Fatal(fields)
		}
		change(&w)
		if fields := webhook.CheckPreset(set, &w); len(fields) != 1 || fields[0].Field != field {
			t.Errorf("%s: %v", field, fields)
		}
	}
}

// TestMailThroughAProxy has a mail server's greeting that arrives together with the proxy's
// response.
func TestMailThroughAProxy(t *testing.T) {
	p := newPost(t)
	url := raw(t, func(conn net.Conn) {
		in := bufio.NewReader(conn)
		if _, err := http.ReadRequest(in); err != nil {
			return
		}
		var dialer net.Dialer
		target, err := dialer.DialContext(context.WithoutCancel(t.Context()), "tcp", p.server.Address)
		if err != nil {
			return
		}
		greeting := make([]byte, 1024)
		n, _ := target.Read(greeting)
		_, _ = conn.Write(append([]byte("HTTP/1.1 200 OK\r\n\r\n"), greeting[:n]...))
		done := make(chan struct{})
		go func() { _, _ = io.Copy(conn, target); _ = conn.Close(); close(done) }()
		_, _ = io.Copy(target, in)
		_ = target.Close()
		<-done
	})
	set, err := preset.Load()
	if err != nil {
		t.Fatal(err)
	}
	s := newSender(t, func(o *webhook.Options) {
		o.Presets, o.RootCAs, o.Proxy = set, p.roots, webhook.Proxy{URL: url, Resolves: true}
	})
	// The certificate of httptest is valid for this name.
	p.webhook.Inputs["host"] = "example.com"
	if o := s.Send(t.Context(), p.write(t, notify.ReasonFired)); o.Verdict != notify.VerdictDelivered || len(p.server.Messages()) != 1 {
		t.Errorf("%+v, %d messages", o, len(p.server.Messages()))
	}
}
