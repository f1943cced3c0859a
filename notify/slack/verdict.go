package slack

import (
	"bytes"
	"encoding/json"
	"strings"

	"tocsin/notify"
)

// Judge returns what a word of Slack's means, such as "no_service", and whether
// Slack is known to say it. Of words that are not known, the HTTP status decides.
func Judge(word string) (verdict notify.Verdict, known bool) {
	switch word {
	// Slack will never take this message, but others.
	case "invalid_payload", "invalid_blocks", "invalid_blocks_format", "invalid_attachments", "no_text",
		"too_many_attachments", "msg_too_long", "msg_blocks_too_long", "user_not_found",
		// Nor this change of a message.
		"message_not_found", "cant_update_message", "edit_window_closed", "block_mismatch":
		return notify.VerdictRefused, true
	// Slack will never take any message at this address.
	case "no_service", "no_service_id", "no_active_hooks", "no_team", "team_disabled", "invalid_token", "channel_not_found",
		"channel_is_archived", "action_prohibited", "posting_to_general_channel_denied",
		// Nor with this token, or to this channel.
		"not_in_channel", "is_archived", "not_authed", "invalid_auth", "account_inactive", "token_revoked", "token_expired",
		"missing_scope", "not_allowed_token_type", "no_permission", "org_login_required", "ekm_access_denied", "restricted_action",
		"restricted_action_read_only_channel", "team_access_not_granted":
		return notify.VerdictGone, true
	case "rollup_error", "internal_error", "fatal_error", "service_unavailable", "request_timeout":
		return notify.VerdictRetry, true
	case "ratelimited", "rate_limited", "message_limit_exceeded":
		return notify.VerdictThrottled, true
	default:
		return notify.VerdictUnknown, false
	}
}

// ThreadGone reports whether a word says that a message cannot be posted into its thread, which
// somebody has deleted perhaps: the next attempt posts it into the channel.
func ThreadGone(word string) bool {
	return word == "thread_not_found" || word == "cannot_reply_to_message"
}

// Remedy says what to do about one of Slack's error words; "" if the word says it all.
func Remedy(word string) string {
	switch word {
	case "channel_not_found":
		return "check the channel; the app sees a private channel only if it was invited"
	case "thread_not_found", "cannot_reply_to_message":
		return "the thread no longer exists; the next attempt posts into the channel"
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
	case "restricted_action", "restricted_action_read_only_channel":
		return "the app may not post in the channel; allow it in the channel's settings"
	}
	return ""
}

// maxWord bounds the length of what can be one of Slack's words.
const maxWord = 60

// Answer is what a method of Slack's Web API says.
type Answer struct {
	OK      bool   `json:"ok"`
	Error   string `json:"error"`
	Channel string `json:"channel"`
	TS      string `json:"ts"`
}

// ReadAnswer reads the whole body of an answer; false when it is not one of the
// Web API's. Of an answer with "ok": false, Error is a word.
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

// ReadCutAnswer reads the beginning of an answer, of which the rest did not come
// or was not read: the members that are there whole, before anything that is not.
// False when "ok" is not among them. It holds of Error what holds in [ReadAnswer].
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

// worded makes the Error of an answer with "ok": false a word.
func (a Answer) worded() Answer {
	if !a.OK && !plain(a.Error) {
		a.Error = "unknown_error"
	}
	return a
}

// Word returns the error word of an answer's body: the body itself where it is
// one plain word, or the "error" of a JSON answer with "ok": false. It returns
// "" where the body names no error.
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
