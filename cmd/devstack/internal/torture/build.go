//go:build unix

package torture

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// jumping is the number of the replica whose clock jumps.
const jumping = 1

// clockVariable contains how often the clock of that replica jumps, and its offset after each jump
// in turn.
const clockVariable = "TOCSIN_TORTURE_CLOCK"

// jumpingClock is the only file in which the replica with the jumping clock differs from the
// product.
//
// The product takes every reading from the clock that main passes to the application, so the binary
// is built with main's clock replaced: libraries that intercept calls do not work on a static
// binary, and the machine's clock must not be set. The readings have no monotonic part, so the
// jumps are harsher than those of a real clock.
const jumpingClock = `package main

import (
	"os"
	"strings"
	"time"
)

func jumpingClock() func() time.Time {
	period, list, _ := strings.Cut(os.Getenv("` + clockVariable + `"), ":")
	every, err := time.ParseDuration(period)
	if err != nil {
		panic(err)
	}
	var errors []time.Duration
	for text := range strings.SplitSeq(list, ",") {
		wrong, err := time.ParseDuration(text)
		if err != nil {
			panic(err)
		}
		errors = append(errors, wrong)
	}
	began := time.Now()
	return func() time.Time {
		now := time.Now()
		return now.Add(errors[int(now.Sub(began)/every)%len(errors)]).Round(0)
	}
}
`

// Programs are the paths of the product and its variant.
type Programs struct {
	// Tocsin is the product.
	Tocsin string
	// Jumping is the product with a clock that jumps.
	Jumping string
	// Receivers is the folder of the presets that are built into it.
	Receivers string
}

// Build builds both from the checkout at root.
func Build(ctx context.Context, root, dir string) (Programs, error) {
	built := Programs{Tocsin: filepath.Join(dir, "tocsin"), Receivers: presetsOf(root)}
	if err := compile(ctx, root, "-o", built.Tocsin, "./cmd/tocsin"); err != nil {
		return Programs{}, err
	}
	var err error
	built.Jumping, err = buildJumping(ctx, root, dir)
	return built, err
}

// presetsOf returns the folder of the presets in a checkout.
func presetsOf(root string) string { return filepath.Join(root, "notify", "preset", "receivers") }

// buildJumping builds the variant.
func buildJumping(ctx context.Context, root, dir string) (string, error) {
	source := filepath.Join(root, "cmd", "tocsin", "main.go")
	content, err := os.ReadFile(source)
	if err != nil {
		return "", err
	}
	changed := bytes.Replace(content, []byte("Clock: time.Now,"), []byte("Clock: jumpingClock(),"), 1)
	if bytes.Equal(changed, content) {
		return "", errors.New("cmd/tocsin/main.go does not hand a clock to the application as it did")
	}
	overlay := map[string]map[string]string{"Replace": {
		source: filepath.Join(dir, "main.go"),
		filepath.Join(filepath.Dir(source), "jumping_clock.go"): filepath.Join(dir, "jumping_clock.go"),
	}}
	encoded, err := json.Marshal(overlay)
	if err != nil {
		return "", err
	}
	for name, text := range map[string][]byte{"main.go": changed, "jumping_clock.go": []byte(jumpingClock), "overlay.json": encoded} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return "", err
		}
	}
	path := filepath.Join(dir, "tocsin-jumping")
	return path, compile(ctx, root, "-overlay", filepath.Join(dir, "overlay.json"), "-o", path, "./cmd/tocsin")
}

func compile(ctx context.Context, root string, args ...string) error {
	command := exec.CommandContext(ctx, "go", append([]string{"build", "-trimpath"}, args...)...)
	command.Dir = root
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("build tocsin: %w: %s", err, said)
	}
	return nil
}
