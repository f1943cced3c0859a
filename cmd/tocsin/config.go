package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/alecthomas/kong"

	"tocsin/internal/app"
)

type config struct {
	Check     configCheck     `cmd:"" help:"Check the settings of serve without connecting to anything, and print those that differ from their defaults."`
	Reference configReference `cmd:"" help:"Print the reference of all settings as Markdown." hidden:""`
}

// configCheck has the flags of serve.
type configCheck struct{ serve }

// Run checks and prints. Misspelt variables and keys of the settings file are errors, and so are
// values that serve would refuse.
func (c *configCheck) Run(_ context.Context, out io.Writer, k *kong.Context) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if _, err := fmt.Fprintln(table, "SETTING\tVALUE\tFROM"); err != nil {
		return err
	}
	for _, f := range k.Flags() {
		from := originOf(k, f)
		if len(f.Envs) == 0 || from == "" {
			continue
		}
		if _, err := fmt.Fprintf(table, "%s\t%s\t%s\n", f.Envs[0], masked(f, fmt.Sprint(k.FlagValue(f))), from); err != nil {
			return err
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	o, err := c.replica(slog.New(slog.DiscardHandler))
	if err == nil {
		err = app.CheckOptions(o)
	}
	for _, u := range unreadOf(os.Environ(), variables(k.Model.Node)) {
		text := u.name + " is not a setting"
		if u.nearest != "" {
			text += "; " + u.nearest + " is one"
		}
		err = errors.Join(err, errors.New(text))
	}
	if err != nil {
		for line := range strings.Lines(err.Error()) {
			_, _ = fmt.Fprintf(out, "✗ %s\n", strings.TrimSpace(line))
		}
		return exitError{code: 1}
	}
	_, err = fmt.Fprintln(out, "The settings are valid. `tocsin doctor` connects to what they name.")
	return err
}

// originOf returns where a flag's value comes from; empty for its default.
func originOf(k *kong.Context, f *kong.Flag) string {
	for _, p := range k.Path {
		if p.Flag != nil && p.Flag.Value == f.Value {
			if p.Resolved {
				return "file"
			}
			return "flag"
		}
	}
	if fromEnvironment(f) {
		return "environment"
	}
	return ""
}

// secret reports whether a flag's value is secret. Its placeholder says so.
func secret(f *kong.Flag) bool {
	return slices.Contains([]string{"KEY", "PASSWORD", "SECRET", "TOKEN"}, f.PlaceHolder)
}

// masked returns a flag's value in a form that may be shown.
func masked(f *kong.Flag, value string) string {
	switch {
	case secret(f):
		return "(hidden)"
	case f.PlaceHolder == "URL":
		// User, password and parameters may be secret.
		u, err := url.Parse(value)
		if err != nil || u.Host == "" {
			return "(hidden)"
		}
		return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
	}
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(value, "map"), "["), "]")
}

// configReference prints docs/settings.md.
type configReference struct{}

// section is a section of the reference: the settings of a command that begin with one of some
// words.
type section struct {
	title string
	begin []string
}

// Run prints.
func (configReference) Run(out io.Writer, k *kong.Context) error {
	_, err := io.WriteString(out, reference(k.Model.Node))
	return err
}

// reference returns the reference of all settings.
func reference(root *kong.Node) string {
	var b strings.Builder
	b.WriteString(`# Settings

<!-- Written by "make generate" from cmd/tocsin. Do not edit. -->

Each setting can be an environment variable, a flag of the commands that use it, or a key of the YAML file that ` + "`--config` or `TOCSIN_CONFIG`" + ` names.
The flag and the key have the variable's name without ` + "`TOCSIN_`" + `, in lower case, with hyphens: ` + "`TOCSIN_TICK_INTERVAL`, `--tick-interval`, `tick-interval: 1s`" + `.
A flag overrides a variable, and a variable overrides the file. ` + "`tocsin config check`" + ` shows what is wrong with the settings, and lists those that differ from their defaults.

` + "```yaml" + `
listen: 0.0.0.0:8080
public-url: https://tocsin.example.com
outgoing-allow: [10.1.0.0/16]
retry-schedule: [1m, 5m, 30m]
oidc-role-map:
  ops: operator
  platform: admin
` + "```" + `

Durations are written as ` + "`500ms`, `30s`, `5m`, `12h`" + `, retention also as ` + "`90d`" + `. Several values are separated by commas in a variable or flag, and are a list in the file.
`)
	flags := settingsOf(root)
	config := *root.Flags[slices.IndexFunc(root.Flags, func(f *kong.Flag) bool { return f.Name == "config" })]
	flags["config"] = &config
	var order []*kong.Flag
	serve := root.Children[slices.IndexFunc(root.Children, func(n *kong.Node) bool { return n.Name == "serve" })]
	ofServer := map[string]bool{}
	for _, f := range slices.Concat(root.Flags, serve.Flags) {
		if len(f.Envs) > 0 {
			order = append(order, f)
			ofServer[f.Name] = true
		}
	}
	for _, s := range []section{
		{"Databases", []string{"postgres-", "clickhouse-", "source-"}},
		{"Server", []string{"roles", "listen", "public-url", "exchange-url", "config", "log-", "traces-", "shutdown-", "encryption-key"}},
		{"Wake-up bus", []string{"bus"}},
		{"Retention", []string{"retention-", "audit-"}},
		{"Access", []string{"access", "tenant", "admin-", "session-", "trusted-", "metrics-"}},
		{"OpenID Connect", []string{"oidc-"}},
		{"Evaluation and delivery", []string{""}},
	} {
		fmt.Fprintf(&b, "\n## %s\n\n| variable | default | what it sets |\n| --- | --- | --- |\n", s.title)
		order = slices.DeleteFunc(order, func(f *kong.Flag) bool {
			in := slices.ContainsFunc(s.begin, func(word string) bool { return strings.HasPrefix(f.Name, word) })
			if in {
				b.WriteString(row(f))
			}
			return in
		})
	}
	b.WriteString("\n## Commands that call a server\n\n| variable | default | what it sets |\n| --- | --- | --- |\n")
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		if !ofServer[name] {
			b.WriteString(row(flags[name]))
		}
	}
	return b.String()
}

// row is the row of a setting in the reference.
func row(f *kong.Flag) string {
	value := ""
	switch {
	case f.Required:
		value = "required"
	case f.Default != "":
		value = "`" + f.Default + "`"
	}
	text := f.Help
	if values := strings.Split(f.Enum, ","); f.Enum != "" {
		values = slices.DeleteFunc(values, func(v string) bool { return v == "" })
		text += " One of `" + strings.Join(values, "`, `") + "`."
	}
	return fmt.Sprintf("| `%s` | %s | %s |\n", f.Envs[0], value, strings.ReplaceAll(text, "|", "\\|"))
}
