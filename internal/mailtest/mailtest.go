// Package mailtest is a mail server for tests: it speaks SMTP on a socket, keeps the messages that
// it accepts, and can be scripted to answer with errors.
package mailtest

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// Options configure the server.
type Options struct {
	// TLS has its certificate; without one the server does not encrypt. With Implicit it encrypts
	// from the first byte, otherwise it offers STARTTLS.
	TLS      *tls.Config
	Implicit bool
	// User and Password are required to send, unless they are empty. Mechanisms default to PLAIN
	// and LOGIN.
	User, Password string
	Mechanisms     []string
}

// The steps whose answer can be scripted.
const (
	// Mail is MAIL FROM, Auth the authentication.
	Mail = "MAIL"
	Auth = "AUTH"
	// Recipient is RCPT TO for any recipient; Recipient + ADDRESS is that for one.
	Recipient = "RCPT "
	// Data is the answer to the message.
	Data = "DATA"
)

// Answer replaces the server's usual answer. With code 0 it closes the connection; a message is
// accepted before that.
type Answer struct {
	Code int
	// Text may begin with an enhanced code, such as "4.7.1".
	Text string
	// Always repeats the answer each time; otherwise it is given once.
	Always bool
}

// Message is an accepted message.
type Message struct {
	From string
	To   []string
	// Content is the whole message. Encrypted and SignedIn describe the connection over which it
	// came.
	Content             []byte
	Encrypted, SignedIn bool
}

// Server is a mail server on this machine, for concurrent use.
type Server struct {
	// Address is its host and port.
	Address string

	options  Options
	server   *smtp.Server
	served   chan struct{}
	mu       sync.Mutex
	script   map[string][]Answer
	when     map[string]func()
	messages []Message
}

// New starts a server; [Server.Close] stops it.
func New(o Options) (*Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it listens at once
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	s := &Server{Address: listener.Addr().String(), options: o, served: make(chan struct{}), script: map[string][]Answer{}, when: map[string]func(){}}
	s.server = smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) { return &session{server: s, conn: c}, nil }))
	s.server.Domain, s.server.ErrorLog = "mail.example.com", log.New(io.Discard, "", 0)
	s.server.EnableSMTPUTF8 = true
	if o.TLS != nil {
		s.server.TLSConfig = o.TLS
		if o.Implicit {
			listener = tls.NewListener(listener, o.TLS)
		}
	}
	go func() {
		defer close(s.served)
		_ = s.server.Serve(listener) // until it is closed
	}()
	return s, nil
}

// Close stops the server.
func (s *Server) Close() {
	_ = s.server.Close()
	<-s.served
}

// Say scripts the answers to a step, each given once and in order.
func (s *Server) Say(step string, answers ...Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script[step] = append(s.script[step], answers...)
}

// When calls f whenever a step is reached, before it is answered.
func (s *Server) When(step string, f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.when[step] = f
}

// Messages returns the accepted messages.
func (s *Server) Messages() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.messages)
}

// answer returns the answer to a step and whether it is scripted.
func (s *Server) answer(step string) (a Answer, scripted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.when[step]; f != nil {
		f()
	}
	left := s.script[step]
	if len(left) == 0 {
		return Answer{}, false
	}
	if !left[0].Always {
		s.script[step] = left[1:]
	}
	return left[0], true
}

// session is one connection.
type session struct {
	server   *Server
	conn     *smtp.Conn
	from     string
	to       []string
	signedIn bool
}

// say returns the scripted answer to a step; nil means to continue.
func (s *session) say(step string) error {
	a, scripted := s.server.answer(step)
	switch {
	case !scripted:
		return nil
	case a.Code == 0:
		_ = s.conn.Conn().Close()
		return io.ErrUnexpectedEOF
	}
	return &smtp.SMTPError{Code: a.Code, EnhancedCode: smtp.NoEnhancedCode, Message: a.Text}
}

func (s *session) encrypted() bool {
	_, encrypted := s.conn.TLSConnectionState()
	return encrypted
}

// AuthMechanisms returns the available mechanisms of authentication.
func (s *session) AuthMechanisms() []string {
	switch {
	case s.server.options.User == "":
		return nil
	case len(s.server.options.Mechanisms) > 0:
		return s.server.options.Mechanisms
	}
	return []string{sasl.Plain, sasl.Login}
}

// Auth begins an authentication.
func (s *session) Auth(mechanism string) (sasl.Server, error) {
	check := func(user, password string) error {
		if err := s.say(Auth); err != nil {
			return err
		}
		if user != s.server.options.User || password != s.server.options.Password {
			return smtp.ErrAuthFailed
		}
		s.signedIn = true
		return nil
	}
	if mechanism == sasl.Login {
		return &loginServer{check: check}, nil
	}
	return sasl.NewPlainServer(func(_, user, password string) error { return check(user, password) }), nil
}

// loginServer implements LOGIN.
type loginServer struct {
	check func(user, password string) error
	user  string
	step  int
}

// Next reads the user, then the password.
func (l *loginServer) Next(response []byte) (challenge []byte, done bool, err error) {
	l.step++
	switch l.step {
	case 1:
		return []byte("Username:"), false, nil
	case 2: //nolint:mnd // the second step
		l.user = string(response)
		return []byte("Password:"), false, nil
	}
	return nil, true, l.check(l.user, string(response))
}

// Mail begins a message.
func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	if s.server.options.User != "" && !s.signedIn {
		return &smtp.SMTPError{Code: 530, EnhancedCode: smtp.EnhancedCode{5, 7, 0}, Message: "Authentication required"}
	}
	s.from = from
	return s.say(Mail)
}

// Rcpt adds a recipient.
func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	for _, step := range []string{Recipient + to, Recipient} {
		if err := s.say(step); err != nil {
			return err
		}
	}
	s.to = append(s.to, to)
	return nil
}

// Data accepts the message.
func (s *session) Data(r io.Reader) error {
	content, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	a, scripted := s.server.answer(Data)
	if scripted && a.Code != 0 {
		return &smtp.SMTPError{Code: a.Code, EnhancedCode: smtp.NoEnhancedCode, Message: a.Text}
	}
	s.server.mu.Lock()
	s.server.messages = append(s.server.messages, Message{
		From: s.from, To: slices.Clone(s.to), Content: content, Encrypted: s.encrypted(), SignedIn: s.signedIn,
	})
	s.server.mu.Unlock()
	if scripted {
		_ = s.conn.Conn().Close()
	}
	return nil
}

// Reset forgets the message.
func (s *session) Reset() { s.from, s.to = "", nil }

// Logout ends the connection.
func (s *session) Logout() error { return nil }

// Header returns the header lines of a message, unfolded.
func (m *Message) Header() []string {
	head, _, _ := strings.Cut(string(m.Content), "\r\n\r\n")
	return strings.Split(strings.ReplaceAll(head, "\r\n ", " "), "\r\n")
}
