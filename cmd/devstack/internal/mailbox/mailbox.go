// Package mailbox is a mail server for a developer's machine, and a page that shows what it
// received: each message as text, as HTML and in its original form.
//
// It accepts every message for every recipient, without encryption and without a password, and
// keeps the newest in memory. A message with a known Message-ID is a repeat, which is counted and
// not shown again.
//
// The servers are for loopback: they have no authentication. Messages are untrusted: HTML is shown
// in a frame in which nothing runs and nothing is loaded.
package mailbox

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"log"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/http"
	"net/mail"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/emersion/go-smtp"
)

// Kept is how many messages are kept.
const Kept = 500

const maxMessage = 4 << 20

//go:embed page.html
var page string

// Message is a received message.
type Message struct {
	ID         int
	ReceivedAt time.Time
	From       string
	To         []string
	// Subject, Conversation and MessageID are from its head; Text and HTML are its parts.
	Subject, Conversation, MessageID string
	Text, HTML                       string
	Raw                              string
	// Repeats counts how often it was received again.
	Repeats int
}

// Mailbox keeps messages. It is safe for concurrent use.
type Mailbox struct {
	server   *smtp.Server
	listener net.Listener
	served   chan struct{}
	page     *template.Template
	mux      *http.ServeMux

	mu   sync.Mutex
	next int
	// messages are the newest messages, oldest first.
	messages []Message
}

// New serves SMTP on a listener, until [Mailbox.Close].
func New(listener net.Listener) (*Mailbox, error) {
	parsed, err := template.New("page").Parse(page)
	if err != nil {
		return nil, fmt.Errorf("parse page: %w", err)
	}
	m := &Mailbox{listener: listener, served: make(chan struct{}), page: parsed, mux: http.NewServeMux()}
	m.server = smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &session{mailbox: m}, nil }))
	m.server.Domain, m.server.MaxMessageBytes, m.server.ErrorLog = "localhost", maxMessage, log.New(io.Discard, "", 0)
	m.server.ReadTimeout, m.server.WriteTimeout = time.Minute, time.Minute
	m.mux.HandleFunc("GET /{$}", m.list)
	m.mux.HandleFunc("GET /messages/{id}", m.show)
	m.mux.HandleFunc("GET /messages/{id}/html", m.showHTML)
	m.mux.HandleFunc("GET /messages/{id}/raw", m.showRaw)
	go func() {
		defer close(m.served)
		_ = m.server.Serve(listener) // until it is closed
	}()
	return m, nil
}

// Close ends the mail server.
func (m *Mailbox) Close() error {
	err := m.server.Close()
	// The server closes it only if it has begun to serve.
	if closed := m.listener.Close(); !errors.Is(closed, net.ErrClosed) {
		err = errors.Join(err, closed)
	}
	<-m.served
	return err
}

// ServeHTTP shows the messages.
func (m *Mailbox) ServeHTTP(w http.ResponseWriter, r *http.Request) { m.mux.ServeHTTP(w, r) }

// Messages returns the received messages, newest first.
func (m *Mailbox) Messages() []Message {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := slices.Clone(m.messages)
	slices.Reverse(list)
	return list
}

// session is one connection.
type session struct {
	mailbox *Mailbox
	from    string
	to      []string
}

// Mail begins a message.
func (s *session) Mail(from string, _ *smtp.MailOptions) error { s.from = from; return nil }

// Rcpt adds a recipient.
func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error { s.to = append(s.to, to); return nil }

// Data receives the message.
func (s *session) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	message, err := parse(raw)
	if err != nil {
		return &smtp.SMTPError{Code: 554, EnhancedCode: smtp.EnhancedCode{5, 6, 0}, Message: err.Error()}
	}
	message.From, message.To = s.from, slices.Clone(s.to)
	s.mailbox.keep(message)
	return nil
}

// Reset forgets the message.
func (s *session) Reset() { s.from, s.to = "", nil }

