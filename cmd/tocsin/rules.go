package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"tocsin/internal/app"
	"tocsin/internal/rulefile"
)

// ruleFiles are the commands about rules as files. They speak to a server, so
// that a token's role, the checks and the audit log are those of every change.
type ruleFiles struct {
	Export ruleExport `cmd:"" help:"Write rules as YAML, defaults left out and webhooks by name."`
	Diff   ruleDiff   `cmd:"" help:"Tell what applying files would change. Ends with 0 when nothing, 1 when something, 2 or more on an error."`
	Apply  ruleApply  `cmd:"" help:"Make rules be as files say: all of it, or nothing. Rules that are not in the files are left alone."`
	Schema ruleSchema `cmd:"" help:"Print the JSON Schema of the files, for editors."`
}

type ruleExport struct {
	serverFlags

	File string   `help:"File to write; standard output by default." short:"f" placeholder:"FILE"`
	Name []string `help:"Only rules of these names, in which * stands for any run of characters." placeholder:"NAME"`
}

// Run exports.
func (e *ruleExport) Run(ctx context.Context, out io.Writer) error {
	server, err := e.open()
	if err != nil {
		return err
	}
	list, err := server.export(ctx)
	if err != nil {
		return err
	}
	if len(e.Name) > 0 {
		list = slices.DeleteFunc(list, func(rule any) bool { return !named(rule, e.Name) })
	}
	var text bytes.Buffer
	if err := rulefile.Write(&text, list, server.base+app.PathRulesSchema); err != nil {
		return err
	}
	if e.File == "" || e.File == "-" {
		_, err := out.Write(text.Bytes())
		return err
	}
	return replaceFile(e.File, text.Bytes())
}

// named reports whether a rule has one of some names.
func named(rule any, patterns []string) bool {
	fields, _ := rule.(map[string]any)
	name, _ := fields["name"].(string)
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		expression := `(?s)\A` + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, `.*`) + `\z`
		return regexp.MustCompile(expression).MatchString(name)
	})
}

// replaceFile writes a file whole, or leaves what was there.
func replaceFile(path string, content []byte) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), ".tocsin-*")
	if err != nil {
		return fmt.Errorf("write rules: %w", err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("write rules: %w", errors.Join(err, os.Remove(file.Name())))
		}
	}()
	_, err = file.Write(content)
	if err = errors.Join(err, file.Chmod(0o644), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// filesFlags say which rules are meant.
type filesFlags struct {
	File  []string `help:"YAML file with rules; - is standard input. Several files count as one." short:"f" required:"" placeholder:"FILE"`
	Prune bool     `help:"Also delete every rule that is not in the files."`
}

// read returns the rules of all files.
func (f *filesFlags) read(in io.Reader) (*rulefile.Document, error) {
	document := &rulefile.Document{Rules: []any{}}
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
			return nil, fmt.Errorf("read rules: %w", err)
		}
		if err := document.Add(name, content); err != nil {
			return nil, err
		}
	}
	return document, nil
}

type ruleApply struct {
	serverFlags
	filesFlags

	DryRun bool `help:"Only tell what would change."`
}

// Run applies.
func (a *ruleApply) Run(ctx context.Context, out io.Writer) error {
	_, err := a.apply(ctx, out, &a.filesFlags, a.DryRun)
	return err
}

type ruleDiff struct {
	serverFlags
	filesFlags
}

// errorOfDiff is the exit code of a comparison that could not be made.
const errorOfDiff = 2

// Run compares.
func (d *ruleDiff) Run(ctx context.Context, out io.Writer) error {
	done, err := d.apply(ctx, out, &d.filesFlags, true)
	switch {
	case err != nil:
		return exitError{code: errorOfDiff, err: err}
	case done.differs():
		return exitError{code: 1}
	}
	return nil
}

// apply sends files to the server and prints what it answers.
func (f *serverFlags) apply(ctx context.Context, out io.Writer, files *filesFlags, dryRun bool) (applied, error) {
	server, err := f.open()
	if err != nil {
		return applied{}, err
	}
	document, err := files.read(os.Stdin)
	if err != nil {
		return applied{}, err
	}
	done, err := server.apply(ctx, document, files.Prune, dryRun)
	if wrong, ok := errors.AsType[problem](err); ok && len(wrong.Errors) > 0 {
		for _, e := range wrong.Errors {
			if _, err := fmt.Fprintf(os.Stderr, "%s: %s\n", document.Locate(e.Field), e.Message); err != nil {
				return done, err
			}
		}
		return done, fmt.Errorf("%s; nothing was changed", wrong.Detail)
	}
	if err != nil {
		return done, err
	}
	return done, done.print(out, dryRun)
}

type ruleSchema struct{}

// Run prints the schema.
func (ruleSchema) Run(out io.Writer) error {
	text, err := app.RulesSchema()
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}
