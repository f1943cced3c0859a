package api

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"tocsin/internal/fault"
)

// statusClientGone is the status in the log for a request whose client disconnected.
const statusClientGone = 499

// answered marks a request whose error has already become the answer: the logger of requests does
// that early, to know the status, and passes the error on.
const answered = "tocsin.answered"

// handleError turns err into the answer, once. This is the only place where that is done.
func (s *server) handleError(err error, c echo.Context) {
	if c.Get(answered) != nil {
		return
	}
	c.Set(answered, true)
	ctx := c.Request().Context()
	id := c.Response().Header().Get(echo.HeaderXRequestID)
	if c.Response().Committed {
		s.Log.LogAttrs(ctx, slog.LevelWarn, "response not sent completely", slog.String("request_id", id), slog.Any("error", err))
		return
	}
	if errors.Is(err, context.Canceled) && errors.Is(ctx.Err(), context.Canceled) {
		c.Response().WriteHeader(statusClientGone)
		return
	}
	err = throttled(err, c.Response().Header())
	p := problemOf(err)
	if p.Status == http.StatusUnauthorized {
		c.Response().Header().Set(echo.HeaderWWWAuthenticate, `Bearer realm="tocsin"`)
	}
	p.RequestID = id
	if p.Status >= http.StatusInternalServerError {
		s.Log.LogAttrs(ctx, slog.LevelError, "request failed; run tocsin doctor if this repeats", slog.String("request_id", id), slog.Any("error", err))
	}
	body, err := json.Marshal(p)
	if err != nil {
		s.Log.LogAttrs(ctx, slog.LevelError, "error response not encoded", slog.String("request_id", id), slog.Any("error", err))
		c.Response().WriteHeader(http.StatusInternalServerError)
		return
	}
	if err := c.Blob(p.Status, "application/problem+json", body); err != nil {
		s.Log.LogAttrs(ctx, slog.LevelWarn, "response not sent completely", slog.String("request_id", id), slog.Any("error", err))
	}
}

// problemOf describes err for the client, without the request id.
func problemOf(err error) Problem {
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Kind != fault.Internal {
		p := newProblem(statusOf(f.Kind), f.Message)
		p.Code, p.Errors = f.Kind.String(), f.Fields
		return p
	}
	if h, ok := errors.AsType[*echo.HTTPError](err); ok && h.Code < http.StatusInternalServerError {
		detail, _ := h.Message.(string)
		p := newProblem(h.Code, detail)
		p.Errors = parameterFields(detail)
		return p
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return newProblem(http.StatusServiceUnavailable, "The request took too long; try again")
	}
	if h, ok := errors.AsType[*echo.HTTPError](err); ok && h.Code == http.StatusServiceUnavailable {
		detail, _ := h.Message.(string)
		return newProblem(h.Code, detail)
	}
	return newProblem(http.StatusInternalServerError, "")
}

func newProblem(status int, detail string) Problem {
	p := Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Code: codeOf(status)}
	if detail != "" && detail != p.Title {
		// Errors begin in lower case; sentences for people do not.
		first, size := utf8.DecodeRuneInString(detail)
		detail = string(unicode.ToUpper(first)) + detail[size:]
		p.Detail = &detail
	}
	return p
}

func statusOf(k fault.Kind) int {
	switch k {
	case fault.Invalid:
		return http.StatusBadRequest
	case fault.NotFound:
		return http.StatusNotFound
	case fault.Conflict:
		return http.StatusConflict
	case fault.Stale:
		return http.StatusPreconditionFailed
	case fault.Internal:
	}
	return http.StatusInternalServerError
}

// codeOf names a status for programs, in the style of the kinds of fault.
func codeOf(status int) string {
	switch status {
	case http.StatusBadRequest:
		return fault.Invalid.String()
	case http.StatusNotFound:
		return fault.NotFound.String()
	case http.StatusConflict:
		return fault.Conflict.String()
	case http.StatusPreconditionFailed:
		return fault.Stale.String()
	case http.StatusRequestEntityTooLarge:
		return "too_large"
	case http.StatusServiceUnavailable:
		return "unavailable"
	case http.StatusInternalServerError:
		return fault.Internal.String()
	}
	return strings.ReplaceAll(strings.ToLower(http.StatusText(status)), " ", "_")
}

// parameterFields finds the parameter in the error of the generated server for a parameter that it
// could not parse.
func parameterFields(detail string) []fault.Field {
	const prefix = "Invalid format for parameter "
	rest, found := strings.CutPrefix(detail, prefix)
	if !found {
		return nil
	}
	name, reason, _ := strings.Cut(rest, ": ")
	return []fault.Field{{Field: name, Code: "type", Message: "Cannot be read: " + reason}}
}

// invalidField returns a fault about one field or parameter.
func invalidField(field, code, message string) error {
	return fault.InvalidFields("the request", []fault.Field{{Field: field, Code: code, Message: message}})
}
