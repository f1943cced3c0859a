package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"tocsin/internal/access"
	"tocsin/internal/fault"
	"tocsin/notify"
	"tocsin/notify/slack"
)

// SlackStore reads and updates what is stored about messages in Slack.
type SlackStore interface {
	// Webhook returns a webhook that posts as a bot, of any tenant: its tenant is the tenant of a
	// request whose signature proves that it comes from its Slack app.
	Webhook(ctx context.Context, id uuid.UUID) (notify.Webhook, error)
	// Show makes the message show its alert's state soon. If the alert belongs to another tenant,
	// it does nothing.
	Show(ctx context.Context, press SlackPress) error
	// Person returns the user of a tenant with an e-mail address, ignoring case.
	Person(ctx context.Context, tenant, email string) (SlackPerson, error)
}

// SlackCaller calls Slack on behalf of a webhook's app.
type SlackCaller interface {
	// SlackMember returns what Slack knows about a user.
	SlackMember(ctx context.Context, w *notify.Webhook, user string) (slack.Member, error)
	// SlackTell shows a text to the person who pressed, and to nobody else.
	SlackTell(ctx context.Context, w *notify.Webhook, press slack.Press, text string) error
}

// SlackPerson is a user of Tocsin who is a member of a Slack workspace.
type SlackPerson struct {
	Email    string
	Role     access.Role
	Disabled bool
}

// SlackPress is a button press.
type SlackPress struct {
	Tenant    string
	WebhookID uuid.UUID
	AlertID   uuid.UUID
	// At is the place of the message with the button.
	At notify.Posted
}

// prefixInteractions is the path to which Slack reports pressed buttons, followed by the webhook.
// Slack's servers send no session, no origin and no JSON. Each request proves by its signature that
// it comes from the webhook's Slack app. Until then, it is only used to choose the webhook whose
// secret is tried.
const prefixInteractions = "/slack/interactions/"

const (
	// maxInteraction bounds a request, which contains the message with the button.
	maxInteraction = 512 << 10
	// interactionTimeout is below the three seconds after which Slack shows an error.
	interactionTimeout = 2500 * time.Millisecond
)

func isInteraction(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, prefixInteractions)
}

// errNotProven answers every request that does not prove that it comes from Slack.
func errNotProven() error { return echo.NewHTTPError(http.StatusUnauthorized) }

// interact answers POST /slack/interactions/{webhook}. Repeats change nothing.
func (s *server) interact(c echo.Context) error {
	ctx, cancel := context.WithTimeout(c.Request().Context(), interactionTimeout)
	defer cancel()
	body, err := io.ReadAll(io.LimitReader(c.Request().Body, maxInteraction+1))
	switch {
	case err != nil:
		return echo.NewHTTPError(http.StatusBadRequest, "the request ended early; send it again")
	case len(body) > maxInteraction:
		return echo.ErrStatusRequestEntityTooLarge
	}
	webhook, err := s.proven(ctx, c, body)
	if err != nil {
		return err
	}
	press, pressed, err := slack.ReadPress(body)
	if err == nil && pressed && !press.At.IsZero() && s.Now().Sub(press.At).Abs() > slack.SignatureWindow {
		err = errors.New("the button was pressed too long ago; press it again")
	}
	if err != nil {
		return echo.NewHTTPError(http.StatusBadRequest, err.Error())
	}
	if pressed {
		if err := s.press(ctx, webhook, press); err != nil {
			return err
		}
	}
	// Slack shows nothing for an answer without a body.
	return c.NoContent(http.StatusOK)
}

// proven returns the webhook whose Slack app signed the request.
func (s *server) proven(ctx context.Context, c echo.Context, body []byte) (*notify.Webhook, error) {
	id, err := uuid.Parse(c.Param("webhook"))
	if err != nil {
		return nil, errNotProven()
	}
	webhook, err := s.Slack.Webhook(ctx, id)
	switch {
	case fault.KindOf(err) == fault.NotFound:
		return nil, errNotProven()
	case err != nil:
		return nil, fmt.Errorf("find webhook: %w", err)
	}
	header := c.Request().Header
	proof := slack.Proof{Timestamp: header.Get(slack.HeaderTimestamp), Signature: header.Get(slack.HeaderSignature)}
	if err := slack.Verify(webhook.Slack.SigningSecret, proof, body, s.Now()); err != nil {
		s.Log.WarnContext(ctx, "the signature of a Slack button press is not valid; enter the signing secret of the Slack app in the webhook", slog.String("webhook_id", id.String()))
		return nil, errNotProven()
	}
	return &webhook, nil
}
