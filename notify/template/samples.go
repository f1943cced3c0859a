package template

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/rules"
)

// Samples returns alerts whose exchanges contain the worst that sources can contain: nothing at
// all, texts that look like markup of every kind, bytes that are not text, and far too much of
// everything; and alerts about counts of such exchanges. Templates are tried on them when they are
// saved.
func Samples() []alerts.Instance {
	end := int64(1_795_244_521_357_557_588)
	usual := rules.Exchange{
		TenantID: "default", StartTimeNS: 1_795_244_520_123_456_789, ExecutionID: "ID-orders-1795244520-0-42",
		Environment: "production", Application: "orders", Route: "order-to-erp", Status: rules.Failed,
		EndTimeNS: &end, DurationNS: 1_234_100_799,
		ErrorType: "java.net.SocketTimeoutException", ErrorMessage: "Read timed out after 1000 ms",
		ErrorStack:    "java.net.SocketTimeoutException: Read timed out\n\tat java.base/java.net.Socket.read(Socket.java:1)\n\tat com.example.orders.ErpClient.post(ErpClient.java:57)\n",
		CorrelationID: "c-4711", Attributes: map[string]string{"http.status": "504", "customer": "ACME"},
	}
	completed := usual
	completed.Status, completed.ErrorType, completed.ErrorMessage, completed.ErrorStack = rules.Completed, "", "", ""
	markup := hostile(`"'\` + "\n\r\t\x00\x1b\u2028\u202E" + `</script><!channel> <@U1> & {{exchange.route}} {{>/etc/passwd}} {{{` + " ``` *b* \xff\xfe 😀")
	long := hostile(strings.Repeat("<&>\"\n\x01😀", 100_000))
	for i := range 2 * maxItems {
		long.Attributes[strconv.Itoa(i)] = long.ErrorMessage
	}
	exchanges := []rules.Exchange{usual, completed, {}, markup, long}
	samples := make([]alerts.Instance, 0, 2*len(exchanges))
	abouts := []rules.About{
		{Labels: map[string]string{"team": "integration"}, Owner: "integration", RunbookURL: "https://wiki.example/orders", Note: "Ask ERP first."},
		{},
		{},
		{Labels: map[string]string{"team": markup.Route}, Owner: markup.Route, Note: markup.Route},
		{Labels: map[string]string{"team": long.Route}, Owner: long.Route, RunbookURL: "https://" + strings.Repeat("x", 1900), Note: long.Route},
	}
	for i, e := range exchanges {
		samples = append(samples, alerts.Instance{
			ID: uuid.UUID{15: byte(i + 1)}, TenantID: e.TenantID, RuleID: uuid.UUID{14: 1},
			RuleName: "Failed orders", Severity: rules.Critical, State: alerts.Firing,
			Title: e.Application + " · " + e.Route + ": " + string(e.Status), Message: e.ErrorType + ": " + e.ErrorMessage,
			About: abouts[i], Exchange: e, FiredAt: time.Unix(1_795_244_522, 345_678_000).UTC(),
		})
	}
	for i, count := range []alerts.Count{
		{Observed: 7, Threshold: 5, WindowSeconds: 600, GroupBy: rules.GroupByRoute, Group: usual.Route},
		{Observed: 1, Threshold: 1, WindowSeconds: 10},
		{Observed: 0, Threshold: 5, WindowSeconds: 600},
		{Observed: 7, Threshold: 5, WindowSeconds: 5400, GroupBy: rules.GroupByApplication, Group: markup.Application},
		{Observed: math.MaxInt64, Threshold: 1_000_000, WindowSeconds: 86_400, GroupBy: rules.GroupByEnvironment, Group: long.Environment},
		{
			Mode: rules.RatioInWindow, Observed: 30, Volume: 120, ShortObserved: 8, ShortVolume: 20, WindowSeconds: 600, GroupBy: rules.GroupByRoute, Group: usual.Route,
			Measure: rules.Measure{Percent: 10, MinVolume: 50, ShortWindowSeconds: 60},
		},
		{
			Mode: rules.DurationInWindow, Observed: 9, Volume: 120, DurationNS: 2_412_000_000, WindowSeconds: 600, GroupBy: rules.GroupByRoute, Group: usual.Route,
			Measure: rules.Measure{Percentile: 95, DurationMS: 2000, MinVolume: 50},
		},
		{Mode: rules.RatioInWindow, WindowSeconds: 600, Measure: rules.Measure{Percent: 100, MinVolume: 1}},
		{Mode: rules.RatioInWindow, WindowSeconds: 86_400, Measure: rules.Measure{Percent: 0.001, MinVolume: 1}, GroupBy: rules.GroupByApplication, Group: markup.Application},
		{
			Mode: rules.DurationInWindow, Observed: math.MaxInt64, Volume: math.MaxInt64, DurationNS: math.MaxInt64, WindowSeconds: 86_400,
			Measure: rules.Measure{Percentile: 99, DurationMS: 9_000_000_000_000, MinVolume: 1_000_000}, GroupBy: rules.GroupByEnvironment, Group: long.Environment,
		},
		{Observed: 7, Threshold: 5, WindowSeconds: 600, GroupBy: rules.GroupByAttribute, GroupByAttribute: "customer", Group: usual.Attributes["customer"]},
		{Mode: rules.AbsentInWindow, Threshold: 1, WindowSeconds: 600, GroupBy: rules.GroupByRoute, Group: usual.Route},
		{Mode: rules.AbsentInWindow, Observed: 3, Threshold: 1_000_000, WindowSeconds: 86_400, GroupBy: rules.GroupByApplication, Group: markup.Application},
	} {
		sample := samples[i%len(exchanges)]
		if count.Mode == rules.AbsentInWindow {
			sample.Exchange = count.Grouping().Example(count.Group)
		}
		sample.ID, sample.RuleName, sample.Count = uuid.UUID{15: byte(len(samples) + 1)}, "Failing orders", &count
		sample.Title = count.Group + ": " + strconv.FormatInt(count.Observed, 10) + " exchanges within " + Seconds(count.WindowSeconds)
		samples = append(samples, sample)
	}
	return samples
}

// hostile returns an exchange in which every text is text.
func hostile(text string) rules.Exchange {
	return rules.Exchange{
		TenantID: text, ExecutionID: text, Environment: text, Application: text, Route: text, Status: rules.Status(text),
		StartTimeNS: -1, DurationNS: -1, ErrorType: text, ErrorMessage: text, ErrorStack: text, CorrelationID: text,
		Attributes: map[string]string{text: text, "http.status": text},
	}
}
