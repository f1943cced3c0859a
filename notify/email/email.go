// Package email writes e-mails and gives them to a mail server.
//
// One attempt is one SMTP transaction for all recipients that do not have the message yet:
//
//	connect ─ TLS ─ EHLO ─ STARTTLS ─ AUTH ─ MAIL FROM ─ RCPT TO ×n ─ DATA ─ dot ─ answer
//	└──────────────── nothing was sent, a repeat is no duplicate ──────────────┘└─ unknown ─┘
//
// Until the dot that ends the message is sent, the server has no message. Between the dot and the
// answer, the result is unknown: such an attempt is repeated under the same Message-ID, like an
// HTTP request whose answer was lost. The answer to the following QUIT has no meaning.
//
// # Verdicts
//
//	no connection, no TLS, connection lost, 421            retry
//	4xx                                                    retry
//	4xx with 4.7.x (but not to RCPT), an exceeded quota    throttled: the whole webhook waits
//	STARTTLS or AUTH not offered, 5xx to AUTH, MAIL FROM   gone: no message would be taken
//	5xx to the message that is about the sender            gone
//	other 5xx to DATA or to the message                    refused
//	2xx to the message                                     delivered
//
// Each recipient has its own verdict. The message goes to the recipients that the server accepts.
// They are stored ([notify.Outcome].Reached), and the next attempt is only for the others. While
// the server may accept one of these later, the message is retried. When it has refused all that
// are left, the message is refused, so that it does not count as delivered to all.
package email

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	netmail "net/mail"
	"net/textproto"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/wneessen/go-mail/smtp"

	"tocsin/notify"
)

// Server is a mail server that accepts messages.
type Server struct {
	Host, Address string
	// TLS encrypts from the first byte, StartTLS after a request. The chosen one is required.
	TLS, StartTLS bool
	// Config is used to verify the server, whose name is Host.
	Config *tls.Config
	// User and Password are used to sign in if User is not empty and the connection is encrypted.
	User, Password string
	// Dial opens a connection.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// CheckClaim returns why the message may not be sent any more, or nil while it may. A nil CheckClaim
	// means that it always may.
	CheckClaim func() error
}

// throttled is the pause for a server that limits rates.
const throttled = 5 * time.Minute

// maxAnswers bounds the size of all answers in one attempt, in bytes.
const maxAnswers = 64 << 10

// bounded is a connection that ends when the other side has sent too much.
type bounded struct {
	net.Conn
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errors.New("the mail server's response is longer than 64 KiB")
	}
	n, err := b.Conn.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// quitting bounds the end of an SMTP session whose message is settled.
const quitting = time.Second

