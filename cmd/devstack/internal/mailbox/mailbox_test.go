package mailbox_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/emersion/go-smtp"

	"tocsin/cmd/devstack/internal/mailbox"
)

// message is one as Tocsin writes it, with texts of failing programs.
func message(id string) string {
	return strings.ReplaceAll("Message-ID: <"+id+"@example.com>\nReferences: <alert@example.com>\nSubject: =?UTF-8?q?Gr=C3=B6=C3=9Fe_<b>?=\nContent-Type: multipart/alternative;\n boundary=x\n\n"+
		"--x\nContent-Transfer-Encoding: quoted-printable\nContent-Type: text/plain; charset=UTF-8\n\nthe =C3=BC text </pre><script>\n"+
		"--x\nContent-Transfer-Encoding: quoted-printable\nContent-Type: text/html; charset=UTF-8\n\n<p>the HTML</p><script>alert(1)</script>\n--x--\n", "\n", "\r\n")
}

func TestMailbox(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it listens at once
	if err != nil {
		t.Fatal(err)
	}
	m, err := mailbox.New(listener)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	client, err := smtp.Dial(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	send := func(content string) error {
		return client.SendMail("alerts@example.com", []string{"kim@example.com"}, strings.NewReader(content))
	}
	for _, id := range []string{"1", "2", "1"} {
		if err := send(message(id)); err != nil {
			t.Fatal(err)
		}
	}
	if err := send("Subject: x\r\n\r\nno parts\r\n"); err == nil {
		t.Error("a message without parts was taken")
	}
	got := m.Messages()
	if len(got) != 2 || got[0].ID != 2 || got[1].Repeats != 1 || got[0].Subject != "Größe <b>" || !strings.HasPrefix(got[0].Text, "the ü text") || got[0].Conversation != "<alert@example.com>" {
		t.Fatalf("%+v", got)
	}
	get := func(path string) (*httptest.ResponseRecorder, string) {
		answer := httptest.NewRecorder()
		m.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
		return answer, answer.Body.String()
	}
	if _, body := get("/"); strings.Count(body, "Größe &lt;b&gt;") != 2 || !strings.Contains(body, "received 1 more time") {
		t.Error(body)
	}
	if _, body := get("/messages/2"); strings.Contains(body, "<script>") || !strings.Contains(body, "the ü text &lt;/pre&gt;") || !strings.Contains(body, `src="/messages/2/html" sandbox`) {
		t.Error(body)
	}
	answer, body := get("/messages/2/html")
	if !strings.Contains(body, "<p>the HTML</p>") || !strings.HasPrefix(answer.Header().Get("Content-Security-Policy"), "sandbox; default-src 'none'") {
		t.Errorf("%v %s", answer.Header(), body)
	}
	if _, body := get("/messages/2/raw"); body != message("2") {
		t.Errorf("%q", body)
	}
	for _, path := range []string{"/messages/9", "/messages/x/html"} {
		if answer, _ := get(path); answer.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, answer.Code)
		}
	}
	for i := range mailbox.Kept + 1 {
		if err := send(message(fmt.Sprint("many", i))); err != nil {
			t.Fatal(err)
		}
	}
	if got := m.Messages(); len(got) != mailbox.Kept || got[0].MessageID != fmt.Sprintf("<many%d@example.com>", mailbox.Kept) {
		t.Errorf("%d kept, the newest %s", len(got), got[0].MessageID)
	}
}

// TestCloseBeforeItServes closes mailboxes that have just been made.
func TestCloseBeforeItServes(t *testing.T) {
	for range 100 {
		listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it listens at once
		if err != nil {
			t.Fatal(err)
		}
		m, err := mailbox.New(listener)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
