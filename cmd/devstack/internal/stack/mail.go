//go:build unix

package stack

import (
	"context"
	"errors"
	"fmt"

	"tocsin/cmd/devstack/internal/mailbox"
	"tocsin/cmd/devstack/internal/netport"
)

// startMailbox starts the mail server on the port that the seeded webhook uses, and the page that
// shows its messages.
func (u *up) startMailbox(context.Context) error {
	remembered := u.data.settings.MailPort
	port, err := netport.Free(remembered)
	if err != nil {
		return fmt.Errorf("start the mail server: %w", err)
	}
	listener, err := netport.Listen(port)
	if err != nil {
		return fmt.Errorf("start the mail server: %w", err)
	}
	box, err := mailbox.New(listener)
	if err != nil {
		return errors.Join(fmt.Errorf("start the mail server: %w", err), listener.Close())
	}
	page, err := serveHandler(box, u.data.settings.MailboxPort)
	if err != nil {
		return errors.Join(fmt.Errorf("start the mailbox: %w", err), box.Close())
	}
	u.ending.add("mailbox", func(ctx context.Context) error { return errors.Join(page.Stop(ctx), box.Close()) })
	u.console.Sayf("mailbox on 127.0.0.1:%d", page.port)
	u.data.settings.MailboxPort = page.port
	if remembered != 0 && port != remembered {
		u.console.Sayf("the mail server's port %d is taken: messages of the seeded webhook go there; "+
			"free the port and start again, or use --reset", remembered)
		return u.data.writeSettings()
	}
	u.data.settings.MailPort = port
	return u.data.writeSettings()
}
