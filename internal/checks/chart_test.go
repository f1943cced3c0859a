package main

import (
	"os"
	"testing"
)

func TestTheChartTakesTheSettingsThatThereAre(t *testing.T) {
	t.Parallel()
	const page = "| `TOCSIN_TICK_INTERVAL` | `1s` | x |\n| `TOCSIN_BUS_URL` | | x |\n"
	for name, c := range map[string]struct{ page, takes, want string }{
		"as it is":          {page, `"tick-interval"`, ""},
		"a new setting":     {page + "| `TOCSIN_NEW` | | x |\n", `"tick-interval"`, "settings must take new"},
		"a setting is gone": {page, `"tick-interval", "old"`, "settings takes old, which docs/settings.md does not list"},
		"a former name":     {page + "| `TOCSIN_NEW` | | x. TOCSIN_OLD is the former name. |\n", `"tick-interval", "new"`, "settings must take old"},
		"a secret":          {page, `"tick-interval", "bus-url"`, "settings must take bus-url, or"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, dir, settingsPage, c.page)
			write(t, dir, chartSchema, `{"properties": {"settings": {"propertyNames": {"enum": [`+c.takes+`]}}}}`)
			found, err := checkChartSettings(os.DirFS(dir))
			if err != nil {
				t.Fatal(err)
			}
			expectFinding(t, found, c.want)
		})
	}
}
