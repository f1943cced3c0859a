package main

import (
	"os"
	"strings"
	"testing"
)

// unset takes variables away for the time of a test.
func unset(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		t.Setenv(name, "")
		if err := os.Unsetenv(name); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAMissingFlagIsNamedWithItsVariable(t *testing.T) {
	unset(t, "TOCSIN_POSTGRES_URL", "TOCSIN_CLICKHOUSE_URL", "TOCSIN_ENCRYPTION_KEY")
	parser := newParser(&cli{})
	_, err := parser.Parse([]string{"serve", "--clickhouse-url", "http://127.0.0.1:8123"})
	err = naming(err)
	const want = "missing flags: --encryption-key=KEY or TOCSIN_ENCRYPTION_KEY, --postgres-url=URL or TOCSIN_POSTGRES_URL"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if _, err := parser.Parse([]string{"users", "list", "--nonsense"}); err == nil || !strings.Contains(naming(err).Error(), "--nonsense") {
		t.Errorf("an unknown flag: %v", err)
	}
}
