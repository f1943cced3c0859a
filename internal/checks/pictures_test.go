package main

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestScreenshotsAreNotMuchOlderThanTheWebApplication has git say when each path was last committed.
func TestScreenshotsAreNotMuchOlderThanTheWebApplication(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	committed := map[string]time.Duration{"web/src": 100 * day, "docs/pictures/fresh.webp": 71 * day, "docs/pictures/newer.webp": 200 * day, "docs/pictures/old.webp": 69 * day}
	git := func(_ context.Context, args ...string) (string, error) {
		at, known := committed[args[len(args)-1]]
		if !known {
			return "", nil
		}
		return strconv.FormatInt(int64(at.Seconds()), 10) + "\n", nil
	}
	tracked := []string{"docs/pictures/fresh.webp", "docs/pictures/newer.webp", "docs/pictures/new.webp", "docs/pictures/old.webp", "docs/pictures/drawn.svg", "web/public/old.webp"}
	found, err := checkScreenshots(t.Context(), git, tracked)
	if err != nil || len(found) != 1 || !strings.HasPrefix(found[0], "docs/pictures/old.webp was taken 31 days before") {
		t.Errorf("%q, %v", found, err)
	}
	committed["docs/pictures/old.webp"] = 70 * day
	if found, err := checkScreenshots(t.Context(), git, tracked); err != nil || len(found) > 0 {
		t.Errorf("30 days are refused: %q, %v", found, err)
	}
}
