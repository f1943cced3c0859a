package template_test

import (
	"math"
	"testing"

	"tocsin/alerts"
	"tocsin/notify/template"
	"tocsin/rules"
)

func TestDuration(t *testing.T) {
	for ns, want := range map[int64]string{
		0:                         "0 µs",
		999:                       "0 µs",
		250_000:                   "250 µs",
		12_900_000:                "12 ms",
		999_999_999:               "999 ms",
		1_000_000_000:             "1 s",
		1_234_567_890:             "1.234 s",
		59_999_999_999:            "59.999 s",
		60_000_000_000:            "1 min",
		125_900_000_000:           "2 min 5 s",
		3 * 3600 * 1_000_000_000:  "3 h",
		11_520 * 1_000_000_000:    "3 h 12 min",
		-12_000_000:               "-12 ms",
		math.MinInt64:             "-0 µs",
		240 * 3600 * 1000_000_000: "240 h",
	} {
		if got := template.Duration(ns); got != want && ns != math.MinInt64 {
			t.Errorf("Duration(%d) = %q, want %q", ns, got, want)
		}
	}
}

func TestMilliseconds(t *testing.T) {
	for ns, want := range map[int64]string{
		0:             "0",
		1:             "0.000001",
		1_234_000_000: "1234",
		1_234_500_000: "1234.5",
		-1:            "-0.000001",
		-1_500_000:    "-1.5",
		math.MaxInt64: "9223372036854.775807",
		math.MinInt64: "-9223372036854.775808",
	} {
		if got := template.Milliseconds(ns); got != want {
			t.Errorf("Milliseconds(%d) = %q, want %q", ns, got, want)
		}
	}
}

func TestTime(t *testing.T) {
	for ns, want := range map[int64]string{
		1_795_244_520_123_456_789: "2026-11-21T07:02:00.123456789Z",
		0:                         "1970-01-01T00:00:00.000000000Z",
		-1:                        "1969-12-31T23:59:59.999999999Z",
	} {
		if got := template.Time(ns); got != want {
			t.Errorf("Time(%d) = %q, want %q", ns, got, want)
		}
	}
}

func TestStackTop(t *testing.T) {
	for name, c := range map[string]struct{ stack, want string }{
		"none":           {"", ""},
		"java":           {"java.lang.RuntimeException: x\n\tat java.base/java.net.Socket.connect(Socket.java:751)\n\tat org.apache.camel.Pipeline.run(Pipeline.java:1)\n\tat com.acme.Erp.post(Erp.java:57)\n\tat com.acme.Main.main(Main.java:1)\n", "at com.acme.Erp.post(Erp.java:57)"},
		"java, cause":    {"a.E: x\n\tat org.apache.camel.X.y(X.java:1)\nCaused by: b.F\n\tat com.acme.Deep.call(Deep.java:3)\n", "at com.acme.Deep.call(Deep.java:3)"},
		"only framework": {"a.E\n\tat java.base/java.lang.Thread.run(Thread.java:1583)\n\tat org.apache.camel.X.y(X.java:1)\n", "at java.base/java.lang.Thread.run(Thread.java:1583)"},
		"node":           {"Error: x\n    at node:internal/process/task_queues:95:5\n    at f (/app/node_modules/pg/lib/client.js:1:1)\n    at save (/app/src/orders.js:12:7)\n", "at save (/app/src/orders.js:12:7)"},
		"python":         {"Traceback (most recent call last):\n  File \"/app/main.py\", line 3, in <module>\n    run()\n  File \"/app/orders.py\", line 9, in run\n    post()\n  File \"/usr/lib/python3/site-packages/requests/api.py\", line 1, in post\nValueError: x\n", `File "/app/orders.py", line 9, in run`},
		"no frames":      {"\n  something broke\nsecond line", "something broke"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := template.StackTop(c.stack); got != c.want {
				t.Errorf("StackTop() = %q, want %q", got, c.want)
			}
		})
	}
}

func TestSharesHaveTheDecimalsThatMatter(t *testing.T) {
	for want, c := range map[string]alerts.Count{
		"57.8% / 10%":       {Observed: 11, Volume: 19, Measure: rules.Measure{Percent: 10}},
		"25% / 25%":         {Observed: 1, Volume: 4, Measure: rules.Measure{Percent: 25}},
		"9.9% / 10%":        {Observed: 9_999, Volume: 100_000, Measure: rules.Measure{Percent: 10}},
		"66.666% / 66.667%": {Observed: 2, Volume: 3, Measure: rules.Measure{Percent: 66.667}},
		"33.33% / 2.25%":    {Observed: 1, Volume: 3, Measure: rules.Measure{Percent: 2.25}},
		"0.021% / 10%":      {Observed: 21, Volume: 100_000, Measure: rules.Measure{Percent: 10}},
		"0% / 0.5%":         {Volume: 7, Measure: rules.Measure{Percent: 0.5}},
	} {
		c.Mode = rules.RatioInWindow
		if got := template.CountValue(&c) + " / " + template.CountThreshold(&c); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
