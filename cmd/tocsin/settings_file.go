package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"
)

// settingsFile names a YAML file with settings. The file is one mapping from flag names, without
// leading dashes, to values: texts, numbers and booleans as a flag takes them, lists for flags that
// take several values, and mappings for those that take pairs. One file serves every command; a
// command ignores settings that it does not have.
//
// A flag takes precedence over an environment variable, and that over the file. A key that no
// command knows is an error.
type settingsFile string

// BeforeResolve reads the file, if one is named.
func (settingsFile) BeforeResolve(app *kong.Kong, ctx *kong.Context, trace *kong.Path) error {
	name, _ := ctx.FlagValue(trace.Flag).(settingsFile)
	if name == "" {
		return nil
	}
	text, err := os.ReadFile(string(name))
	if err != nil {
		return fmt.Errorf("--config or TOCSIN_CONFIG: %w", err)
	}
	values, err := parseSettings(text, settingsOf(app.Model.Node))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	ctx.AddResolver(kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, f *kong.Flag) (any, error) {
		value, given := values[f.Name]
		if !given || fromEnvironment(f) {
			return nil, nil //nolint:nilnil // kong's way to say: nothing
		}
		return value, nil
	}))
	return nil
}

// fromEnvironment reports whether a variable sets a flag's value.
func fromEnvironment(f *kong.Flag) bool {
	return slices.ContainsFunc(f.Envs, func(name string) bool { _, set := os.LookupEnv(name); return set })
}

// settingsOf returns the flags of all commands that are settings, by name: those that have an
// environment variable.
func settingsOf(n *kong.Node) map[string]*kong.Flag {
	flags := map[string]*kong.Flag{}
	_ = kong.Visit(n, func(v kong.Visitable, next kong.Next) error {
		if f, ok := v.(*kong.Flag); ok && len(f.Envs) > 0 && flags[f.Name] == nil {
			flags[f.Name] = f
		}
		return next(nil)
	})
	// A file cannot name another file.
	delete(flags, "config")
	return flags
}

// parseSettings returns the values of a document in the form in which flags take them.
func parseSettings(text []byte, known map[string]*kong.Flag) (map[string]string, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document, more yaml.Node
	if err := decoder.Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		// The error may quote a value, which may be a secret.
		return nil, errors.New("the file is not YAML" + lineOf(err))
	}
	if err := decoder.Decode(&more); err == nil {
		return nil, fmt.Errorf("line %d: the file contains several documents; put all settings into one", more.Line)
	} else if !errors.Is(err, io.EOF) {
		return nil, errors.New("the file is not YAML" + lineOf(err))
	}
	if len(document.Content) == 0 {
		return map[string]string{}, nil
	}
	root := document.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, errors.New("the file must be one mapping, with a line such as `listen: 0.0.0.0:8080` for each setting")
	}
	values := map[string]string{}
	var errs []error
	for i := 0; i < len(root.Content); i += 2 {
		key, node := root.Content[i], root.Content[i+1]
		flag := settingNamed(key.Value, known)
		if flag == nil {
			errs = append(errs, fmt.Errorf("line %d: unknown setting %s%s", key.Line, key.Value, suggestion(key.Value, known)))
			continue
		}
		if _, twice := values[flag.Name]; twice {
			errs = append(errs, fmt.Errorf("line %d: %s is set twice; remove one of the lines", key.Line, flag.Name))
			continue
		}
		value, err := settingOf(flag, node)
		if err != nil {
			errs = append(errs, fmt.Errorf("line %d: %s %w", node.Line, key.Value, err))
		}
		values[flag.Name] = value
	}
	return values, errors.Join(errs...)
}

// settingNamed returns the flag of a setting with a name, which may be a former one; nil if there is none.
func settingNamed(name string, known map[string]*kong.Flag) *kong.Flag {
	if f := known[name]; f != nil {
		return f
	}
	for _, f := range known {
		if slices.Contains(f.Aliases, name) {
			return f
		}
	}
	return nil
}

// lineOf returns the line in a YAML error.
func lineOf(err error) string {
	_, rest, found := strings.Cut(err.Error(), "line ")
	if !found {
		return ""
	}
	number, _, _ := strings.Cut(rest, ":")
	return ": see line " + number
}

func suggestion(name string, known map[string]*kong.Flag) string {
	variable := func(name string) string { return prefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_")) }
	byVariable := map[string]string{}
	var variables []string
	for k := range known {
		byVariable[variable(k)] = k
		variables = append(variables, variable(k))
	}
	slices.Sort(variables)
	// The key may be the variable, or the name in another style.
	written := strings.TrimPrefix(strings.ReplaceAll(strings.ToUpper(name), "_", "-"), "TOCSIN-")
	if found := nearest(variable(strings.ToLower(written)), variables); found != "" {
		return "; " + byVariable[found] + " is one"
	}
	return "; docs/settings.md lists them"
}

// settingOf returns the text of a value for a flag.
func settingOf(f *kong.Flag, node *yaml.Node) (string, error) {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	switch {
	case node.Kind == yaml.ScalarNode && node.Tag != "!!null":
		return node.Value, nil
	case node.Kind == yaml.SequenceNode && f.IsSlice():
		var list []string
		for _, item := range node.Content {
			if item.Kind != yaml.ScalarNode {
				return "", errors.New("takes a list of single values")
			}
			list = append(list, item.Value)
		}
		return kong.JoinEscaped(list, f.Tag.Sep), nil
	case node.Kind == yaml.MappingNode && f.IsMap():
		var pairs []string
		for i := 0; i < len(node.Content); i += 2 {
			if node.Content[i+1].Kind != yaml.ScalarNode {
				return "", errors.New("takes a mapping to single values")
			}
			pairs = append(pairs, node.Content[i].Value+"="+node.Content[i+1].Value)
		}
		return kong.JoinEscaped(pairs, f.Tag.MapSep), nil
	case node.Kind == yaml.ScalarNode:
		return "", errors.New("has no value; remove the line for the default")
	case f.IsMap():
		return "", errors.New("takes a mapping")
	case f.IsSlice():
		return "", errors.New("takes a list")
	}
	return "", errors.New("takes a single value")
}
