package deploy

import (
	"bytes"
	"encoding/json"
	"errors"
	"html"
	"log/slog"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

const (
	rulesFile     = "../../deploy/prometheus/rules.yaml"
	dashboardFile = "../../deploy/grafana/tocsin.json"
	pictureFile   = "../../docs/pictures/dashboard.svg"
)

// panel is one of Grafana's dashboard.
type panel struct {
	Type    string                   `json:"type"`
	Title   string                   `json:"title"`
	GridPos struct{ X, Y, W, H int } `json:"gridPos"`
	Targets []struct{ Expr string }  `json:"targets"`
}

func panels(t *testing.T) []panel {
	t.Helper()
	text, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []panel `json:"panels"`
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	return board.Panels
}

func rules(t *testing.T) *rulefmt.RuleGroups {
	t.Helper()
	groups, errs := rulefmt.ParseFile(rulesFile, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	for _, err := range errs {
		t.Error(err)
	}
	if groups == nil {
		t.FailNow()
	}
	return groups
}

// usedBy returns the metrics that an expression reads.
func usedBy(t *testing.T, expr string) []string {
	t.Helper()
	tree, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		t.Errorf("%s: %v", expr, err)
		return nil
	}
	var names []string
	parser.Inspect(tree, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			names = append(names, selector.Name)
		}
		return nil
	})
	return names
}

// isKnown reports whether a metric, or a part of a histogram, is one that Tocsin has.
func isKnown(name string) bool {
	if slices.Contains(Metrics(), name) {
		return true
	}
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if base, found := strings.CutSuffix(name, suffix); found && slices.Contains(Metrics(), base) {
			return true
		}
	}
	return false
}

func TestEachRuleReadsWhatThereIsAndLeadsToTheRunbook(t *testing.T) {
	runbook, err := os.ReadFile("../../docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	var alerts []string
	for _, group := range rules(t).Groups {
		for _, rule := range group.Rules {
			for _, name := range usedBy(t, rule.Expr) {
				if !isKnown(name) {
					t.Errorf("%s%s reads %s, which there is not", rule.Alert, rule.Record, name)
				}
			}
			if rule.Alert == "" {
				continue
			}
			alerts = append(alerts, rule.Alert)
			if !slices.Contains([]string{"critical", "warning"}, rule.Labels["severity"]) || rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
				t.Errorf("%s: labels %v, annotations %v", rule.Alert, rule.Labels, rule.Annotations)
			}
			if want := "docs/runbook.md#" + strings.ToLower(rule.Alert); rule.Annotations["runbook_url"] != want || !strings.Contains(string(runbook), "\n## "+rule.Alert+"\n") {
				t.Errorf("%s leads to %q, want a section %s", rule.Alert, rule.Annotations["runbook_url"], want)
			}
		}
	}
	for _, section := range regexp.MustCompile(`(?m)^## (Tocsin\w+)$`).FindAllStringSubmatch(string(runbook), -1) {
		if !slices.Contains(alerts, section[1]) {
			t.Errorf("the runbook describes %s, which no rule raises", section[1])
		}
	}
	tests, err := os.ReadFile("../../deploy/prometheus/rules_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, alert := range alerts {
		raised := strings.LastIndex(string(tests), "alertname: "+alert+"\n")
		if raised < 0 || !strings.Contains(string(tests)[raised:], "{alertname: "+alert+", ") {
			t.Errorf("no test of deploy/prometheus/rules_test.yaml raises %s and has it clear", alert)
		}
	}
}

func TestEachMetricIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(tocsin_\\w+)").FindAllStringSubmatch(string(text), -1) {
		documented = append(documented, row[1])
		if !slices.Contains(Metrics(), row[1]) {
			t.Errorf("docs/metrics.md describes %s, which there is not", row[1])
		}
	}
	for _, name := range Metrics() {
		if strings.HasPrefix(name, "tocsin_") && !slices.Contains(documented, name) {
			t.Errorf("docs/metrics.md does not describe %s", name)
		}
	}
}

func TestTheRulesPassPromtool(t *testing.T) {
	for _, args := range [][]string{
		{"check", "rules", "--lint=all", "--lint-fatal", rulesFile}, {"test", "rules", "../../deploy/prometheus/rules_test.yaml"},
	} {
		out, err := exec.CommandContext(t.Context(), "promtool", args...).CombinedOutput()
		if errors.Is(err, exec.ErrNotFound) {
			t.Fatal("promtool is missing: it comes with Prometheus; put it in the PATH")
		}
		if err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

func TestTheDashboardIsUpToDateAndItsQueriesWork(t *testing.T) {
	text, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	generated, err := exec.CommandContext(t.Context(), "go", "run", "./dashboard").Output()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(text, generated) {
		t.Error("deploy/grafana/tocsin.json is not what the generator writes: run make dashboard and commit it")
	}
	picture, err := os.ReadFile(pictureFile)
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	taken := map[[2]int]string{}
	for _, p := range panels(t) {
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("the panel %q lies over %q, or beyond the page", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if !bytes.Contains(picture, []byte(">"+html.EscapeString(p.Title)+"</text>")) {
			t.Errorf("the picture in the docs has no panel %q: run make dashboard-picture and commit it", p.Title)
		}
		if (p.Type == "row") != (len(p.Targets) == 0) {
			t.Errorf("the panel %q has %d queries", p.Title, len(p.Targets))
		}
		for _, target := range p.Targets {
			// Grafana fills these in.
			expr := strings.NewReplacer("$__rate_interval", "5m", "$job", ".+").Replace(target.Expr)
			for _, name := range usedBy(t, expr) {
				used[name] = true
				if !isKnown(name) {
					t.Errorf("the panel %q reads %s, which there is not", p.Title, name)
				}
			}
		}
	}
	for _, name := range Metrics() {
		if (used[name] || used[name+"_bucket"]) == slices.Contains(NotShown(), name) {
			t.Errorf("%s: is it shown by a panel? %v", name, used[name])
		}
	}
}