// Send makes one attempt to give a message to a server, for the recipients that are not in reached.
// An error means that there was no answer; the outcome then says whether anything was sent. It may
// be that ctx has ended. If that is because of [notify.ErrFenced], Send waits for the answer to a
// message that was handed over. The texts of the outcome are those of the server.
func (s *Server) Send(ctx context.Context, from netmail.Address, to []netmail.Address, reached []string, content []byte) (notify.Outcome, error) {
	left := slices.DeleteFunc(addresses(to), func(a string) bool { return slices.Contains(reached, key(a)) })
	if len(left) == 0 {
		return notify.Outcome{Verdict: notify.VerdictDelivered, NothingSent: true, Response: "All recipients have received the message"}, nil
	}
	conn, err := s.Dial(ctx, "tcp", s.Address)
	if err != nil {
		return notify.Outcome{NothingSent: true}, err
	}
	defer conn.Close() //nolint:errcheck // what became of the message is known
	conn = &bounded{Conn: conn, left: maxAnswers}
	t := transaction{server: s, all: len(to), reached: slices.Clone(reached)}
	stop := context.AfterFunc(ctx, func() {
		at := time.Unix(1, 0)
		if deadline, bounded := ctx.Deadline(); bounded && t.handedOver.Load() && errors.Is(context.Cause(ctx), notify.ErrFenced) {
			at = deadline
		}
		_ = conn.SetDeadline(at)
	})
	defer stop()
	o, err := t.run(ctx, conn, from.Address, left, content)
	if err == nil && t.client != nil && stop() {
		over := time.AfterFunc(quitting, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
		defer over.Stop()
		_ = t.client.Quit()
	}
	return o, err
}

// key identifies a recipient.
func key(address string) string { return strings.ToLower(address) }

// transaction is one attempt.
type transaction struct {
	server *Server
	client *smtp.Client
	// all is the number of recipients; reached are those that have the message.
	all     int
	reached []string
	// taken are the recipients of the attempt that the server accepts. refused and later are its
	// answers about the others.
	taken          []string
	refused, later []turnedAway
	// handedOver says that the server may have the message.
	handedOver atomic.Bool
}

// turnedAway is a recipient that the server does not accept.
type turnedAway struct {
	address string
	code    int
	why     string
}

// policy reports whether the server refuses the sender or this machine, and not the recipient:
// 5.7.x of RFC 3463, and 530 of RFC 4954.
func (a turnedAway) policy() bool {
	return a.code == codeSignIn || strings.HasPrefix(a.why, "5.7.") || aboutSender(a.why)
}

// aboutSender reports whether a refusal is about the sender, although it is the answer to a
// recipient or to the message: 5.1.7 and 5.1.8 of RFC 3463, and the words of Postfix, Exim, Exchange
// and SendGrid.
func aboutSender(why string) bool {
	return strings.HasPrefix(why, "5.1.7 ") || strings.HasPrefix(why, "5.1.8 ") || containsAny(why, "Sender address rejected", "Sender verify failed",
		"send as this sender", "SendAsDenied", "verified Sender Identity")
}

// quotaExceeded reports whether a refusal ends with time, although it is called permanent: what the
// account may send in a day is used up at Gmail or Exchange.
func quotaExceeded(why string) bool {
	return strings.HasPrefix(why, "5.4.5 ") || containsAny(why, "SubmissionQuotaExceeded")
}

func containsAny(text string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}

func (a turnedAway) String() string { return fmt.Sprintf("%s: %d %s", a.address, a.code, a.why) }

func (t *transaction) run(ctx context.Context, conn net.Conn, from string, to []string, content []byte) (notify.Outcome, error) {
	for _, step := range []func() *failure{
		func() *failure { return t.greet(ctx, conn) },
		t.encrypt,
		t.signIn,
		func() *failure { return t.mail(from) },
	} {
		if f := step(); f != nil {
			return f.outcome()
		}
	}
	for _, address := range to {
		if f := t.recipient(address); f != nil {
			return f.outcome()
		}
	}
	if len(t.taken) == 0 {
		if len(t.later) == 0 && !slices.ContainsFunc(t.refused, func(a turnedAway) bool { return !a.policy() }) {
			// Nobody would get anything from this sender: that is no matter of the recipients.
			return gone("The mail server does not accept messages from this sender or machine: " + list(t.refused) + "; check the sender, and set a user and password if it requires them").outcome()
		}
		return t.partly(notify.Outcome{}), nil
	}
	return t.data(content)
}

// greet reads the greeting and says hello. If the server begins with TLS, both are encrypted.
func (t *transaction) greet(ctx context.Context, conn net.Conn) *failure {
	if t.server.TLS {
		secure := tls.Client(conn, t.server.config())
		if err := secure.HandshakeContext(ctx); err != nil {
			return &failure{err: fmt.Errorf("encrypt: %w", err)}
		}
		conn = secure
	}
	client, err := smtp.NewClient(conn, t.server.Host)
	if err != nil {
		return failed("the connection", err, notify.VerdictRetry)
	}
	client.SkipSMTPUTF8(true)
	t.client = client
	if err := client.Hello(hello(conn)); err != nil {
		return failed("EHLO", err, notify.VerdictRetry)
	}
	return nil
}

func (s *Server) config() *tls.Config {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.Config != nil {
		config = s.Config.Clone()
	}
	config.ServerName, config.NextProtos = s.Host, nil
	return config
}

// hello is the name of this machine in the greeting. It is the address, because no host name is
// known to be right.
func hello(conn net.Conn) string {
	local, isTCP := conn.LocalAddr().(*net.TCPAddr)
	switch {
	case !isTCP:
		return "localhost"
	case local.IP.To4() != nil:
		return "[" + local.IP.To4().String() + "]"
	}
	return "[IPv6:" + local.IP.String() + "]"
}

func (t *transaction) encrypt() *failure {
	if !t.server.StartTLS {
		return nil
	}
	if offered, _ := t.client.Extension("STARTTLS"); !offered {
		return gone("The mail server does not offer STARTTLS; choose TLS with its port, or enable encryption on the server")
	}
	if err := t.client.StartTLS(t.server.config()); err != nil {
		return failed("STARTTLS", err, notify.VerdictRetry)
	}
	return nil
}

func (t *transaction) signIn() *failure {
	s := t.server
	if s.User == "" {
		return nil
	}
	if !s.TLS && !s.StartTLS {
		return gone("A password is never sent without encryption; choose STARTTLS or TLS, or remove user and password")
	}
	_, offered := t.client.Extension("AUTH")
	var auth smtp.Auth
	switch offers := strings.Fields(strings.ToUpper(offered)); {
	case slices.Contains(offers, "PLAIN"):
		auth = smtp.PlainAuth("", s.User, s.Password, s.Host, false)
	case slices.Contains(offers, "LOGIN"):
		auth = smtp.LoginAuth(s.User, s.Password, s.Host, false)
	case slices.Contains(offers, "SCRAM-SHA-256"):
		auth = smtp.ScramSHA256Auth(s.User, s.Password)
	default:
		return gone("The mail server does not offer PLAIN, LOGIN or SCRAM-SHA-256 for signing in; remove user and password, or use another port")
	}
	if err := t.client.Auth(auth); err != nil {
		f := failed("AUTH", err, notify.VerdictGone)
		f.remedy = "; check user and password, and enter them again"
		return f
	}
	return nil
}

// remedySender says what to do when the server does not accept the sender.
const remedySender = "; enter a sender that you may use there, and set a user and password if it requires them"

func (t *transaction) mail(from string) *failure {
	if err := t.client.Mail("<" + from + ">"); err != nil {
		f := failed("MAIL FROM", err, notify.VerdictGone)
		f.remedy = remedySender
		return f
	}
	return nil
}

// recipient adds a recipient. Only errors that end the session are failures.
func (t *transaction) recipient(address string) *failure {
	err := t.client.Rcpt("<" + address + ">")
	if err == nil {
		t.taken = append(t.taken, address)
		return nil
	}
	said, answered := errors.AsType[*textproto.Error](err)
	switch {
	case !answered || said.Code == codeClosing:
		return failed("RCPT TO", err, notify.VerdictRetry)
	case said.Code >= permanent && !quotaExceeded(said.Msg):
		t.refused = append(t.refused, turnedAway{address, said.Code, oneLine(said.Msg)})
	default:
		t.later = append(t.later, turnedAway{address, said.Code, oneLine(said.Msg)})
	}
	return nil
}

// partly completes the outcome of an attempt that did not reach all recipients.
func (t *transaction) partly(o notify.Outcome) notify.Outcome {
	if len(t.later) > 0 {
		o.Verdict, o.StatusCode = notify.VerdictRetry, t.later[0].code
	} else {
		o.Verdict, o.StatusCode = notify.VerdictRefused, t.refused[0].code
	}
	var why []string
	if n := len(t.reached); n > 0 {
		why = append(why, fmt.Sprintf("%d of %d recipients have received the message", n, t.all))
	}
	if len(t.later) > 0 {
		why = append(why, "not accepted yet: "+list(t.later))
	}
	if len(t.refused) > 0 {
		why = append(why, "refused: "+list(t.refused)+"; correct or remove these recipients")
	}
	o.Error = sentence(strings.Join(why, "; "))
	return o
}

func list(of []turnedAway) string {
	texts := make([]string, len(of))
	for i, a := range of {
		texts[i] = a.String()
	}
	return strings.Join(texts, "; ")
}

// data sends the message.
func (t *transaction) data(content []byte) (notify.Outcome, error) {
	w, err := t.client.Data()
	if err != nil {
		return failed("DATA", err, notify.VerdictRefused).outcome()
	}
	if _, err := w.Write(content); err != nil {
		return notify.Outcome{NothingSent: true}, fmt.Errorf("send the message: %w", err)
	}
	if check := t.server.CheckClaim; check != nil {
		if err := check(); err != nil {
			return notify.Outcome{NothingSent: true}, err
		}
	}
	// From here on the server may have the message.
	t.handedOver.Store(true)
	if err := w.Close(); err != nil {
		f := failed("the message", err, notify.VerdictRefused)
		f.sent = true
		return f.outcome()
	}
	o := notify.Outcome{Verdict: notify.VerdictDelivered, StatusCode: codeOK}
	if done, ok := w.(*smtp.DataCloser); ok {
		o.Response = fmt.Sprintf("%d %s", codeOK, oneLine(done.ServerResponse()))
	}
	for _, address := range t.taken {
		t.reached = append(t.reached, key(address))
	}
	if len(t.later)+len(t.refused) > 0 {
		o = t.partly(o)
		o.Reached = t.reached
	}
	return o, nil
}

// The codes of answers with a special meaning, and the first of the final ones.
const (
	codeOK      = 250
	codeClosing = 421
	// codeNotAvailable concerns TLS and signing in.
	codeNotAvailable = 454
	// codeSignIn requires signing in.
	codeSignIn = 530
	permanent  = 500
)

// failure ends an attempt.
type failure struct {
	// err is the error of the connection, if there was no answer. sent says that the message may
	// have arrived anyway.
	err  error
	sent bool
	// verdict and text are the meaning of an answer; code is the code of the server.
	verdict      notify.Verdict
	code         int
	text, remedy string
	wait         time.Duration
}

func gone(text string) *failure { return &failure{verdict: notify.VerdictGone, text: text} }

// failed makes a failure from the answer to a step. final is the verdict if the answer is final.
func failed(step string, err error, final notify.Verdict) *failure {
	said, answered := errors.AsType[*textproto.Error](err)
	if !answered {
		return &failure{err: fmt.Errorf("%s: %w", step, err)}
	}
	f := &failure{verdict: notify.VerdictRetry, code: said.Code, text: fmt.Sprintf("The mail server answered %d to %s: %s", said.Code, step, oneLine(said.Msg))}
	switch {
	case said.Code >= permanent && quotaExceeded(said.Msg):
		f.verdict, f.wait = notify.VerdictThrottled, throttled
	case said.Code >= permanent && final == notify.VerdictRefused && aboutSender(said.Msg):
		f.verdict, f.remedy = notify.VerdictGone, remedySender
	case said.Code >= permanent:
		f.verdict = final
	case said.Code != codeNotAvailable && strings.HasPrefix(said.Msg, "4.7."):
		f.verdict, f.wait = notify.VerdictThrottled, throttled
	}
	return f
}

func (f *failure) outcome() (notify.Outcome, error) {
	if f.err != nil {
		return notify.Outcome{NothingSent: !f.sent}, f.err
	}
	o := notify.Outcome{Verdict: f.verdict, StatusCode: f.code, RetryAfter: f.wait, Error: f.text, Response: ""}
	if f.verdict == notify.VerdictGone || f.verdict == notify.VerdictRefused {
		o.Error += f.remedy
	}
	if f.code == codeClosing && f.verdict == notify.VerdictRetry {
		// It ends the session, so for a breaker it is the same as no answer.
		o.StatusCode = 0
	}
	return o, nil
}

// oneLine joins the lines of an answer.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
