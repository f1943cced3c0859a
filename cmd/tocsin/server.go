package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	api "tocsin/client"
)

// serverFlags select the server and the token.
type serverFlags struct {
	URL       string `help:"URL of the server." default:"http://127.0.0.1:8080" env:"TOCSIN_URL" placeholder:"URL" name:"url"`
	Token     string `help:"API token, with the role viewer for export and explain, operator for silences, admin for users, and editor for other commands." env:"TOCSIN_TOKEN" placeholder:"TOKEN"`
	TokenFile string `help:"File with the token." env:"TOCSIN_TOKEN_FILE" placeholder:"FILE"`
}

// open returns a client of the server.
func (f *serverFlags) open() (*api.ClientWithResponses, error) {
	token, err := secretOf("token", f.Token, f.TokenFile)
	if err != nil {
		return nil, err
	}
	c, err := api.New(f.URL, token)
	if err != nil {
		return nil, errors.New("--url or TOCSIN_URL must have the form https://host, or http://127.0.0.1:8080")
	}
	return c, nil
}

// answered returns the error of an answer, and what the caller can do.
func answered(answer api.Answer, err error) error {
	err = api.Check(answer, err)
	if err == nil {
		return nil
	}
	if _, unreachable := errors.AsType[*url.Error](err); unreachable {
		return fmt.Errorf("the server cannot be reached: %w; check that it runs, and that its URL in --url or TOCSIN_URL is right", err)
	}
	if refused, ok := errors.AsType[*api.Problem](err); ok {
		if refused.Status < http.StatusBadRequest {
			return fmt.Errorf("%d: %w", refused.Status, errForeign)
		}
		switch refused.Status {
		case http.StatusNotFound:
			if refused.Detail != nil {
				return err // Tocsin says what does not exist, so the URL is right
			}
			return fmt.Errorf("%w; check --url or TOCSIN_URL: it is the server's URL, without /api/v1", err)
		case http.StatusUnauthorized:
			return worded{err, "401: the token is missing, was revoked or has expired; give a valid one in TOCSIN_TOKEN, --token or --token-file"}
		case http.StatusPreconditionFailed:
			what, _, _ := strings.Cut(err.Error(), "; ")
			return worded{err, what + "; run the command again"}
		case http.StatusInternalServerError:
			if refused.RequestID != "" {
				return fmt.Errorf("%w; the log of the server shows the reason, with request_id=%s", err, refused.RequestID)
			}
		}
	}
	return err
}

// worded is an error of the server whose remedy is another one on a command line.
type worded struct {
	error
	text string
}

func (w worded) Error() string { return w.text }

func (w worded) Unwrap() error { return w.error }

// decode decodes an answer and keeps its numbers exactly.
func decode(body []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("the response is not from Tocsin's API: %w; check --url or TOCSIN_URL", err)
	}
	return nil
}

// errForeign says that something else answers.
var errForeign = errors.New("the response is not from Tocsin's API; check --url or TOCSIN_URL")

// clockOf returns the present instant by the server's clock. That of this machine may be wrong.
func clockOf(ctx context.Context, server *api.ClientWithResponses) (time.Time, error) {
	status, err := server.GetStatusWithResponse(ctx)
	if err := answered(status, err); err != nil {
		return time.Time{}, fmt.Errorf("read the server's clock: %w", err)
	}
	if status.JSON200 == nil {
		return time.Time{}, errForeign
	}
	return status.JSON200.Now, nil
}

// listed returns all pages of a list.
func listed[T any](ctx context.Context, page func(ctx context.Context, cursor *string) (items []T, next *string, err error)) (all []T, err error) {
	var cursor *string
	for {
		items, next, err := page(ctx, cursor)
		if err != nil {
			return nil, err
		}
		if items == nil {
			return nil, errForeign
		}
		all = append(all, items...)
		if next == nil {
			return all, nil
		}
		cursor = next
	}
}

// webhooksOf returns the server's webhooks.
func webhooksOf(ctx context.Context, server *api.ClientWithResponses) ([]api.Webhook, error) {
	return listed(ctx, func(ctx context.Context, cursor *string) ([]api.Webhook, *string, error) {
		page, err := server.ListWebhooksWithResponse(ctx, &api.ListWebhooksParams{Cursor: cursor})
		if err := answered(page, err); err != nil {
			return nil, nil, fmt.Errorf("list webhooks: %w", err)
		}
		if page.JSON200 == nil {
			return nil, nil, errForeign
		}
		return page.JSON200.Items, page.JSON200.NextCursor, nil
	})
}

// usersOf returns the server's users.
func usersOf(ctx context.Context, server *api.ClientWithResponses) ([]api.User, error) {
	return listed(ctx, func(ctx context.Context, cursor *string) ([]api.User, *string, error) {
		page, err := server.ListUsersWithResponse(ctx, &api.ListUsersParams{Cursor: cursor})
		if err := answered(page, err); err != nil {
			return nil, nil, fmt.Errorf("list users: %w", err)
		}
		if page.JSON200 == nil {
			return nil, nil, errForeign
		}
		return page.JSON200.Items, page.JSON200.NextCursor, nil
	})
}
