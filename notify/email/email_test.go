package email_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http/httptest"
	netmail "net/mail"
	"slices"
	"strings"
	"testing"
	"time"

	"tocsin/internal/mailtest"
	"tocsin/notify"
	"tocsin/notify/email"
)

const password = "correct horse battery"

// certificate returns a certificate for this machine, and a pool that trusts it.
func certificate(t *testing.T) (server, client *tls.Config) {
	t.Helper()
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS()
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return &tls.Config{Certificates: s.TLS.Certificates, MinVersion: tls.VersionTLS12}, &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
}

func start(t *testing.T, o mailtest.Options) *mailtest.Server {
	t.Helper()
	s, err := mailtest.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// to returns a client for the server.
func to(s *mailtest.Server) *email.Server {
	dialer := net.Dialer{}
	return &email.Server{Host: "127.0.0.1", Address: s.Address, Dial: dialer.DialContext}
}

func recipients(texts ...string) []netmail.Address {
	list := make([]netmail.Address, len(texts))
	for i, text := range texts {
		list[i].Address = text
	}
	return list
}

var (
	sender  = netmail.Address{Name: "Tocsin", Address: "alerts@example.com"} //nolint:gochecknoglobals // constant
	content = []byte("Subject: x\r\n\r\n.\r\n..\r\nbody\r\n")                //nolint:gochecknoglobals // constant
)

// send makes one attempt, with a timeout that suffices on a loaded machine.
func send(t *testing.T, s *email.Server, reached []string, addresses ...string) (notify.Outcome, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return s.Send(ctx, sender, recipients(addresses...), reached, content)
}

// TestDelivers delivers over each kind of connection, and checks that the client signs in only if
// the connection is encrypted.
func TestDelivers(t *testing.T) {
	t.Parallel()
	serverTLS, clientTLS := certificate(t)
	for name, test := range map[string]struct {
		server mailtest.Options
		client func(*email.Server)
	}{
		"plain":    {mailtest.Options{}, func(*email.Server) {}},
		"STARTTLS": {mailtest.Options{TLS: serverTLS}, func(s *email.Server) { s.StartTLS = true }},
		"TLS":      {mailtest.Options{TLS: serverTLS, Implicit: true}, func(s *email.Server) { s.TLS = true }},
		"PLAIN": {
			mailtest.Options{TLS: serverTLS, User: "kim", Password: password},
			func(s *email.Server) { s.StartTLS, s.User, s.Password = true, "kim", password },
		},
		"LOGIN": {
			mailtest.Options{TLS: serverTLS, Implicit: true, User: "kim", Password: password, Mechanisms: []string{"LOGIN"}},
			func(s *email.Server) { s.TLS, s.User, s.Password = true, "kim", password },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := start(t, test.server)
			client := to(server)
			client.Config = clientTLS
			test.client(client)
			o, err := send(t, client, nil, "a@example.com", "b@example.com")
			if err != nil || o.Verdict != notify.VerdictDelivered || o.StatusCode != 250 || o.Reached != nil {
				t.Fatalf("%+v, %v", o, err)
			}
			got := server.Messages()
			if len(got) != 1 || got[0].From != sender.Address || !slices.Equal(got[0].To, []string{"a@example.com", "b@example.com"}) || string(got[0].Content) != string(content) {
				t.Fatalf("%+v", got)
			}
			if got[0].Encrypted != (test.server.TLS != nil) || got[0].SignedIn != (test.server.User != "") {
				t.Errorf("encrypted %v, signed in %v", got[0].Encrypted, got[0].SignedIn)
			}
		})
	}
}

