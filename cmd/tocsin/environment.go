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

// warnOfUnread logs the variables of the process that look like settings and are none.
func warnOfUnread(ctx context.Context, logger *slog.Logger, parser *kong.Kong) {
	for _, u := range unreadOf(os.Environ(), variables(parser.Model.Node)) {
		attributes := []slog.Attr{slog.String("name", u.name)}
		if u.nearest != "" {
			attributes = append(attributes, slog.String("nearest", u.nearest))
		}
		logger.LogAttrs(ctx, slog.LevelWarn, "an environment variable is not a setting", attributes...)
	}
}

// variables returns the names of those that some flag of some command reads.
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

// unread is a variable that looks like one of Tocsin's and is none.
type unread struct {
	name string
	// nearest is what was probably meant, or empty.
	nearest string
}

// unreadOf returns, sorted by name, the variables of an environment that no flag reads. kong
// ignores them, so that a misspelt setting would go unnoticed. It looks at names, and never shows a
// value.
func unreadOf(environment, known []string) []unread {
	// What the tests, the measurements and devstack read.
	tools := regexp.MustCompile(`^TOCSIN_(?:(?:TEST|DEVSTACK|BENCH|TORTURE)_.*|BIN)$`)
	var names, services []string
	for _, entry := range environment {
		name, _, _ := strings.Cut(entry, "=")
		names = append(names, name)
		// Kubernetes tells each container of each service of its namespace, of one that
		// is called tocsin by TOCSIN_SERVICE_HOST, TOCSIN_PORT, TOCSIN_PORT_8080_TCP ….
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

// nearest returns the known name that differs from name in one place alone, by few
// characters, or "".
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
