package main

import (
	"context"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"
)

// screenshotsLast is how much older than the web application a screenshot may be.
const screenshotsLast = 30 * 24 * time.Hour

// takeAgain is what to do about an old screenshot.
const takeAgain = "run make run, and make pictures URL='the link that it prints'"

// screenshot reports whether a file is a screenshot of the web application.
func screenshot(name string) bool {
	return path.Dir(name) == "docs/pictures" && path.Ext(name) == ".webp"
}

// checkScreenshots refuses screenshots in the documentation that are much older than the last change of the web
// application: they may show pages that look different now, although all of their labels are still there.
func checkScreenshots(ctx context.Context, git runGit, tracked []string) ([]string, error) {
	changed, err := committedAt(ctx, git, "web/src")
	if err != nil {
		return nil, err
	}
	var findings []string
	for _, name := range tracked {
		if !screenshot(name) {
			continue
		}
		taken, err := committedAt(ctx, git, name)
		if err != nil {
			return nil, err
		}
		if days := int(changed.Sub(taken).Hours() / 24); !taken.IsZero() && changed.Sub(taken) > screenshotsLast {
			findings = append(findings, fmt.Sprintf("%s was taken %d days before the last change of web/src: %s", name, days, takeAgain))
		}
	}
	return findings, nil
}

// committedAt returns when a path was last committed; zero where it never was.
func committedAt(ctx context.Context, git runGit, name string) (time.Time, error) {
	out, err := git(ctx, "log", "-1", "--format=%ct", "--", name)
	if err != nil {
		return time.Time{}, fmt.Errorf("find the age of %s: %w", name, err)
	}
	if out = strings.TrimSpace(out); out == "" {
		return time.Time{}, nil
	}
	seconds, err := strconv.ParseInt(out, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("find the age of %s: %w", name, err)
	}
	return time.Unix(seconds, 0), nil
}
