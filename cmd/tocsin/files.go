package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	api "tocsin/client"
	"tocsin/internal/app"
	"tocsin/internal/rulefile"
	"tocsin/rules"
)

// The commands on files talk to a server, so that the role of a token, the checks and the audit log
// apply as for every other change.

// ruleFiles are the names of these commands from when they only handled rules.
type ruleFiles struct {
	Export ruleExport  `cmd:"" help:"The same as export --kind rules."`
	Diff   filesDiff   `cmd:"" help:"The same as diff."`
	Apply  filesApply  `cmd:"" help:"The same as apply."`
	Schema filesSchema `cmd:"" help:"The same as schema."`
}

type exportFlags struct {
	serverFlags

	File string   `help:"File to write; by default standard output." short:"f" placeholder:"FILE"`
	Name []string `help:"Only entries with one of these names; * matches any characters." placeholder:"NAME"`
}

type filesExport struct {
	exportFlags

	Kind []string `help:"What to write: webhooks, users, teams, routes (the routing policy), rules, silences (only those that recur), views (only those that are shared)." default:"webhooks,rules" enum:"webhooks,users,teams,routes,rules,silences,views"`
}

// Run exports.
func (e *filesExport) Run(ctx context.Context, out io.Writer) error {
	return e.export(ctx, out, e.Kind)
}

type ruleExport struct{ exportFlags }

// Run exports rules.
func (e *ruleExport) Run(ctx context.Context, out io.Writer) error {
	return e.export(ctx, out, []string{rulefile.Rules})
}

func (e *exportFlags) export(ctx context.Context, out io.Writer, kinds []string) error {
	server, err := e.open()
	if err != nil {
		return err
	}
	document := map[string][]any{}
	for _, kind := range kinds {
		var list []any
		switch kind {
		case rulefile.Webhooks:
			list, err = exportedWebhooks(ctx, server)
		case rulefile.Users:
			list, err = exportedUsers(ctx, server)
		case rulefile.Silences:
			list, err = exportedSilences(ctx, server)
		case rulefile.Views:
			list, err = exportedViews(ctx, server)
		case rulefile.Teams:
			list, err = exportedTeams(ctx, server)
		case rulefile.Routes:
			list, err = exportedRoutes(ctx, server)
		default:
			list, err = exportedRules(ctx, server)
		}
		if err != nil {
			return err
		}
		if kind == rulefile.Routes {
			document[kind] = list // which are one policy
			continue
		}
		document[kind] = slices.DeleteFunc(list, func(entry any) bool { return !rules.NameMatches(e.Name, rulefile.Name(entry)) })
	}
	var text bytes.Buffer
	if err := rulefile.Write(&text, document, strings.TrimSuffix(e.URL, "/")+app.PathRulesSchema); err != nil {
		return err
	}
	if e.File == "" || e.File == "-" {
		_, err := out.Write(text.Bytes())
		return err
	}
	return replaceFile(e.File, text.Bytes())
}

// exportedRules returns every rule in the form of a file.
func exportedRules(ctx context.Context, server *api.ClientWithResponses) ([]any, error) {
	answer, err := server.ExportRulesWithResponse(ctx)
	if err := answered(answer, err); err != nil {
		return nil, err
	}
	var document struct {
		Rules []any `json:"rules"`
	}
	err = decode(answer.Body, &document)
	return document.Rules, err
}

// replaceFile replaces a file completely, or leaves it as it was. The file keeps its permissions, and a link leads to it
// as before. What is no file, such as /dev/stdout, is written to.
func replaceFile(path string, content []byte) (err error) {
	mode := os.FileMode(0o644)
	if was, err := os.Stat(path); err == nil {
		if !was.Mode().IsRegular() {
			return os.WriteFile(path, content, mode)
		}
		mode = was.Mode().Perm()
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return fmt.Errorf("write file: %w", err)
		}
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".tocsin-*")
	if err != nil {
		return fmt.Errorf("write file: %w", err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("write file: %w", errors.Join(err, os.Remove(file.Name())))
		}
	}()
	_, err = file.Write(content)
	if err = errors.Join(err, file.Chmod(mode), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// filesFlags select the files and the server's objects.
type filesFlags struct {
	File       []string          `help:"YAML file with webhooks, users, teams, routes, rules, silences and views; - means standard input. Several files are read as one." short:"f" required:"" placeholder:"FILE"`
	Prune      bool              `help:"Also delete entries that are not in the files, for each kind that the files list."`
	PruneName  []string          `help:"With --prune, delete only entries with one of these names; * matches any characters." placeholder:"NAME"`
	PruneLabel map[string]string `help:"With --prune, delete only rules that have all of these labels." placeholder:"KEY=VALUE;…"`
	Secrets    bool              `help:"Write the secrets of webhooks again, even if nothing shows that they differ."`
}

// read reads all files.
func (f *filesFlags) read(in io.Reader) (*rulefile.Document, error) {
	if len(f.PruneName)+len(f.PruneLabel) > 0 && !f.Prune {
		return nil, errors.New("--prune-name and --prune-label need --prune")
	}
	document := &rulefile.Document{}
	for _, name := range f.File {
		var content []byte
		var err error
		if name == "-" {
			name = "standard input"
			content, err = io.ReadAll(in)
		} else {
			content, err = os.ReadFile(name)
		}
		if err != nil {
			return nil, fmt.Errorf("read files: %w", err)
		}
		if err := document.Add(name, content); err != nil {
			return nil, err
		}
	}
	return document, nil
}

// prunes reports whether an object that has a name but no labels is deleted if it is not in the
// files.
func (f *filesFlags) prunes(name string) bool {
	return f.Prune && len(f.PruneLabel) == 0 && rules.NameMatches(f.PruneName, name)
}

// pruned is the reason for deleting an object that is not in the files.
func (f *filesFlags) pruned() string {
	why := "not in the files"
	if len(f.PruneName) > 0 {
		why += ", --prune-name " + strings.Join(f.PruneName, ",")
	}
	labels := make([]string, 0, len(f.PruneLabel))
	for _, key := range slices.Sorted(maps.Keys(f.PruneLabel)) {
		labels = append(labels, key+"="+f.PruneLabel[key])
	}
	if len(labels) > 0 {
		why += ", --prune-label " + strings.Join(labels, ";")
	}
	return why
}

type filesApply struct {
	serverFlags
	filesFlags

	DryRun bool `help:"Only show what would change."`
}

// Run applies.
func (a *filesApply) Run(ctx context.Context, out io.Writer) error {
	p, err := a.plan(ctx, &a.filesFlags)
	if err != nil {
		return err
	}
	if err := p.print(out); err != nil {
		return err
	}
	if !a.DryRun {
		if err := p.run(ctx); err != nil {
			return err
		}
	}
	return p.sum(out, a.DryRun)
}

type filesDiff struct {
	serverFlags
	filesFlags
}

// errorOfDiff is the exit code if the comparison fails.
const errorOfDiff = 2

// Run compares.
func (d *filesDiff) Run(ctx context.Context, out io.Writer) error {
	p, err := d.plan(ctx, &d.filesFlags)
	if err == nil {
		err = errors.Join(p.print(out), p.sum(out, true))
	}
	switch {
	case err != nil:
		return exitError{code: errorOfDiff, err: err}
	case p.differs():
		return exitError{code: 1}
	}
	return nil
}

type filesSchema struct{}

// Run prints the schema.
func (filesSchema) Run(out io.Writer) error {
	text, err := app.RulesSchema()
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}
