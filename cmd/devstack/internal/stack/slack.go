//go:build unix

package stack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"tocsin/cmd/devstack/internal/slackalike"
)

// connectButtons tells the Slack look-alike where to report pressed buttons of the seeded bot.
func (u *up) connectButtons(context.Context) error {
	if id := u.data.settings.BotWebhook; id != "" {
		u.alike.SetRequestURL(u.tocsin.url() + "/slack/interactions/" + id)
	}
	return nil
}

// startSlack starts the Slack look-alike on the port that the seeded webhooks use.
func (u *up) startSlack(context.Context) error {
	log, err := u.openLog("slack.log")
	if err != nil {
		return err
	}
	bot := slackalike.DefaultBot()
	// The first person is the demo's administrator; a colleague shows what happens between two
	// people.
	bot.Addresses = true
	bot.People = []slackalike.Person{{ID: "U0YOU", Name: "you", Email: demoAdmin}, {ID: "U0ANN", Name: "ann", Email: "ann@tocsin.localhost"}}
	alike, err := slackalike.NewServer(slackalike.Options{
		Bot:     &bot,
		Journal: u.data.path(slackJournal),
		Logger:  slog.New(slog.NewTextHandler(log, nil)),
	})
	if err != nil {
		return fmt.Errorf("start the Slack look-alike: %w", err)
	}
	remembered := u.data.settings.SlackPort
	if u.slack, err = serveHandler(alike, remembered); err != nil {
		return errors.Join(fmt.Errorf("start the Slack look-alike: %w", err), alike.Close())
	}
	u.alike = alike
	endSlack(&u.ending, alike, u.slack)
	u.console.Sayf("Slack look-alike on 127.0.0.1:%d", u.slack.port)
	if remembered != 0 && u.slack.port != remembered {
		u.console.Sayf("the Slack look-alike's port %d is taken: messages of the seeded webhooks go there; "+
			"free the port and start again, or use --reset", remembered)
		return nil
	}
	u.data.settings.SlackPort = u.slack.port
	return u.data.writeSettings()
}

// startThrowAwaySlack starts a Slack look-alike that keeps nothing, and returns its server and the
// URL of its incoming webhook.
func startThrowAwaySlack(ending *cleanups) (server *webServer, url string, err error) {
	hook := slackalike.Hook{Path: "T0TRY/B0ORDERS/orders", Channel: "#orders", App: "Tocsin"}
	alike, err := slackalike.NewServer(slackalike.Options{Hooks: []slackalike.Hook{hook}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, "", fmt.Errorf("start the Slack look-alike: %w", err)
	}
	if server, err = serveHandler(alike, 0); err != nil {
		return nil, "", errors.Join(fmt.Errorf("start the Slack look-alike: %w", err), alike.Close())
	}
	endSlack(ending, alike, server)
	return server, server.url() + "/services/" + hook.Path, nil
}

func endSlack(ending *cleanups, alike *slackalike.Server, server *webServer) {
	ending.add("Slack look-alike", func(ctx context.Context) error {
		// Its pages follow events and would keep the web server waiting.
		return errors.Join(alike.Close(), server.Stop(ctx))
	})
}
