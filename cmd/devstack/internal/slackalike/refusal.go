package slackalike

import "net/http"

// refusal is a word with which Slack refuses a message. It is the whole body of the answer.
type refusal string

// The words, as documented under "Handling errors" in
// https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks and in
// https://api.slack.com/changelog/2016-05-17-changes-to-errors-for-incoming-webhooks. The words for
// rate limits and unknown methods are this package's own, because Slack documents only their
// status.
const (
	invalidPayload       refusal = "invalid_payload"
	invalidBlocks        refusal = "invalid_blocks"
	noText               refusal = "no_text"
	tooManyAttachments   refusal = "too_many_attachments"
	userNotFound         refusal = "user_not_found"
	actionProhibited     refusal = "action_prohibited"
	generalChannelDenied refusal = "posting_to_general_channel_denied"
	invalidToken         refusal = "invalid_token"
	teamDisabled         refusal = "team_disabled"
	channelNotFound      refusal = "channel_not_found"
	noService            refusal = "no_service"
	noActiveHooks        refusal = "no_active_hooks"
	noTeam               refusal = "no_team"
	channelIsArchived    refusal = "channel_is_archived"
	rollupError          refusal = "rollup_error"
	rateLimited          refusal = "rate_limited"
	methodNotAllowed     refusal = "method_not_allowed"
)

// The words of the Web API, as documented with chat.postMessage and chat.update in
// https://docs.slack.dev/reference/methods. They have status 200, except for an exceeded rate.
const (
	notAuthed       refusal = "not_authed"
	invalidAuth     refusal = "invalid_auth"
	invalidJSON     refusal = "invalid_json"
	messageNotFound refusal = "message_not_found"
	rateLimitedAPI  refusal = "ratelimited"
	// The following are only faults on request.
	notInChannel     refusal = "not_in_channel"
	isArchived       refusal = "is_archived"
	tokenRevoked     refusal = "token_revoked"
	accountInactive  refusal = "account_inactive"
	missingScope     refusal = "missing_scope"
	cantUpdate       refusal = "cant_update_message"
	editWindowClosed refusal = "edit_window_closed"
	internalError    refusal = "internal_error"
	fatalError       refusal = "fatal_error"
)

// status is the HTTP status of the word; 0 for an unknown word.
func (r refusal) status() int {
	switch r {
	case invalidPayload, invalidBlocks, noText, tooManyAttachments, userNotFound:
		return http.StatusBadRequest
	case actionProhibited, generalChannelDenied, invalidToken, teamDisabled:
		return http.StatusForbidden
	case channelNotFound, noService, noActiveHooks, noTeam:
		return http.StatusNotFound
	case methodNotAllowed:
		return http.StatusMethodNotAllowed
	case channelIsArchived:
		return http.StatusGone
	case rateLimited, rateLimitedAPI:
		return http.StatusTooManyRequests
	case notAuthed, invalidAuth, invalidJSON, messageNotFound, notInChannel, isArchived, tokenRevoked, accountInactive, missingScope,
		cantUpdate, editWindowClosed, internalError, fatalError:
		return http.StatusOK
	case rollupError:
		return http.StatusInternalServerError
	default:
		return 0
	}
}

// verdict is the result for a request. The zero value accepts it.
type verdict struct {
	word   refusal
	detail string
}

func (v verdict) accepted() bool { return v.word == "" }

func refuse(word refusal, detail string) verdict { return verdict{word: word, detail: detail} }