// Logout ends the connection.
func (s *session) Logout() error { return nil }

func (m *Mailbox) keep(message Message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.messages {
		if was := &m.messages[i]; was.MessageID == message.MessageID && slices.Equal(was.To, message.To) {
			was.Repeats++
			return
		}
	}
	m.next++
	message.ID, message.ReceivedAt = m.next, time.Now()
	m.messages = append(m.messages, message)
	if over := len(m.messages) - Kept; over > 0 {
		m.messages = slices.Delete(m.messages, 0, over)
	}
}

// parse parses a message in the form that Tocsin writes: a text and its HTML.
func parse(raw []byte) (Message, error) {
	read, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return Message{}, errors.New("the message has no head that can be read")
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(read.Header.Get("Subject"))
	if err != nil {
		return Message{}, errors.New("the subject cannot be read")
	}
	message := Message{Subject: subject, Conversation: read.Header.Get("References"), MessageID: read.Header.Get("Message-Id"), Raw: string(raw)}
	kind, parameters, err := mime.ParseMediaType(read.Header.Get("Content-Type"))
	if err != nil || !strings.HasPrefix(kind, "multipart/") {
		return Message{}, errors.New("the message is not multipart")
	}
	parts := multipart.NewReader(read.Body, parameters["boundary"])
	for {
		part, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Message{}, errors.New("a part of the message cannot be read")
		}
		var body io.Reader = part
		if part.Header.Get("Content-Transfer-Encoding") == "quoted-printable" {
			body = quotedprintable.NewReader(part)
		}
		text, err := io.ReadAll(body)
		if err != nil {
			return Message{}, errors.New("a part of the message cannot be decoded")
		}
		switch kind, _, _ := mime.ParseMediaType(part.Header.Get("Content-Type")); kind {
		case "text/plain":
			message.Text = string(text)
		case "text/html":
			message.HTML = string(text)
		}
	}
	if message.Text == "" || message.HTML == "" {
		return Message{}, errors.New("the message lacks its text or its HTML")
	}
	return message, nil
}

// view is the data of the page's template.
type view struct {
	Messages []Message
	// Open is the message that is shown; nil in the list.
	Open *Message
}

func (m *Mailbox) list(w http.ResponseWriter, _ *http.Request) {
	m.write(w, view{Messages: m.Messages()})
}

func (m *Mailbox) show(w http.ResponseWriter, r *http.Request) {
	if message := m.find(w, r); message != nil {
		m.write(w, view{Open: message})
	}
}

// find returns the message that a request names, or answers that there is none.
func (m *Mailbox) find(w http.ResponseWriter, r *http.Request) *Message {
	id, err := strconv.Atoi(r.PathValue("id"))
	messages := m.Messages()
	at := slices.IndexFunc(messages, func(one Message) bool { return err == nil && one.ID == id })
	if at < 0 {
		http.Error(w, "There is no such message; the oldest ones are gone.", http.StatusNotFound)
		return nil
	}
	return &messages[at]
}

func (m *Mailbox) write(w http.ResponseWriter, v view) {
	var out bytes.Buffer
	if err := m.page.Execute(&out, v); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	head(w, "text/html; charset=utf-8", "default-src 'none'; style-src 'unsafe-inline'; frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	_, _ = out.WriteTo(w)
}

func (m *Mailbox) showHTML(w http.ResponseWriter, r *http.Request) {
	if message := m.find(w, r); message != nil {
		head(w, "text/html; charset=utf-8", "sandbox; default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'")
		_, _ = io.WriteString(w, message.HTML)
	}
}

func (m *Mailbox) showRaw(w http.ResponseWriter, r *http.Request) {
	if message := m.find(w, r); message != nil {
		head(w, "text/plain; charset=utf-8", "default-src 'none'")
		_, _ = io.WriteString(w, message.Raw)
	}
}

func head(w http.ResponseWriter, contentType, policy string) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Security-Policy", policy)
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
}
