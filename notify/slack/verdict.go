package slack

import (
	"bytes"
	"encoding/json"
	"strings"

	"tocsin/notify"
)

// Judge returns the meaning of an error word of Slack, such as "no_service", and whether the word
// is known. For unknown words the HTTP status decides.
func Judge(word string) (verdict notify.Verdict, known bool) {
	switch word {
	// Slack will never accept this message, but it accepts others.
	case "invalid_payload", "invalid_blocks", "invalid_blocks_format", "invalid_attachments", "no_text",
		"too_many_attachments", "msg_too_long", "msg_blocks_too_long", "user_not_found",
		// Nor this update of a message.
		"message_not_found", "cant_update_message", "edit_window_closed", "block_mismatch":
		return notify.VerdictRefused, true
	// Slack will never accept any message at this address.
	case "no_service", "no_service_id", "no_active_hooks", "no_team", "team_disabled", "invalid_token", "channel_not_found",
		"channel_is_archived", "action_prohibited", "posting_to_general_channel_denied",
		// Nor with this token, or to this channel.
		"not_in_channel", "is_archived", "not_authed", "invalid_auth", "account_inactive", "token_revoked", "token_expired",
		"missing_scope", "not_allowed_token_type", "no_permission", "org_login_required", "ekm_access_denied", "restricted_action",
		"restricted_action_read_only_channel", "restricted_action_thread_only_channel", "team_access_not_granted", "access_denied",
		"enterprise_is_restricted", "two_factor_setup_required", "messages_tab_disabled":
		return notify.VerdictGone, true
	case "rollup_error", "internal_error", "fatal_error", "service_unavailable", "request_timeout":
		return notify.VerdictRetry, true
	case "ratelimited", "rate_limited", "message_limit_exceeded":
		return notify.VerdictThrottled, true
	default:
		return notify.VerdictUnknown, false
	}
}

// ThreadGone reports whether a word says that a message cannot be posted into its thread, for
// example because somebody has deleted or locked it. The next attempt posts it into the channel.
func ThreadGone(word string) bool {
	switch word {
	case "thread_not_found", "cannot_reply_to_message", "restricted_action_thread_locked", "restricted_action_non_threadable_channel":
		return true
	}
	return false
}

// Remedy says what to do about an error word of Slack; "" if the word says enough.
func Remedy(word string) string {
	switch word {
	case "channel_not_found":
		return "check the channel; the app sees a private channel only if it was invited"
	case "thread_not_found", "cannot_reply_to_message":
		return "the thread no longer exists; the next attempt posts into the channel"
	case "restricted_action_thread_locked":
		return "the thread is locked; the next attempt posts into the channel"
	case "restricted_action_non_threadable_channel":
		return "the channel has no threads; the next attempt posts into the channel: turn threads off in the webhook"
	case "not_in_channel":
		return "invite the app to the channel, with /invite @its-name"
	case "is_archived", "channel_is_archived":
		return "the channel is archived; choose another one"
	case "not_authed", "invalid_auth", "account_inactive", "token_revoked":
		return "the bot token is no longer valid; install the app again and enter the new token"
	case "token_expired":
		return "the bot token has expired; turn token rotation off in the app, install it again and enter the new token"
	case "missing_scope":
		return "give the app the scope chat:write, install it again and enter the new token"
	case "restricted_action", "restricted_action_read_only_channel", "restricted_action_thread_only_channel":
		return "the app may not post in the channel; allow it in the channel's settings"
	}
	return ""
}

// maxWord bounds the length of an error word.
const maxWord = 60

// Answer is an answer of a method of Slack's Web API.
type Answer struct {
	OK      bool   `json:"ok"`
	Error   string `json:"error"`
	Channel string `json:"channel"`
	TS      string `json:"ts"`
}

// ReadAnswer parses the whole body of an answer. It returns false if the body is not an answer of
// the Web API. In an answer with "ok": false, Error is a word.
func ReadAnswer(body []byte) (Answer, bool) {
	var parsed struct {
		Answer

		OK *bool `json:"ok"`
	}
	if json.Unmarshal(body, &parsed) != nil || parsed.OK == nil {
		return Answer{}, false
	}
	parsed.Answer.OK = *parsed.OK
	return parsed.worded(), true
}

// ReadCutAnswer parses the beginning of an answer whose rest did not arrive or was not read: the
// members that are complete, up to the first one that is not. It returns false if "ok" is not among
// them. Error is as in [ReadAnswer].
func ReadCutAnswer(body []byte) (Answer, bool) {
	var parsed Answer
	known := false
	members := json.NewDecoder(bytes.NewReader(body))
	if first, err := members.Token(); err != nil || first != json.Delim('{') {
		return Answer{}, false
	}
	for members.More() {
		name, err := members.Token()
		var value json.RawMessage
		if err == nil {
			err = members.Decode(&value)
		}
		if err != nil {
			break
		}
		switch name {
		case "ok":
			known = json.Unmarshal(value, &parsed.OK) == nil && string(value) != "null"
		case "error":
			parsed.Error = textOf(value)
		case "channel":
			parsed.Channel = textOf(value)
		case "ts":
			parsed.TS = textOf(value)
		}
	}
	if !known {
		return Answer{}, false
	}
	return parsed.worded(), true
}

// textOf returns a JSON string, "" for anything else.
func textOf(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) != nil {
		return ""
	}
	return text
}

// worded makes Error a word, if "ok" is false.
func (a Answer) worded() Answer {
	if !a.OK && !plain(a.Error) {
		a.Error = "unknown_error"
	}
	return a
}

// Word returns the error word in the body of an answer: the body itself if it is one plain word, or
// the "error" of a JSON answer with "ok": false. It returns "" if the body names no error.
func Word(body string) string {
	body = strings.TrimSpace(body)
	if strings.HasPrefix(body, "{") {
		answer, ok := ReadAnswer([]byte(body))
		if !ok || answer.OK {
			return ""
		}
		return answer.Error
	}
	if body == "ok" || !plain(body) {
		return ""
	}
	return body
}

func plain(word string) bool {
	return word != "" && len(word) <= maxWord &&
		strings.Trim(word, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}