// TestRefusals rejects a whole attempt, at each step.
func TestRefusals(t *testing.T) {
	t.Parallel()
	serverTLS, clientTLS := certificate(t)
	for name, test := range map[string]struct {
		server mailtest.Options
		step   string
		answer mailtest.Answer
		client func(*email.Server)
		want   notify.Verdict
		code   int
		says   string
	}{
		"STARTTLS is not offered":     {client: func(s *email.Server) { s.StartTLS = true }, want: notify.VerdictGone, says: "does not offer STARTTLS"},
		"signing in is not offered":   {server: mailtest.Options{TLS: serverTLS}, client: func(s *email.Server) { s.StartTLS, s.User = true, "kim" }, want: notify.VerdictGone, says: "for signing in"},
		"a password in the clear":     {server: mailtest.Options{User: "kim"}, client: func(s *email.Server) { s.User = "kim" }, want: notify.VerdictGone, says: "never sent without encryption"},
		"a wrong password":            {server: mailtest.Options{TLS: serverTLS, User: "kim", Password: password}, client: func(s *email.Server) { s.StartTLS, s.User, s.Password = true, "kim", "wrong" }, want: notify.VerdictGone, code: 535, says: "enter them again"},
		"signing in is needed":        {server: mailtest.Options{User: "kim"}, want: notify.VerdictGone, code: 530, says: "set a user and password"},
		"signing in is not possible":  {server: mailtest.Options{TLS: serverTLS, User: "kim", Password: password}, step: mailtest.Auth, answer: mailtest.Answer{Code: 454, Text: "4.7.0 later"}, client: func(s *email.Server) { s.StartTLS, s.User, s.Password = true, "kim", password }, want: notify.VerdictRetry, code: 454},
		"the sender is refused":       {step: mailtest.Mail, answer: mailtest.Answer{Code: 550, Text: "5.7.1 not yours"}, want: notify.VerdictGone, code: 550, says: "not yours"},
		"the sender has to wait":      {step: mailtest.Mail, answer: mailtest.Answer{Code: 451, Text: "4.3.0 busy"}, want: notify.VerdictRetry, code: 451},
		"a rate is exceeded":          {step: mailtest.Mail, answer: mailtest.Answer{Code: 450, Text: "4.7.28 too many"}, want: notify.VerdictThrottled, code: 450},
		"it ends the conversation":    {step: mailtest.Mail, answer: mailtest.Answer{Code: 421, Text: "4.3.2 closing"}, want: notify.VerdictRetry, code: 0},
		"it is closing at RCPT":       {step: mailtest.Recipient, answer: mailtest.Answer{Code: 421, Text: "4.3.2 closing"}, want: notify.VerdictRetry, code: 0},
		"all recipients are refused":  {step: mailtest.Recipient, answer: mailtest.Answer{Code: 550, Text: "5.1.1 unknown", Always: true}, want: notify.VerdictRefused, code: 550, says: "a@example.com: 550 5.1.1 unknown; b@example.com: 550 5.1.1 unknown"},
		"all recipients are greylist": {step: mailtest.Recipient, answer: mailtest.Answer{Code: 450, Text: "4.7.1 greylisted", Always: true}, want: notify.VerdictRetry, code: 450, says: "Not accepted yet: a@example.com"},
		"the message is refused":      {step: mailtest.Data, answer: mailtest.Answer{Code: 554, Text: "5.6.0 spam"}, want: notify.VerdictRefused, code: 554, says: "spam"},
		"the message is too large":    {step: mailtest.Data, answer: mailtest.Answer{Code: 552, Text: "5.3.4 too big"}, want: notify.VerdictRefused, code: 552},
		"the disk is full":            {step: mailtest.Data, answer: mailtest.Answer{Code: 452, Text: "4.3.1 full"}, want: notify.VerdictRetry, code: 452},
		"a daily limit is exceeded":   {step: mailtest.Data, answer: mailtest.Answer{Code: 550, Text: "5.4.5 Daily user sending limit exceeded"}, want: notify.VerdictThrottled, code: 550, says: "sending limit"},
		"a limit exceeded by senders": {step: mailtest.Mail, answer: mailtest.Answer{Code: 550, Text: "5.4.5 Daily sending quota exceeded"}, want: notify.VerdictThrottled, code: 550, says: "sending quota"},
		"a limit of recipients":       {step: mailtest.Recipient, answer: mailtest.Answer{Code: 550, Text: "5.4.5 Daily user sending limit exceeded", Always: true}, want: notify.VerdictRetry, code: 550, says: "sending limit"},
		"a quota of Exchange":         {step: mailtest.Data, answer: mailtest.Answer{Code: 554, Text: "5.2.0 STOREDRV.Submission.Exception:SubmissionQuotaExceededException; the sender's submission quota was exceeded."}, want: notify.VerdictThrottled, code: 554},
		"only DATA refuses a sender":  {step: mailtest.Data, answer: mailtest.Answer{Code: 550, Text: "5.7.60 SMTP; Client does not have permissions to send as this sender"}, want: notify.VerdictGone, code: 550, says: "enter a sender that you may use there"},
		"an unverified sender":        {step: mailtest.Data, answer: mailtest.Answer{Code: 550, Text: "The from address does not match a verified Sender Identity."}, want: notify.VerdictGone, code: 550, says: "enter a sender that you may use there"},
		"only RCPT refuses a sender":  {step: mailtest.Recipient, answer: mailtest.Answer{Code: 550, Text: "5.1.0 <alerts@example.com>: Sender address rejected: User unknown in virtual mailbox table", Always: true}, want: notify.VerdictGone, says: "check the sender"},
		"a sender without a domain":   {step: mailtest.Recipient, answer: mailtest.Answer{Code: 550, Text: "5.1.8 <alerts@example.com>: Sender address rejected: Domain not found", Always: true}, want: notify.VerdictGone, says: "check the sender"},
		"a sender that Exim refuses":  {step: mailtest.Recipient, answer: mailtest.Answer{Code: 550, Text: "Sender verify failed", Always: true}, want: notify.VerdictGone, says: "check the sender"},
		"no right to send as another": {step: mailtest.Data, answer: mailtest.Answer{Code: 554, Text: "5.2.252 SendAsDenied; alerts@example.com not allowed to send as kim@example.com"}, want: notify.VerdictGone, code: 554, says: "enter a sender that you may use there"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := start(t, test.server)
			if test.step != "" {
				server.Say(test.step, test.answer)
			}
			client := to(server)
			client.Config = clientTLS
			if test.client != nil {
				test.client(client)
			}
			o, err := send(t, client, nil, "a@example.com", "b@example.com")
			if err != nil || o.Verdict != test.want || o.StatusCode != test.code || !strings.Contains(o.Error, test.says) || o.Error == "" || o.NothingSent || o.Reached != nil {
				t.Errorf("%+v, %v", o, err)
			}
			if throttled := o.Verdict == notify.VerdictThrottled; throttled != (o.RetryAfter > 0) {
				t.Errorf("to wait %v", o.RetryAfter)
			}
			if got := server.Messages(); len(got) != 0 {
				t.Errorf("delivered %+v", got)
			}
		})
	}
}

