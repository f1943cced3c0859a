package app_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"tocsin/internal/app"
)

// TestAWrongSettingIsNamed checks that the error about a wrong setting names it, says what it must
// look like, and contains no password.
func TestAWrongSettingIsNamed(t *testing.T) {
	const (
		password = "s3cret-of-the-database"
		keywords = "host=127.0.0.1 user=tocsin password = " + password + " sslmode=maybe"
		halves   = "host=127.0.0.1 user=tocsin password=a " + password + " sslmode=disable"
	)
	for name, c := range map[string]struct {
		change func(*app.Options)
		says   []string
	}{
		"no URL of Postgres":    {func(o *app.Options) { o.PostgresURL = "localhost" }, []string{"TOCSIN_POSTGRES_URL", "postgres://user:password@host:5432/database"}},
		"Postgres is not there": {func(*app.Options) {}, []string{"TOCSIN_POSTGRES_URL", "check that it runs there", "connection refused"}},
		"a mode of Postgres":    {func(o *app.Options) { o.PostgresURL = keywords }, []string{"TOCSIN_POSTGRES_URL", "sslmode is invalid"}},
		"a password in halves":  {func(o *app.Options) { o.PostgresURL = halves }, []string{"TOCSIN_POSTGRES_URL", "keyword/value"}},
		"a mode of the bus":     {func(o *app.Options) { o.Bus.URL = keywords }, []string{"TOCSIN_BUS_URL", "sslmode is invalid"}},
		"another bus":           {func(o *app.Options) { o.Bus.URL = "nats://u:" + password + "@x:4222" }, []string{"TOCSIN_BUS_URL", "postgres://"}},
		"no URL of ClickHouse":  {func(o *app.Options) { o.ClickHouseURL = "nonsense" }, []string{"TOCSIN_CLICKHOUSE_URL", "clickhouse://user:password@host:9000/database"}},
		"another protocol":      {func(o *app.Options) { o.ClickHouseURL = "ftp://reader:" + password + "@x:9000" }, []string{"TOCSIN_CLICKHOUSE_URL", "clickhouse://"}},
		"no port":               {func(o *app.Options) { o.ClickHouseURL = "clickhouse://reader:" + password + "@x/y" }, []string{"TOCSIN_CLICKHOUSE_URL", "no port"}},
		"a short key":           {func(o *app.Options) { o.EncryptionKey = "abc" }, []string{"TOCSIN_ENCRYPTION_KEY", "openssl rand -base64 32"}},
		"a role":                {func(o *app.Options) { o.Roles = []app.Role{"cook"} }, []string{"TOCSIN_ROLES", "api, evaluate and dispatch"}},
		"a settle time":         {func(o *app.Options) { o.Settle = -time.Second }, []string{"TOCSIN_SETTLE"}},
		"a lease":               {func(o *app.Options) { o.Lease = 1 }, []string{"TOCSIN_LEASE", "at least 300ms"}},
		"a partition's lease":   {func(o *app.Options) { o.PartitionLease = 2 }, []string{"TOCSIN_PARTITION_LEASE", "at least 300ms"}},
		"an interval": {
			func(o *app.Options) { o.TickInterval = 20 * time.Second },
			[]string{"TOCSIN_TICK_INTERVAL is 20s", "TOCSIN_PARTITION_LEASE is 15s", "raise TOCSIN_PARTITION_LEASE to at least 40s", "at most 7.5s"},
		},
		"the usual interval": {func(o *app.Options) { o.PartitionLease = 1900 * time.Millisecond }, []string{"TOCSIN_TICK_INTERVAL is 1s", "at least 2s"}},
		"workers":            {func(o *app.Options) { o.Workers = -1 }, []string{"TOCSIN_EVALUATE_WORKERS"}},
		"a retry at once":    {func(o *app.Options) { o.RetrySchedule = []time.Duration{time.Second, 0} }, []string{"TOCSIN_RETRY_SCHEDULE", "pause 2"}},
		"no issuer":          {func(o *app.Options) { o.Access.OIDC.ClientSecret = password }, []string{"TOCSIN_OIDC_ISSUER", "TOCSIN_OIDC_CLIENT_ID"}},
		"a session in use":   {func(o *app.Options) { o.Access.SessionIdle = 30 * time.Second }, []string{"TOCSIN_SESSION_IDLE is 30s", "at least 2m"}},
		"an address":         {func(o *app.Options) { o.Access.AdminEmail, o.Access.AdminPassword = "ada", password }, []string{"TOCSIN_ADMIN_EMAIL", "e-mail"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := app.Options{
				PostgresURL: "postgres://tocsin:" + password + "@127.0.0.1:1/tocsin", ClickHouseURL: "http://127.0.0.1:1/x",
				EncryptionKey: key, Logger: slog.New(slog.DiscardHandler),
				// Wrong settings that no role uses are reported as well.
				Roles: []app.Role{app.RoleAPI},
			}
			c.change(&o)
			_, err := app.New(t.Context(), o)
			if err == nil {
				t.Fatal("it was taken")
			}
			for _, part := range c.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
			if strings.Contains(err.Error(), password) {
				t.Errorf("%q contains the password", err)
			}
		})
	}
}
