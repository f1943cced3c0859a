// Package client speaks to the API of Tocsin. Its types and calls are generated from the OpenAPI document; each call has a
// form that reads the answer, which ends in WithResponse:
//
//	c, err := client.New("https://tocsin.example.com", token)
//	answer, err := c.ListAlertsWithResponse(ctx, &client.ListAlertsParams{})
//	if err = client.Check(answer, err); err != nil {
//		return err
//	}
//	for _, alert := range answer.JSON200.Items { … }
//
// A token is made by an administrator, under Settings, Tokens. It goes to no other server: redirects are not followed.
package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// callTimeout bounds a call. The server bounds it before. A stream of events needs an HTTP client without a bound; see
// [WithHTTPClient].
const callTimeout = 2 * time.Minute

// New returns a client of the server at an address, such as https://tocsin.example.com, that sends a token with each call.
// Without a token it is nobody. Options are applied last.
func New(server, token string, options ...ClientOption) (*ClientWithResponses, error) {
	u, err := url.Parse(server)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil {
		return nil, errors.New("the server must be of the form https://tocsin.example.com")
	}
	before := []ClientOption{WithHTTPClient(&http.Client{
		Timeout:       callTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	})}
	if token != "" {
		before = append(before, WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
			r.Header.Set("Authorization", "Bearer "+token)
			return nil
		}))
	}
	return NewClientWithResponses(strings.TrimSuffix(server, "/")+"/api/v1", append(before, options...)...)
}

// Answer is what every call that ends in WithResponse returns.
type Answer interface {
	StatusCode() int
	ContentType() string
	GetBody() []byte
}

// Check returns the error of a call, or the server's refusal as a [*Problem], or nil. It takes what a call returns. A redirect is a refusal, and so is
// what does not come from Tocsin, such as the page of a proxy where people sign in.
func Check(answer Answer, err error) error {
	if err != nil {
		return err
	}
	status, contentType := answer.StatusCode(), answer.ContentType()
	isJSON := strings.Contains(contentType, "json")
	success := status >= http.StatusOK && status < http.StatusMultipleChoices
	if success && (isJSON || status == http.StatusNoContent || strings.HasPrefix(contentType, "text/event-stream")) {
		return nil
	}
	p := &Problem{Title: http.StatusText(status)}
	if success || status < http.StatusBadRequest {
		p.Detail = new("the response is not from Tocsin's API; check the server's URL")
		p.Status = status
		return p
	}
	// A proxy before the server may answer in another form.
	_ = json.Unmarshal(answer.GetBody(), p)
	p.Status = status
	return p
}

// Error says what happened, field by field where the input was invalid.
func (p *Problem) Error() string {
	text := p.Title
	if p.Detail != nil {
		text = *p.Detail
	}
	for _, e := range p.Errors {
		text += "; " + e.Field + ": " + e.Message
	}
	return fmt.Sprintf("%d: %s", p.Status, text)
}