// TestRecipientsHaveVerdictsOfTheirOwn: a recipient that has accepted the message gets it once,
// however often it is tried for the others.
func TestRecipientsHaveVerdictsOfTheirOwn(t *testing.T) {
	t.Parallel()
	server := start(t, mailtest.Options{})
	server.Say(mailtest.Recipient+"later@example.com", mailtest.Answer{Code: 450, Text: "4.2.0 greylisted"}, mailtest.Answer{Code: 450, Text: "4.2.0 greylisted"})
	server.Say(mailtest.Recipient+"gone@example.com", mailtest.Answer{Code: 550, Text: "5.1.1 no such user", Always: true})
	all := []string{"Now@example.com", "later@example.com", "gone@example.com"}
	o, err := send(t, to(server), nil, all...)
	if err != nil || o.Verdict != notify.VerdictRetry || o.StatusCode != 450 || !slices.Equal(o.Reached, []string{"now@example.com"}) {
		t.Fatalf("%+v, %v", o, err)
	}
	if want := "1 of 3 recipients have received the message; not accepted yet: later@example.com: 450 4.2.0 greylisted; refused: gone@example.com: 550 5.1.1 no such user; correct or remove these recipients"; o.Error != want {
		t.Errorf("%q", o.Error)
	}
	reached := o.Reached
	o, err = send(t, to(server), reached, all...)
	if err != nil || o.Verdict != notify.VerdictRetry || o.Reached != nil {
		t.Fatalf("nobody new: %+v, %v", o, err)
	}
	o, err = send(t, to(server), reached, all...)
	if err != nil || o.Verdict != notify.VerdictRefused || o.StatusCode != 550 || !slices.Equal(o.Reached, []string{"now@example.com", "later@example.com"}) {
		t.Fatalf("%+v, %v", o, err)
	}
	var got [][]string
	for _, m := range server.Messages() {
		got = append(got, m.To)
	}
	if len(got) != 2 || !slices.Equal(got[0], all[:1]) || !slices.Equal(got[1], all[1:2]) {
		t.Errorf("delivered to %v", got)
	}
	// Without the recipient that was rejected there is none left to send to.
	o, err = send(t, to(server), o.Reached, all[:2]...)
	if err != nil || o.Verdict != notify.VerdictDelivered || !o.NothingSent || len(server.Messages()) != 2 {
		t.Errorf("%+v, %v", o, err)
	}
}

