package webhook

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"tocsin/notify"
	"tocsin/notify/email"
	"tocsin/notify/preset"
	"tocsin/rules"
)

// maxMailError is longer than other errors, because it names recipients.
const maxMailError = 2000

// mailTimeout is the least timeout of an attempt by e-mail. Mail servers may take long to answer,
// and a message whose attempt is given up then arrives twice.
const mailTimeout = time.Minute

// mailTestTimeout is the same for a test, because a person waits for the result.
const mailTestTimeout = 30 * time.Second

// mail makes one attempt to deliver a message by e-mail.
func (s *Sender) mail(parent context.Context, t *target, p *preset.Preset, d *notify.Delivery, at time.Time) (o notify.Outcome) {
	began := s.now()
	defer func() { o.Duration = max(s.now().Sub(began), 0) }()
	to, message, err := s.mailMessage(p, d, at)
	if err != nil {
		return refused(t, err)
	}
	content, err := message.Bytes()
	if err != nil {
		return refused(t, err)
	}
	timeout := max(timeoutOf(&d.Webhook), mailTimeout)
	if d.Test {
		timeout = max(timeoutOf(&d.Webhook), mailTestTimeout)
	}
	ctx, cancel := context.WithTimeout(parent, timeout)
	defer cancel()
	server := email.Server{
		Host: to.Host, Address: to.Address(), TLS: to.Security == preset.SecurityTLS, StartTLS: to.Security == preset.SecurityStartTLS,
		Config: s.tls, User: to.User, Password: to.Password, Dial: s.dialer.dial, CheckClaim: d.CheckClaim,
	}
	o, err = server.Send(ctx, to.From, to.To, d.Reached, content)
	if err != nil {
		if errors.Is(err, notify.ErrFenced) {
			return stopped(err)
		}
		verdict, why := unanswered(parent, ctx, err, o.NothingSent, timeout)
		return notify.Outcome{Verdict: verdict, NothingSent: o.NothingSent, Error: t.secrets.redact(why)}
	}
	o.Error, o.Response = t.secrets.line(o.Error, maxMailError), t.secrets.line(o.Response, maxResponse)
	return o
}

// mailMessage returns the e-mail of a delivery, and where it is sent. Its content is the frozen
// body; sender, recipients and server are those of the present webhook.
func (s *Sender) mailMessage(p *preset.Preset, d *notify.Delivery, at time.Time) (preset.Mail, *email.Message, error) {
	if d.Body == nil {
		return preset.Mail{}, nil, errors.New("there is no body to send")
	}
	to, err := p.Mail(d.Webhook.Inputs)
	if err != nil {
		return preset.Mail{}, nil, err
	}
	var body map[string]string
	if err := json.Unmarshal(d.Body.Content, &body); err != nil {
		return preset.Mail{}, nil, errors.New("the stored body is not an e-mail")
	}
	return to, &email.Message{
		From: to.From, To: to.To, ID: d.MessageID(), About: preset.Key(d), Date: at, Agent: s.agent,
		Subject: body[preset.MailSubject], Text: body[preset.MailText], HTML: body[preset.MailHTML],
	}, nil
}

// mailHead returns the head of the e-mail that an attempt sends.
func (s *Sender) mailHead(p *preset.Preset, d *notify.Delivery, at time.Time) notify.RequestHead {
	head := notify.RequestHead{Method: preset.MethodMail, Headers: []notify.HeaderField{}}
	to, message, err := s.mailMessage(p, d, at)
	if err != nil {
		return head
	}
	content, err := message.Bytes()
	if err != nil {
		return head
	}
	digest := sha256.Sum256(content)
	head.Host, head.BodySHA256, head.BodyBytes = rules.CleanText(to.Address(), maxHeadValue), hex.EncodeToString(digest[:]), len(content)
	head.Headers = append(head.Headers, notify.HeaderField{Name: "Message-ID", Value: rules.CleanText("<"+message.MessageID()+">", maxHeadValue)})
	return head
}

// signInSpellings returns a password in the forms in which commands contain it, because a server
// may repeat them.
func signInSpellings(p *preset.Preset, inputs map[string]string) []string {
	to, err := p.Mail(inputs)
	if err != nil || to.Password == "" {
		return nil
	}
	return []string{
		base64.StdEncoding.EncodeToString([]byte(to.Password)),
		base64.StdEncoding.EncodeToString([]byte("\x00" + to.User + "\x00" + to.Password)),
	}
}
