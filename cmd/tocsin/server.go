package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"tocsin/internal/rulefile"
)

// serverFlags say which server is meant, and who asks.
type serverFlags struct {
	URL       string `help:"Address of the server." default:"http://127.0.0.1:8080" env:"TOCSIN_URL" placeholder:"URL" name:"url"`
	Token     string `help:"Token of a program: role viewer for export, editor for the others." env:"TOCSIN_TOKEN" placeholder:"TOKEN"`
	TokenFile string `help:"File with the token." env:"TOCSIN_TOKEN_FILE" placeholder:"FILE"`
}

// client speaks to a server's API.
type client struct {
	base, token string
	http        *http.Client
}

const (
	// callTimeout bounds a call; the server bounds it before.
	callTimeout = 2 * time.Minute
	// maxAnswer bounds what is read of an answer, in bytes.
	maxAnswer = 64 << 20
)

func (f *serverFlags) open() (*client, error) {
	token, err := secretOf("token", f.Token, f.TokenFile)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(f.URL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil {
		return nil, errors.New("--url or TOCSIN_URL must be of the form https://host, or http://127.0.0.1:8080")
	}
	return &client{
		base: strings.TrimSuffix(u.Scheme+"://"+u.Host+u.Path, "/"), token: token,
		http: &http.Client{
			Timeout: callTimeout,
			// A token goes nowhere but where it was meant to go.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// problem is what the server says went wrong.
type problem struct {
	// asked is the request.
	asked string
	// remedy is what the caller can do; empty where the server says it all.
	remedy string

	Status int    `json:"status"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
	Errors []struct {
		Field   string `json:"field"`
		Message string `json:"message"`
	} `json:"errors"`
}

// Error is what a person has to know of it.
func (p problem) Error() string {
	text := p.Detail
	if text == "" {
		text = p.Title
	}
	for _, e := range p.Errors {
		text += "; " + e.Field + ": " + e.Message
	}
	if p.remedy != "" {
		text += "; " + p.remedy
	}
	return fmt.Sprintf("the server answers %d to %s: %s", p.Status, p.asked, text)
}

// call sends a body, if any, and reads the answer.
func (c *client) call(ctx context.Context, method, path string, body, into any) error {
	var content io.Reader = http.NoBody
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("encode request: %w", err)
		}
		content = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+"/api/v1"+path, content)
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	answer, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("no answer; is the server's address right, which --url or TOCSIN_URL gives, and does it run? %w", err)
	}
	defer answer.Body.Close() //nolint:errcheck // read as far as it matters
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("read the server's answer: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		told := problem{Title: http.StatusText(answer.StatusCode)}
		// A proxy may answer in a form of its own.
		_ = json.Unmarshal(text, &told)
		told.Status, told.asked = answer.StatusCode, method+" "+req.URL.Redacted()
		switch {
		case told.Status == http.StatusNotFound:
			told.remedy = "is --url or TOCSIN_URL right? It is the server's address, without /api/v1"
		case told.Status == http.StatusUnauthorized && c.token == "":
			told.remedy = "give a token by TOCSIN_TOKEN, --token or --token-file"
		}
		return told
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("the server's answer is not that of Tocsin's API; is --url or TOCSIN_URL right? %w", err)
	}
	return nil
}

// export returns every rule.
func (c *client) export(ctx context.Context) ([]any, error) {
	var answer struct {
		Rules []any `json:"rules"`
	}
	err := c.call(ctx, http.MethodGet, "/rules/export", nil, &answer)
	return answer.Rules, err
}

// apply makes rules be as a document says, or tells what that would change.
func (c *client) apply(ctx context.Context, d *rulefile.Document, prune, dryRun bool) (applied, error) {
	var answer applied
	err := c.call(ctx, http.MethodPost, "/rules/apply", map[string]any{"rules": d.Rules, "prune": prune, "dryRun": dryRun}, &answer)
	return answer, err
}
