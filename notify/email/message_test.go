package email_test

import (
	"bytes"
	"encoding/base64"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	netmail "net/mail"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tocsin/notify/email"
)

func message() *email.Message {
	return &email.Message{
		From: sender, To: recipients("a@example.com", "b@example.com"), ID: "0198-1", About: "0198-a", Date: time.Unix(1_795_244_522, 0).UTC(),
		Agent: "tocsin/test", Subject: "[CRITICAL] Bestellung fehlgeschlagen: größer", Text: "Text\n.\nEnde", HTML: "<p>größer</p>",
	}
}

// parts returns the decoded parts of a message by type.
func parts(t interface{ Fatal(...any) }, content []byte) (head netmail.Header, texts map[string]string) {
	m, err := netmail.ReadMessage(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	kind, parameters, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/alternative" {
		t.Fatal(kind, err)
	}
	texts = map[string]string{}
	reader := multipart.NewReader(m.Body, parameters["boundary"])
	for {
		part, err := reader.NextRawPart()
		if err == io.EOF { //nolint:errorlint // the reader returns it as it is
			return m.Header, texts
		}
		if err != nil {
			t.Fatal(err)
		}
		if part.Header.Get("Content-Transfer-Encoding") != "quoted-printable" {
			t.Fatal(part.Header)
		}
		text, err := io.ReadAll(quotedprintable.NewReader(part))
		if err != nil {
			t.Fatal(err)
		}
		kind, _, _ := mime.ParseMediaType(part.Header.Get("Content-Type"))
		texts[kind] = strings.ReplaceAll(string(text), "\r\n", "\n")
	}
}

// names are the headers that a message has.
func names() []string {
	return []string{
		"Auto-Submitted", "Content-Type", "Date", "From", "In-Reply-To", "List-Id", "Message-Id", "Mime-Version", "References", "Subject", "To", "User-Agent",
		"X-Auto-Response-Suppress",
	}
}

func TestMessage(t *testing.T) {
	t.Parallel()
	content, err := message().Bytes()
	if err != nil {
		t.Fatal(err)
	}
	again, err := message().Bytes()
	if err != nil || !bytes.Equal(content, again) {
		t.Errorf("the same message has other bytes: %v", err)
	}
	head, texts := parts(t, content)
	for name, want := range map[string]string{
		"From": `"Tocsin" <alerts@example.com>`, "To": "<a@example.com>, <b@example.com>", "Message-Id": "<0198-1@example.com>", "In-Reply-To": "<0198-a@example.com>",
		"References": "<0198-a@example.com>", "Auto-Submitted": "auto-generated", "List-Id": "<tocsin.example.com>", "Date": "Sat, 21 Nov 2026 07:02:02 +0000",
	} {
		if got := head.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if texts["text/plain"] != "Text\n.\nEnde" || texts["text/html"] != "<p>größer</p>" {
		t.Errorf("%q", texts)
	}
	if text, html := bytes.Index(content, []byte("text/plain")), bytes.Index(content, []byte("text/html")); text > html {
		t.Error("the richer form does not come last")
	}
	m := message()
	m.To[1].Address = "b@example.com>\r\nBcc: <c@example.com"
	if _, err := m.Bytes(); err == nil {
		t.Error("an address with a line break was written")
	}
}

// TestNothingBecomesAHeader: whatever a message contains, it has the same headers, one subject,
// which reads as it was given, and two parts.
func TestNothingBecomesAHeader(t *testing.T) {
	t.Parallel()
	piece := rapid.SampledFrom([]string{
		"a", "Order 4711 ", "\r\n", "\n", "\r", "\r\nBcc: evil@example.com", "\r\n\r\n<b>", "\nX-Evil: 1\n", "=?utf-8?q?=0D=0ABcc:_evil@example.com?=", "=?", "?=", "=", "_", "\x00", "\x7f",
		"ü", "漢", "😀", " ", "\t", "\u2028", ".", "\n.\n", "--", "\r\n--boundary--\r\n", strings.Repeat("x", 200), strings.Repeat("y ", 150), "\xff",
	})
	text := rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(piece, 0, 20).Draw(t, "pieces"), "") })
	rapid.Check(t, func(t *rapid.T) {
		m := message()
		m.Subject, m.Text, m.HTML, m.From.Name = text.Draw(t, "subject"), text.Draw(t, "text"), text.Draw(t, "html"), text.Draw(t, "name")
		content, err := m.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		head, texts := parts(t, content)
		var got []string
		for name, values := range head {
			if len(values) != 1 {
				t.Fatalf("%s occurs %d times", name, len(values))
			}
			got = append(got, name)
		}
		slices.Sort(got)
		if !slices.Equal(got, names()) || len(texts) != 2 {
			t.Fatalf("headers %v, %d parts", got, len(texts))
		}
		for line := range strings.SplitSeq(string(content), "\r\n") {
			if len(line) > 998 || strings.ContainsAny(line, "\r\n") {
				t.Fatalf("a line of %d bytes: %q", len(line), line)
			}
		}
		subject, err := new(mime.WordDecoder).DecodeHeader(head.Get("Subject"))
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Join(strings.FieldsFunc(m.Subject, func(r rune) bool { return r <= ' ' || r == 0x7F }), "")
		if got := strings.NewReplacer(" ", "", "\u200b", "").Replace(subject); got != strings.ToValidUTF8(want, "") && got != want && !strings.Contains(m.Subject, "\xff") {
			t.Fatalf("subject %q, want %q", got, want)
		}
		if from, err := netmail.ParseAddress(head.Get("From")); err != nil || from.Address != sender.Address {
			t.Fatalf("from %q: %v", head.Get("From"), err)
		}
	})
}

// TestBoundary: a text cannot contain the boundary of the parts.
func TestBoundary(t *testing.T) {
	t.Parallel()
	m := message()
	first, err := m.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	head, _ := parts(t, first)
	_, parameters, _ := mime.ParseMediaType(head.Get("Content-Type"))
	m.Text = "\n--" + parameters["boundary"] + "--\n" + base64.StdEncoding.EncodeToString([]byte("x"))
	second, err := m.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	if _, texts := parts(t, second); len(texts) != 2 || texts["text/plain"] != m.Text {
		t.Errorf("%q", texts)
	}
}
