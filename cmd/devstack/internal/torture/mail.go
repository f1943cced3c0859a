//go:build unix

package torture

import (
	"bytes"
	"io"
	"log"
	"mime"
	"mime/multipart"
	"net"
	"net/mail"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/emersion/go-smtp"
)

// mailServer accepts e-mails. It decides which ones to reject at first before it knows the message:
// it refuses some connections, and defers some recipients.
type mailServer struct {
	receiver *receiver
	server   *smtp.Server
	// began counts the messages that were begun.
	began atomic.Int64
}

func startMail(r *receiver, listener net.Listener) *mailServer {
	m := &mailServer{receiver: r}
	m.server = smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) { return &mailSession{server: m, conn: c}, nil }))
	m.server.Domain, m.server.ErrorLog = "mail."+mailDomain, log.New(io.Discard, "", 0)
	m.server.ReadTimeout, m.server.WriteTimeout = time.Minute, time.Minute
	go func() { _ = m.server.Serve(listener) }()
	return m
}

// mailSession is one connection.
type mailSession struct {
	server *mailServer
	conn   *smtp.Conn
	nth    int64
}

// Mail begins a message.
func (s *mailSession) Mail(string, *smtp.MailOptions) error {
	const everySoMany = 83
	if s.nth = s.server.began.Add(1); !s.server.receiver.calm && s.nth%everySoMany == 0 {
		return &smtp.SMTPError{Code: 421, EnhancedCode: smtp.NoEnhancedCode, Message: "4.3.2 shutting down"}
	}
	return nil
}

// Rcpt accepts a recipient.
func (s *mailSession) Rcpt(string, *smtp.RcptOptions) error {
	const everySoMany = 59
	if !s.server.receiver.calm && s.nth%everySoMany == 0 {
		return &smtp.SMTPError{Code: 450, EnhancedCode: smtp.NoEnhancedCode, Message: "4.2.0 greylisted"}
	}
	return nil
}

// Data accepts the message.
func (s *mailSession) Data(from io.Reader) error {
	content, err := io.ReadAll(from)
	if err != nil {
		return err
	}
	at := time.Now()
	id, a, err := readMail(content)
	if err != nil {
		return &smtp.SMTPError{Code: 554, EnhancedCode: smtp.NoEnhancedCode, Message: "5.6.0 " + err.Error()}
	}
	r := s.server.receiver
	what := a.correlation
	if what == "" {
		what = id
	}
	r.mu.Lock()
	r.came[id]++
	noted := &request{at: at, hook: eMail, webhookID: id, arrival: a, read: true, misdeed: r.misdeed(what, eMail, r.came[id])}
	r.log = append(r.log, noted)
	r.mu.Unlock()
	switch noted.misdeed {
	case errs:
		return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.NoEnhancedCode, Message: "4.3.0 try again"}
	case throttles:
		// Not 4.7, the code for limits, after which a server is not tried for five minutes.
		return &smtp.SMTPError{Code: 452, EnhancedCode: smtp.NoEnhancedCode, Message: "4.3.1 full"}
	case readsAndHangsUp:
		_ = s.conn.Conn().Close()
		return nil
	case dawdles:
		pause(r.ended, webhookTimeout)
	case behaves, hangsUp:
	}
	r.note(func() { noted.accepted = true })
	return nil
}

// Reset forgets the message.
func (s *mailSession) Reset() {}

// Logout ends the connection.
func (s *mailSession) Logout() error { return nil }

var mailedCorrelation = regexp.MustCompile(`(?m)^Correlation: (\S+)\r?$`)

// readMail reads a message as a mail program does: its Message-ID, the conversation to which it
// belongs, and its text.
func readMail(content []byte) (id string, a arrival, err error) {
	message, err := mail.ReadMessage(bytes.NewReader(content))
	if err != nil {
		return "", a, err
	}
	local := func(name string) string {
		return strings.TrimSuffix(strings.TrimPrefix(message.Header.Get(name), "<"), "@"+mailDomain+">")
	}
	_, parameters, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil {
		return "", a, err
	}
	plain, err := multipart.NewReader(message.Body, parameters["boundary"]).NextPart()
	if err != nil {
		return "", a, err
	}
	text, err := io.ReadAll(plain)
	if err != nil {
		return "", a, err
	}
	a = arrival{alertID: local("References"), event: eventOf(string(text))}
	if found := mailedCorrelation.FindSubmatch(text); found != nil {
		a.correlation = string(found[1])
	}
	return local("Message-ID"), a, nil
}
