// Command example uses the client in the way of a program outside this repository. It needs
// TOCSIN_URL, and TOCSIN_TOKEN with a token of the role editor:
//
//	example apply     makes a rule for every failed order, or edits it to be so, and says what it did
//	example alerts    lists the alerts that are firing, page by page
//	example watch     follows the inbox, until something ends the stream
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"

	"tocsin/client"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, strings.Join(os.Args[1:], " "), os.Stdout)
	stop()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "example:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, what string, out io.Writer) error {
	server, token := os.Getenv("TOCSIN_URL"), os.Getenv("TOCSIN_TOKEN")
	c, err := client.New(server, token)
	if err != nil {
		return err
	}
	switch what {
	case "apply":
		return apply(ctx, c, out)
	case "alerts":
		return alerts(ctx, c, out)
	case "watch":
		// A stream has no end, so its client must have no time-out.
		if c, err = client.New(server, token, client.WithHTTPClient(&http.Client{})); err != nil {
			return err
		}
		return watch(ctx, c, out)
	default:
		return errors.New("name a command: apply, alerts or watch")
	}
}

func apply(ctx context.Context, c *client.ClientWithResponses, out io.Writer) error {
	done, err := c.ApplyRulesWithResponse(ctx, client.RuleApplication{Rules: []client.RuleDefinition{{
		Name: "Orders refused", FireMode: client.FireModePEREXCHANGE, Severity: client.SeverityCRITICAL,
		Scope:  client.Scope{Applications: new([]string{"orders"})},
		Filter: client.Filter{ErrorMessageContains: new("refused")},
	}}})
	if err := client.Check(done, err); err != nil {
		return err
	}
	for _, rule := range done.JSON200.Rules {
		_, _ = fmt.Fprintln(out, rule.Name, rule.Action)
	}
	return nil
}

func alerts(ctx context.Context, c *client.ClientWithResponses, out io.Writer) error {
	params := &client.ListAlertsParams{State: new([]client.AlertState{client.AlertStateFIRING})}
	for {
		page, err := c.ListAlertsWithResponse(ctx, params)
		if err := client.Check(page, err); err != nil {
			return err
		}
		for i := range page.JSON200.Items {
			alert := &page.JSON200.Items[i]
			_, _ = fmt.Fprintln(out, alert.FiredAt, alert.Title)
		}
		if page.JSON200.NextCursor == nil {
			return nil
		}
		params.Cursor = page.JSON200.NextCursor
	}
}

func watch(ctx context.Context, c *client.ClientWithResponses, out io.Writer) error {
	// StreamEventsWithResponse would read to the end of the answer.
	stream, err := c.StreamEvents(ctx, &client.StreamEventsParams{})
	if err != nil {
		return err
	}
	defer stream.Body.Close() //nolint:errcheck // read to its end
	if stream.StatusCode != http.StatusOK {
		return errors.New(stream.Status)
	}
	lines := bufio.NewScanner(stream.Body)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data:"); ok {
			_, _ = fmt.Fprintln(out, strings.TrimSpace(data))
		}
	}
	return lines.Err()
}
