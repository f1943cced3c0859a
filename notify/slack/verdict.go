package slack

import (
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
		"too_many_attachments", "msg_too_long", "msg_blocks_too_long", "user_not_found":
		return notify.VerdictRefused, true
	// Slack will never take any message at this address.
	case "no_service", "no_service_id", "no_active_hooks", "no_team", "team_disabled", "invalid_token", "channel_not_found",
		"channel_is_archived", "action_prohibited", "posting_to_general_channel_denied":
		return notify.VerdictGone, true
	case "rollup_error", "internal_error", "fatal_error", "service_unavailable", "request_timeout":
		return notify.VerdictRetry, true
	case "ratelimited", "rate_limited", "message_limit_exceeded":
		return notify.VerdictThrottled, true
	default:
		return notify.VerdictUnknown, false
	}
}

// maxWord bounds the length of what can be one of Slack's words.
const maxWord = 60

// Word returns the error word of an answer's body: the body itself where it is
// one plain word, or the "error" of a JSON answer with "ok": false. It returns
// "" where the body names no error.
func Word(body string) string {
	body = strings.TrimSpace(body)
	if strings.HasPrefix(body, "{") {
		var answer struct {
			OK    *bool  `json:"ok"`
			Error string `json:"error"`
		}
		if json.Unmarshal([]byte(body), &answer) != nil || answer.OK == nil || *answer.OK {
			return ""
		}
		if !plain(answer.Error) {
			return "unknown_error"
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