// TestWhatIsUnknown: a connection that breaks before the end of the message has delivered nothing;
// one that breaks after it may have.
func TestWhatIsUnknown(t *testing.T) {
	t.Parallel()
	for step, nothingSent := range map[string]bool{mailtest.Mail: true, mailtest.Recipient: true, mailtest.Data: false} {
		server := start(t, mailtest.Options{})
		server.Say(step, mailtest.Answer{})
		o, err := send(t, to(server), nil, "a@example.com")
		if err == nil || o.NothingSent != nothingSent {
			t.Errorf("broken at %s: %+v, %v", step, o, err)
		}
		if got := len(server.Messages()); (got == 0) != nothingSent {
			t.Errorf("broken at %s: %d messages", step, got)
		}
	}
	refused := &email.Server{Host: "127.0.0.1", Address: "x", Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("refused") }}
	if o, err := send(t, refused, nil, "a@example.com"); err == nil || !o.NothingSent {
		t.Errorf("%+v, %v", o, err)
	}
}

// listen handles each connection with f.
func listen(t *testing.T, f func(conn net.Conn)) *email.Server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it listens at once
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() { _ = listener.Close(); <-ended })
	go func() {
		defer close(ended)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			f(conn)
		}
	}()
	dialer := net.Dialer{}
	return &email.Server{Host: "127.0.0.1", Address: listener.Addr().String(), Dial: dialer.DialContext}
}

// TestGreetings: a server that greets with an error, one with an untrusted certificate, and one
// that never sends anything.
func TestGreetings(t *testing.T) {
	t.Parallel()
	for greeting, code := range map[string]int{"554 5.3.2 no service here\r\n": 554, "421 4.3.2 not now\r\n": 0} {
		s := listen(t, func(conn net.Conn) { _, _ = conn.Write([]byte(greeting)); _ = conn.Close() })
		if o, err := send(t, s, nil, "a@example.com"); err != nil || o.Verdict != notify.VerdictRetry || o.StatusCode != code || !o.Unanswered() {
			t.Errorf("%q: %+v, %v", greeting, o, err)
		}
	}
	serverTLS, _ := certificate(t)
	for _, implicit := range []bool{true, false} {
		server := start(t, mailtest.Options{TLS: serverTLS, Implicit: implicit})
		s := to(server)
		s.TLS, s.StartTLS, s.Config = implicit, !implicit, &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
		if o, err := send(t, s, nil, "a@example.com"); err == nil || !o.NothingSent || len(server.Messages()) != 0 {
			t.Errorf("an unknown certificate: %+v, %v", o, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	silent := make(chan net.Conn, 1)
	s := listen(t, func(conn net.Conn) { silent <- conn; cancel() })
	defer func() { _ = (<-silent).Close() }()
	if o, err := s.Send(ctx, sender, recipients("a@example.com"), nil, content); err == nil || !o.NothingSent {
		t.Errorf("a server that says nothing: %+v, %v", o, err)
	}
}

// TestServerThatTakesNothing rejects the sender only at the first recipient, as Postfix does by
// default: that is not the recipients' fault.
func TestServerThatTakesNothing(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]notify.Verdict{"5.7.1 relay access denied": notify.VerdictGone, "5.1.1 no such user": notify.VerdictRefused} {
		server := start(t, mailtest.Options{})
		server.Say(mailtest.Recipient, mailtest.Answer{Code: 554, Text: text, Always: true})
		if o, err := send(t, to(server), nil, "a@example.com", "b@example.com"); err != nil || o.Verdict != want {
			t.Errorf("%s: %+v, %v", text, o, err)
		}
	}
}

// TestServerThatNeverEndsItsAnswer checks that reading stops after 64 KiB.
func TestServerThatNeverEndsItsAnswer(t *testing.T) {
	t.Parallel()
	s := listen(t, func(conn net.Conn) {
		defer conn.Close() //nolint:errcheck // the other side ends it
		for {
			if _, err := conn.Write([]byte("220-" + strings.Repeat("x", 500) + "\r\n")); err != nil {
				return
			}
		}
	})
	if o, err := send(t, s, nil, "a@example.com"); err == nil || !o.NothingSent || !strings.Contains(err.Error(), "64 KiB") {
		t.Errorf("%+v, %v", o, err)
	}
}
