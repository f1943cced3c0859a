package clickhouse_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain reduces the number of tries of each property, because each try makes a dozen queries.
// `make test-go PKG=./internal/clickhouse CHECKS=1000` tries longer.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given {
		if err := flag.Set("rapid.checks", "40"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
