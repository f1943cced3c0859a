package main

import (
	"context"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

const prefix = "TOCSIN_"

// warnOfUnread logs the environment variables that look like settings but are not.
func warnOfUnread(ctx context.Context, logger *slog.Logger, parser *kong.Kong) {
	for _, u := range unreadOf(os.Environ(), variables(parser.Model.Node)) {
		attributes := []slog.Attr{slog.String("name", u.name)}
		if u.nearest != "" {
			attributes = append(attributes, slog.String("nearest", u.nearest))
		}
		logger.LogAttrs(ctx, slog.LevelWarn, "an environment variable is not a setting, and is ignored; correct its name, or remove it", attributes...)
	}
}

// variables returns the names of the variables that the flags of all commands read.
func variables(n *kong.Node) []string {
	var names []string
	for _, f := range n.Flags {
		names = append(names, f.Envs...)
	}
	for _, child := range n.Children {
		names = append(names, variables(child)...)
	}
	return names
}

// unread is a variable that looks like a setting of Tocsin but is not.
type unread struct {
	name string
	// nearest is what was probably meant; may be empty.
	nearest string
}

// unreadOf returns the variables of an environment that no flag reads, sorted by name. kong ignores
// them, so a misspelt setting would go unnoticed. unreadOf looks only at names, and never shows a
// value.
func unreadOf(environment, known []string) []unread {
	// Variables of the tests, the benchmarks and devstack.
	tools := regexp.MustCompile(`^TOCSIN_(?:(?:TEST|DEVSTACK|BENCH|TORTURE)_.*|BIN)$`)
	var names, services []string
	for _, entry := range environment {
		name, _, _ := strings.Cut(entry, "=")
		names = append(names, name)
		// Kubernetes sets variables for each service of a namespace in each container. For a
		// service named tocsin these are TOCSIN_SERVICE_HOST, TOCSIN_PORT, TOCSIN_PORT_8080_TCP ….
		if service, found := strings.CutSuffix(name, "_SERVICE_HOST"); found {
			services = append(services, service)
		}
	}
	slices.Sort(names)
	var list []unread
	for _, name := range names {
		linked := slices.ContainsFunc(services, func(s string) bool {
			return strings.HasPrefix(name, s+"_SERVICE_") || name == s+"_PORT" || strings.HasPrefix(name, s+"_PORT_")
		})
		if strings.HasPrefix(name, prefix) && !slices.Contains(known, name) && !tools.MatchString(name) && !linked {
			list = append(list, unread{name, nearest(name, known)})
		}
	}
	return list
}

// nearest returns the known name that differs from name in only one place, by few characters, or
// "".
func nearest(name string, known []string) string {
	best, least := "", min(3, max(1, (len(name)-len(prefix))/3))+1
	for _, k := range known {
		shorter, same := min(len(name), len(k)), 0
		for same < shorter && name[same] == k[same] {
			same++
		}
		for end := 1; same < shorter && name[len(name)-end] == k[len(k)-end]; end++ {
			same++
		}
		if differ := max(len(name), len(k)) - same; differ < least {
			best, least = k, differ
		}
	}
	return best
}
