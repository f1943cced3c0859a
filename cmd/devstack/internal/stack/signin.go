//go:build unix

package stack

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"time"

	"tocsin/cmd/devstack/internal/proc"
	"tocsin/cmd/devstack/internal/taillog"
)

// demoAdmin is the administrator that a first start makes. The data directory stores the password.
const demoAdmin = "demo@tocsin.localhost"

// signedIn returns a client of the API that acts as the demo's administrator.
func (u *up) signedIn(ctx context.Context) (apiClient, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return apiClient{}, err
	}
	password, err := u.data.adminPassword()
	if err != nil {
		return apiClient{}, err
	}
	api := apiClient{base: u.tocsin.url() + "/api/v1", http: &http.Client{Timeout: 10 * time.Second, Jar: jar}}
	if _, err := api.create(ctx, "/session", map[string]any{"email": demoAdmin, "password": password}); err != nil {
		return apiClient{}, fmt.Errorf("sign in as %s: %w", demoAdmin, err)
	}
	return api, nil
}

// entrance returns the address of the page, as a link that signs in once. If the demo's
// administrator does not exist any more, it returns only the address.
func (u *up) entrance(ctx context.Context) string {
	page := u.tocsin.url() + "/"
	link, err := u.tocsin.output(ctx, "users", "link", demoAdmin)
	if err != nil {
		u.console.Sayf("no link to sign in with: %v", err)
		return page
	}
	if password, err := u.data.adminPassword(); err == nil {
		u.console.Sayf("the link signs in once; later sign in as %s with the password %s", demoAdmin, password)
	}
	return link
}

// output runs tocsin to its end and returns its output.
func (t *tocsin) output(ctx context.Context, args ...string) (string, error) {
	var said bytes.Buffer
	log := taillog.New(t.log)
	child, err := proc.Start(proc.Options{Path: t.path, Args: args, Env: t.env, Stdout: &said, Stderr: log})
	if err != nil {
		return "", err
	}
	if err := finished(ctx, child); err != nil {
		return "", fmt.Errorf("tocsin %s: %w%s", strings.Join(args, " "), err, log.Suffix())
	}
	return strings.TrimSpace(said.String()), nil
}
