package email

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	netmail "net/mail"
	"strings"
	"time"

	"github.com/wneessen/go-mail"
)

// Message is an e-mail before it is written.
type Message struct {
	From netmail.Address
	To   []netmail.Address
	// ID identifies the message; it is the same in every attempt. About is shared by all messages
	// of one thread.
	ID, About string
	Date      time.Time
	// Agent is the program that sends.
	Agent               string
	Subject, Text, HTML string
}

// MessageID returns the Message-ID without brackets. Its domain is that of the sender.
func (m *Message) MessageID() string { return m.id(m.ID) }

func (m *Message) id(local string) string {
	_, domain, _ := strings.Cut(m.From.Address, "@")
	return local + "@" + domain
}

// Bytes writes the message: the same bytes for the same message. No value can add a header,
// whatever it contains.
func (m *Message) Bytes() ([]byte, error) {
	for _, value := range append(addresses(m.To), m.From.Address, m.ID, m.About, m.Agent) {
		if strings.ContainsAny(value, "\r\n\x00") {
			return nil, errors.New("an address or an ID contains a line break")
		}
	}
	msg := mail.NewMsg(mail.WithNoDefaultUserAgent(), mail.WithEncoding(mail.EncodingQP), mail.WithBoundary(m.boundary()))
	from := m.From
	msg.FromMailAddress(&from)
	to := make([]*netmail.Address, len(m.To))
	for i := range m.To {
		one := m.To[i]
		to[i] = &one
	}
	msg.ToMailAddress(to...)
	msg.SetMessageIDWithValue(m.MessageID())
	msg.SetDateWithValue(m.Date)
	msg.Subject(header(m.Subject))
	about := "<" + m.id(m.About) + ">"
	msg.SetGenHeader(mail.HeaderInReplyTo, about)
	msg.SetGenHeader(mail.HeaderReferences, about)
	msg.SetGenHeader(mail.HeaderUserAgent, m.Agent)
	msg.SetGenHeader("List-Id", "<"+strings.Replace(m.id("tocsin"), "@", ".", 1)+">")
	// No program should answer automatically: RFC 3834, and Exchange's own header.
	msg.SetGenHeader("Auto-Submitted", "auto-generated")
	msg.SetGenHeader("X-Auto-Response-Suppress", "All")
	msg.SetBodyString(mail.TypeTextPlain, m.Text)
	msg.AddAlternativeString(mail.TypeTextHTML, m.HTML)
	var b bytes.Buffer
	if _, err := msg.WriteTo(&b); err != nil {
		return nil, fmt.Errorf("write the e-mail: %w", err)
	}
	return b.Bytes(), nil
}

// boundary separates the parts. It is a hash of the texts, which therefore cannot contain it.
func (m *Message) boundary() string {
	digest := sha256.Sum256([]byte(m.ID + "\x00" + m.Subject + "\x00" + m.Text + "\x00" + m.HTML))
	return hex.EncodeToString(digest[:])
}

// header makes a text one line of a header, in which nothing is read as an encoded word.
func header(text string) string {
	line := strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r < ' ' || r == ' ' || r == 0x7F }), " ")
	return strings.ReplaceAll(line, "=?", "=\u200b?")
}

func addresses(list []netmail.Address) []string {
	texts := make([]string, len(list))
	for i := range list {
		texts[i] = list[i].Address
	}
	return texts
}
