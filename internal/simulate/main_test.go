//go:build !race

package simulate_test

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain collects garbage less often: a simulation makes much of it and keeps little, and collecting takes a third of the
// processor time of a seed.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
