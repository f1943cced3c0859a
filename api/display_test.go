package api_test

import (
	"net/http"
	"strings"
	"testing"
)

func TestWhatIsNoTokenIsNotKept(t *testing.T) {
	b := newBench(t)
	for _, text := range []string{"tcn_", "tcn_x", "secret", strings.Repeat("a", 60)} {
		b.do("POST", "/api/v1/session/display", `{"token":"`+text+`"}`).problem(http.StatusUnauthorized, "unauthorized")
	}
}
