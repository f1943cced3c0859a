package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"tocsin/alerts"
	"tocsin/internal/access"
	"tocsin/internal/fault"
	"tocsin/notify"
	"tocsin/notify/slack"
)

// Answers to the person who pressed, if the message does not show the reason.
const (
	slackGone    = "This alert no longer exists in Tocsin. There is nothing left to do."
	slackUnasked = "Slack did not tell Tocsin who you are, so nothing was done. Press again, or use Tocsin."
	slackUnseen  = "Tocsin does not know which user you are, because the Slack app does not see your e-mail address. Nothing was done. Assign the alert in Tocsin. " +
		"Here it works with the scopes users:read and users:read.email of the app, if you are a full member of the workspace."
)

// press does what a button requests, and makes the message show the result. It tells the person who
// pressed what the message does not show: why nothing was done, or that somebody was faster. A
// request that comes twice is done once.
func (s *server) press(ctx context.Context, webhook *notify.Webhook, press slack.Press) error {
	actor, refusal, err := s.presser(ctx, webhook, press)
	if err != nil {
		return fmt.Errorf("%s alert from slack: %w", press.Action, err)
	}
	if refusal != "" {
		return s.reply(ctx, webhook, press, refusal)
	}
	acting := access.As(ctx, access.Actor{
		Tenant: webhook.TenantID, Kind: kindUser, Name: actor, Via: "slack", ViaID: webhook.ID.String(),
		Operation: "slackInteraction", ObjectKind: "alert", ObjectID: press.AlertID.String(),
	})
	said, err := s.doPressed(acting, webhook.TenantID, actor, press)
	if err != nil {
		return fmt.Errorf("%s alert from slack: %w", press.Action, err)
	}
	s.hub.nudge(webhook.TenantID)
	if press.Message.Channel != "" && press.Message.TS != "" {
		shown := s.Slack.Show(ctx, SlackPress{Tenant: webhook.TenantID, WebhookID: webhook.ID, AlertID: press.AlertID, At: press.Message})
		if shown != nil {
			return fmt.Errorf("show press: %w", shown)
		}
	}
	if said == "" {
		return nil
	}
	return s.reply(ctx, webhook, press, said)
}

// presser returns the name under which a press acts, or why it does not act. A member of the
// workspace whose e-mail address is that of a user acts as that user, with that user's role. Other
// people in the channel act by their name in Slack, and may do everything except have the alert
// assigned.
func (s *server) presser(ctx context.Context, webhook *notify.Webhook, press slack.Press) (actor, refusal string, err error) {
	member, err := s.SlackCaller.SlackMember(ctx, webhook, press.User.ID)
	if err != nil {
		s.Log.WarnContext(ctx, "a Slack button press was refused, because Slack does not say who pressed the button; check the bot token, and that Slack can be reached", slog.Any("error", err))
		return "", slackUnasked, nil
	}
	email := member.Email
	if press.User.Team != "" && member.Team != press.User.Team {
		email = ""
	}
	assigns := press.Action == slack.ActionAssign
	if email == "" {
		if assigns {
			return "", slackUnseen, nil
		}
		return press.User.Name, "", nil
	}
	person, err := s.Slack.Person(ctx, webhook.TenantID, email)
	switch {
	case fault.KindOf(err) == fault.NotFound && assigns:
		return "", fmt.Sprintf("Tocsin has no user with your e-mail address, %s, so the alert cannot be assigned to you. Ask an administrator of Tocsin to add you.", email), nil
	case fault.KindOf(err) == fault.NotFound:
		return press.User.Name, "", nil
	case err != nil:
		return "", "", fmt.Errorf("find user: %w", err)
	case person.Disabled:
		return "", fmt.Sprintf("Your user %s is disabled in Tocsin, so nothing was done. Ask an administrator of Tocsin to enable your user.", person.Email), nil
	case !person.Role.Allows(access.Operator):
		return "", fmt.Sprintf("In Tocsin, %s has the role %s, but acting on alerts needs the role %s, so nothing was done. Ask an administrator of Tocsin for that role.",
			person.Email, person.Role, access.Operator), nil
	}
	return person.Email, "", nil
}

// doPressed does what a press requests, and returns what the message will not show.
func (s *server) doPressed(ctx context.Context, tenant, actor string, press slack.Press) (said string, err error) {
	before, err := s.Inbox.Get(ctx, tenant, press.AlertID)
	if err == nil {
		switch press.Action {
		case slack.ActionAcknowledge, slack.ActionResolve:
			_, err = s.Inbox.Act(ctx, tenant, AlertAction{AlertID: press.AlertID, Action: alerts.Action(press.Action), Actor: actor})
		case slack.ActionAssign:
			_, err = s.Handling.Assign(ctx, tenant, Assignment{AlertID: press.AlertID, Was: press.Was, Assignee: actor, Actor: actor})
		case slack.ActionSnooze:
			// Counted from the press, so that a repeated request means the same instant.
			until := press.At.Add(press.For)
			if before.SnoozedUntil != nil && before.SnoozedUntil.Equal(until) && before.SnoozedBy == actor {
				break
			}
			_, err = s.Handling.Snooze(ctx, tenant, Snooze{AlertID: press.AlertID, Until: &until, Actor: actor})
		case slack.ActionUnsnooze:
			_, err = s.Handling.Snooze(ctx, tenant, Snooze{AlertID: press.AlertID, Actor: actor})
		}
	}
	switch f, isFault := errors.AsType[*fault.Error](err); {
	case err == nil:
		return alreadySo(&before, actor, press.Action), nil
	case isFault && f.Kind == fault.NotFound:
		return slackGone, nil
	case isFault && (f.Kind == fault.Conflict || f.Kind == fault.Invalid):
		return sentence(f.Error()), nil
	}
	return "", err
}

// alreadySo says what had been done before a press; empty if the press did it.
func alreadySo(before *alerts.Instance, actor string, act slack.Action) string {
	by := func(what, who string) string {
		if who = strings.TrimPrefix(who, "slack:"); who != "" {
			return fmt.Sprintf("The alert was already %s by %s.", what, who)
		}
		return fmt.Sprintf("The alert was already %s by Tocsin.", what)
	}
	switch {
	case act == slack.ActionAcknowledge && before.State == alerts.Acknowledged:
		return by("acknowledged", before.AcknowledgedBy)
	case act == slack.ActionResolve && before.State == alerts.Resolved:
		return by("resolved", before.ResolvedBy)
	case act == slack.ActionAssign && before.Assignee == actor:
		return "The alert is already assigned to you."
	case act == slack.ActionUnsnooze && before.SnoozedUntil == nil:
		return "The alert is no longer snoozed."
	}
	return ""
}

// sentence turns the text of an error into a sentence.
func sentence(text string) string {
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// reply answers the person who pressed. If that fails, Slack marks the press as failed, so that
// nobody takes it for done.
func (s *server) reply(ctx context.Context, webhook *notify.Webhook, press slack.Press, text string) error {
	if err := s.SlackCaller.SlackTell(ctx, webhook, press, text); err != nil {
		return fmt.Errorf("answer press: %w", err)
	}
	return nil
}
