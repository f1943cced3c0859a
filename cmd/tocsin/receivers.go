package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"tocsin/internal/app"
)

// receivers are the commands for the services that webhooks can be for.
type receivers struct {
	List   receiversList   `cmd:"" help:"List the receivers, and the events that each is notified of."`
	Check  receiversCheck  `cmd:"" help:"Read a file that describes a receiver, render all its events with hostile samples, and show what is wrong and what would be cut."`
	Schema receiversSchema `cmd:"" help:"Print the JSON Schema of such files, for editors."`
}

type receiversList struct {
	Receivers []string `help:"Files that describe more receivers, or folders of such files." env:"TOCSIN_RECEIVERS" type:"existingpath" placeholder:"PATH,…"`
}

// Run prints a table.
func (l *receiversList) Run(out io.Writer) error {
	list, err := app.Receivers(l.Receivers)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, r := range list {
		own := ""
		if r.Own {
			own = " (added)"
		}
		if _, err := fmt.Fprintf(table, "%s\t%s%s\t%s\n", r.ID, r.Name, own, r.Sends); err != nil {
			return err
		}
	}
	return table.Flush()
}

type receiversCheck struct {
	Files []string `arg:"" name:"file" help:"YAML files, each with one receiver." type:"existingfile"`
}

// Run reports. A file that cannot be used is an error.
func (c *receiversCheck) Run(out io.Writer) error {
	broken := 0
	for _, file := range c.Files {
		report, err := app.CheckReceiver(file)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "%s: %s, notified of %s\n", file, report.Name, report.Sends); err != nil {
			return err
		}
		for _, problem := range report.Problems {
			if _, err := fmt.Fprintln(out, "✗", problem); err != nil {
				return err
			}
		}
		for _, cut := range report.Cuts {
			if _, err := fmt.Fprintln(out, "! with the longest samples,", cut); err != nil {
				return err
			}
		}
		if len(report.Problems) > 0 {
			broken++
		}
	}
	if broken > 0 {
		return fmt.Errorf("%d of %d files cannot be used; see above", broken, len(c.Files))
	}
	return nil
}

type receiversSchema struct{}

// Run prints the schema.
func (receiversSchema) Run(out io.Writer) error {
	_, err := out.Write(app.ReceiverSchema())
	return err
}
