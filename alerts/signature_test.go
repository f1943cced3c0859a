package alerts_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"tocsin/alerts"
	"tocsin/rules"
)

func TestSignature(t *testing.T) {
	for name, c := range map[string]struct{ kind, message, want string }{
		"nothing":             {"", "", ""},
		"type alone":          {"TimeoutException", "", "TimeoutException"},
		"message alone":       {"", "ERP refused", "ERP refused"},
		"both":                {"ConnectException", "ERP refused", "ConnectException: ERP refused"},
		"numbers":             {"T", "Read timed out after 30000 ms (try 3)", "T: Read timed out after # ms (try #)"},
		"ids":                 {"T", "order ORD-2026-00017 of 6f1c0f8e-8a51-4a3e-9d0c-0a1b2c3d4e5f", "T: order # of #"},
		"hexadecimal":         {"T", "at 0x7ffe12ab in block 9f86d081", "T: at # in block #"},
		"address":             {"T", "10.0.0.7:8443: connection refused", "T: #: connection refused"},
		"time":                {"T", "expired at 2026-03-01T12:00:00.123Z.", "T: expired at #."},
		"quotations":          {"T", `no route "order to erp" in 'production'`, `T: no route "…" in '…'`},
		"apostrophe":          {"T", "can't reach customer's host", "T: can't reach customer's host"},
		"quotation open":      {"T", `unterminated "text`, `T: unterminated "text`},
		"first line":          {"T", "refused\nat Erp.post(Erp.java:57)", "T: refused"},
		"white space":         {"T", "  too \t much  space ", "T: too much space"},
		"words that are kept": {"T", "HTTP status internal-server-error", "T: HTTP status internal-server-error"},
		"odd bytes":           {"T", "a\x00b\xff", "T: a\uFFFDb\uFFFD"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := alerts.Signature(&rules.Exchange{ErrorType: c.kind, ErrorMessage: c.message}); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestSignatureIsOfWhatExchangesHaveInCommon(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.StringMatching(`[0-9]{1,12}`)
		quoted := rapid.StringMatching(`[a-z 0-9]{0,20}`)
		of := func() string {
			return alerts.Signature(&rules.Exchange{
				ErrorType:    "ErpException",
				ErrorMessage: "order " + number.Draw(t, "order") + ` of "` + quoted.Draw(t, "customer") + `" refused after ` + number.Draw(t, "ms") + "ms",
			})
		}
		if a, b := of(), of(); a != b {
			t.Fatalf("%q and %q differ", a, b)
		}
	})
}

func TestSignatureIsBoundedCleanText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		odd := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return strings.Repeat(string(b), 40) }))
		s := alerts.Signature(&rules.Exchange{ErrorType: odd.Draw(t, "type"), ErrorMessage: odd.Draw(t, "message")})
		if !utf8.ValidString(s) || strings.ContainsRune(s, 0) || utf8.RuneCountInString(s) > 200 {
			t.Fatalf("%q", s)
		}
	})
}
