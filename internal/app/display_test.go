package app_test

import (
	"net/http"
	"strings"
	"testing"
)

func TestAScreenShowsPagesWithATokenThatOnlyReads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	base, _ := w.guarded()
	admin := newCaller(t, base).signIn(adminEmail, adminPassword)
	token := func(name, role string) (secret, id string) {
		made := admin.must(http.StatusCreated, http.MethodPost, "/tokens", map[string]any{"name": name, "role": role})
		return made.text("secret"), made.body["token"].(map[string]any)["id"].(string)
	}
	secret, id := token("wall", "viewer")
	screen := newCaller(t, base)
	screen.must(http.StatusUnauthorized, http.MethodGet, "/alerts/counts", nil)
	screen.must(http.StatusNoContent, http.MethodPost, "/session/display", map[string]any{"token": secret})
	screen.must(http.StatusOK, http.MethodGet, "/alerts/counts", nil)
	if me := screen.must(http.StatusOK, http.MethodGet, "/me", nil); me.text("kind") != "token" || me.text("role") != "viewer" {
		t.Errorf("the screen is %+v", me.body)
	}
	if state := screen.must(http.StatusOK, http.MethodGet, "/session", nil); state.body["signedIn"] != true {
		t.Errorf("the screen's state is %+v", state.body)
	}
	screen.must(http.StatusForbidden, http.MethodPost, "/alerts/acknowledge", map[string]any{"filter": map[string]any{}})

	// Neither a token with more rights nor something that is no token is accepted, and a user's
	// session is not replaced.
	more, _ := token("more", "operator")
	other := newCaller(t, base)
	other.must(http.StatusForbidden, http.MethodPost, "/session/display", map[string]any{"token": more})
	other.must(http.StatusUnauthorized, http.MethodPost, "/session/display", map[string]any{"token": strings.ToUpper(secret)})
	other.must(http.StatusUnauthorized, http.MethodGet, "/alerts/counts", nil)
	admin.must(http.StatusConflict, http.MethodPost, "/session/display", map[string]any{"token": secret})
	admin.must(http.StatusOK, http.MethodGet, "/users", nil)

	// Another token may replace the display's; after its revocation nothing is shown.
	second, _ := token("wall 2", "viewer")
	screen.must(http.StatusNoContent, http.MethodPost, "/session/display", map[string]any{"token": second})
	screen.must(http.StatusNoContent, http.MethodPost, "/session/display", map[string]any{"token": secret})
	admin.must(http.StatusNoContent, http.MethodDelete, "/tokens/"+id, nil)
	screen.must(http.StatusUnauthorized, http.MethodGet, "/alerts/counts", nil)
	screen.must(http.StatusNoContent, http.MethodPost, "/session/display", map[string]any{"token": second})
	screen.must(http.StatusNoContent, http.MethodDelete, "/session", nil)
	screen.must(http.StatusUnauthorized, http.MethodGet, "/alerts/counts", nil)
}
