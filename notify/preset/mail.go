package preset

import (
	"errors"
	"fmt"
	"html"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"tocsin/internal/fault"
)

// Security says how the connection to a mail server is encrypted.
type Security string

// The kinds of security. The chosen kind is required; there is no fallback.
const (
	// SecurityStartTLS requests encryption on a plain connection.
	SecurityStartTLS Security = "starttls"
	// SecurityTLS encrypts from the first byte.
	SecurityTLS Security = "tls"
	// SecurityNone never encrypts, and never signs in.
	SecurityNone Security = "none"
)

// Mail is the target and the form of the messages of a preset for e-mail.
type Mail struct {
	Host string
	Port int

	Security Security
	// User and Password are both empty if signing in is not needed.
	User, Password string
	From           mail.Address
	To             []mail.Address
}

// The inputs of a preset with the encoding email.
const (
	inputHost     = "host"
	inputPort     = "port"
	inputSecurity = "security"
	inputUser     = "user"
	inputPassword = "password"
	inputFrom     = "from"
	inputTo       = "to"
)

// The members of its body.
const (
	MailSubject = "subject"
	MailText    = "text"
	MailHTML    = "html"
)

// MethodMail is shown in the place of an HTTP method if a message is mailed.
const MethodMail = "SMTP"

// Bounds of addresses.
const (
	maxRecipients   = 50
	maxAddressBytes = 254
)

// Mails reports whether the preset's messages are e-mails, whose bodies are mappings of
// subject, text and html.
func (p *Preset) Mails() bool { return p.encoding == encodingEmail }

// Mail returns where a message is mailed. Its error does not repeat an input.
func (p *Preset) Mail(inputs map[string]string) (Mail, error) {
	made, fields := p.mail(inputs)
	if len(fields) > 0 {
		return Mail{}, errors.New(fields[0].Message)
	}
	return made, nil
}

// plainAddress matches an address that needs no quoting in any command or header.
var plainAddress = regexp.MustCompile("^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[A-Za-z0-9-]+(\\.[A-Za-z0-9-]+)*$")

var mailHost = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$`)

// mail reads the inputs, and returns what is wrong with them as fields "preset.inputs.NAME".
func (p *Preset) mail(inputs map[string]string) (made Mail, fields []fault.Field) {
	all := p.withDefaults(inputs)
	bad := func(input, code, message string) {
		fields = append(fields, fault.Field{Field: inputsField + input, Code: code, Message: message})
	}
	made = Mail{Host: all[inputHost], Security: Security(all[inputSecurity]), User: all[inputUser], Password: all[inputPassword]}
	if _, err := netip.ParseAddr(made.Host); err != nil && !mailHost.MatchString(made.Host) {
		bad(inputHost, "host", "Must be the name or the address of the mail server, without a port")
	}
	const maxPort = 1<<16 - 1
	var err error
	if made.Port, err = strconv.Atoi(all[inputPort]); err != nil || made.Port < 1 || made.Port > maxPort {
		bad(inputPort, "out_of_range", "Must be a number from 1 to 65535")
	}
	switch {
	case made.User != "" && made.Security == SecurityNone:
		bad(inputUser, "not_applicable", "A password is never sent without encryption; remove user and password, or choose STARTTLS or TLS")
	case made.User == "" && made.Password != "":
		bad(inputUser, "required", "Enter the user of this password, or remove the password")
	case made.User != "" && made.Password == "":
		bad(inputPassword, "required", "Enter the user's password, or remove the user")
	}
	from, err := mail.ParseAddress(all[inputFrom])
	switch {
	case err != nil || !plain(from):
		bad(inputFrom, "address", "Must be an e-mail address such as Tocsin <alerts@example.com>")
	default:
		made.From = *from
	}
	to, err := mail.ParseAddressList(all[inputTo])
	if err != nil || len(to) > maxRecipients {
		bad(inputTo, "address", fmt.Sprintf("Must be from 1 to %d e-mail addresses, separated by commas", maxRecipients))
		return made, fields
	}
	seen := map[string]bool{}
	for i, a := range to {
		switch key := strings.ToLower(a.Address); {
		case !plain(a):
			bad(inputTo, "address", fmt.Sprintf("Address %d cannot be used; write it in ASCII, with an international domain as xn--…", i+1))
		case seen[key]:
			bad(inputTo, "address", fmt.Sprintf("Address %d appears twice; remove one", i+1))
		default:
			seen[key] = true
			made.To = append(made.To, *a)
		}
	}
	return made, fields
}

func plain(a *mail.Address) bool {
	return len(a.Address) <= maxAddressBytes && plainAddress.MatchString(a.Address)
}

// url returns the mail server as a URL.
func (m *Mail) url() *url.URL {
	scheme := "smtp"
	if m.Security == SecurityTLS {
		scheme = "smtps"
	}
	return &url.URL{Scheme: scheme, Host: m.Address()}
}

// Address returns host and port of the mail server.
func (m *Mail) Address() string { return net.JoinHostPort(m.Host, strconv.Itoa(m.Port)) }

// mailed checks that a preset with the encoding email has what sending needs.
func (r *reader) mailed() error {
	d := &r.d
	for _, not := range []struct {
		name  string
		given bool
	}{
		{"url", !d.URL.IsZero()},
		{"method", d.Method != ""},
		{"headers", len(d.Headers) > 0},
		{"basicAuth", d.BasicAuth != nil},
		{"verdicts", len(d.Verdicts) > 0},
		{"retryAfter", len(d.RetryAfter) > 0},
	} {
		if not.given {
			return r.fail(r.lines[not.name], "encoding email has no %s; remove it", not.name)
		}
	}
	if d.Keyed {
		return r.fail(r.lines["keyed"], "encoding email cannot be keyed: people read e-mails; remove keyed")
	}
	for _, name := range []string{inputHost, inputPort, inputSecurity, inputUser, inputPassword, inputFrom, inputTo} {
		if r.preset.input(name) == nil {
			return r.fail(r.lines["inputs"], "encoding email needs the inputs host, port, security, user, password, from and to; %s is missing", name)
		}
	}
	if !r.preset.input(inputPassword).Secret {
		return r.fail(r.lines["inputs"], "the input password must be secret")
	}
	for _, choice := range r.preset.input(inputSecurity).Choices {
		switch Security(choice.Value) {
		case SecurityStartTLS, SecurityTLS, SecurityNone:
		default:
			return r.fail(r.lines["inputs"], "the choices of the input security are starttls, tls and none, not %q", choice.Value)
		}
	}
	return nil
}

// mailBody checks that the body of an event has the members of an e-mail.
func (r *reader) mailBody(event Event, line int, body node) error {
	tree, isObject := body.(object)
	members := map[string]bool{}
	for _, m := range tree.members {
		members[m.name] = true
	}
	if !isObject || len(members) != 3 || !members[MailSubject] || !members[MailText] || !members[MailHTML] {
		return r.fail(line, "%s: the body of an e-mail has the members subject, text and html", event)
	}
	return nil
}

// escapeHTML escapes a value for the text or a quoted attribute of HTML.
func escapeHTML(value string) string {
	return strings.ReplaceAll(html.EscapeString(value), "\n", "<br>")
}
