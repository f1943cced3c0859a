//go:build unix

package torture

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// The form [Receivers] notifies five services beside the generic webhooks, each as its preset or its kind has it. What
// simulates a service reads what a message is about from the field by which the service tells alerts apart, and the
// checker compares that with the alerts, whatever the headers say.
const (
	pagerDuty     = "pagerduty"
	jiraService   = "jsm"
	slackIncoming = "slack"
	eMail         = "email"
	jiraIssues    = "jira"
)

func services() []string { return []string{pagerDuty, jiraService, slackIncoming, eMail, jiraIssues} }

func isService(hook string) bool { return slices.Contains(services(), hook) }

// What is entered for services, and must come back with each message.
const (
	routingKey  = "0123456789abcdef0123456789abcdef"
	genieKey    = "01234567-89ab-cdef-0123-456789abcdef"
	jiraProject = "OPS"
	mailDomain  = "example.com"
)

// toServices binds the window rules, and whatever notifies the webhook a, to the services, too.
func (p *plan) toServices() {
	p.bind(services(), func(r *rule) bool { return r.counts() || slices.Contains(r.hooks, "a") })
}

// bind binds rules to more webhooks than their own.
func (p *plan) bind(more []string, is func(r *rule) bool) {
	bind := func(r *rule) {
		if is(r) {
			r.hooks = slices.Concat(r.hooks, more)
		}
	}
	for i := range p.rules {
		bind(&p.rules[i])
	}
	for i, e := range p.edits {
		if e.change == nil {
			continue
		}
		p.edits[i].change = func(r *rule) {
			r.hooks = slices.DeleteFunc(slices.Clone(r.hooks), func(hook string) bool { return slices.Contains(more, hook) })
			e.change(r)
			bind(r)
		}
	}
}

// webhook is that of a service, as the API takes it.
func (r *receiver) webhook(service string) map[string]any {
	preset := func(inputs map[string]string) map[string]any {
		return map[string]any{"kind": "generic", "preset": map[string]any{"id": service, "inputs": inputs}}
	}
	switch service {
	case pagerDuty:
		return preset(map[string]string{"routingKey": routingKey, "region": r.url(service)})
	case jiraService:
		return preset(map[string]string{"apiKey": genieKey, "base": r.url(service)})
	case eMail:
		return preset(map[string]string{
			"to": "on-call@" + mailDomain, "from": "alerts@" + mailDomain, "host": "127.0.0.1", "port": r.ways[1].port(), "security": "none",
		})
	case jiraIssues:
		return preset(map[string]string{"site": r.url(service), "user": "tocsin", "token": "secret", "project": jiraProject})
	default:
		return map[string]any{"kind": "slack", "url": r.url(service) + "/services/T0/B0/secret"}
	}
}

// receiverFolder is where the form has its presets, below the directory of the run.
const receiverFolder = "receivers"

// addressPresets copies the presets of services that are at an address of their own, as an operator may, with the address
// of their stand-ins. Jira's schedule, whose first pause is a minute, gives way to that of the run.
func (r *receiver) addressPresets(from, dir string) error {
	folder := filepath.Join(dir, receiverFolder)
	if err := os.Mkdir(folder, 0o755); err != nil { //nolint:gosec // it holds no secret
		return err
	}
	for service, change := range map[string]struct {
		pattern, to string
		times       int
	}{
		pagerDuty:   {`https://events\.pagerduty\.com`, r.url(pagerDuty), 2},
		jiraService: {`https://api\.atlassian\.com/jsm/ops/integration`, r.url(jiraService), 2},
		jiraIssues:  {`(?m)^schedule: .*$`, "", 1},
	} {
		name := service + ".yaml"
		text, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return err
		}
		pattern := regexp.MustCompile(change.pattern)
		if found := len(pattern.FindAll(text, -1)); found != change.times {
			return fmt.Errorf("%s has %d times %s, want %d", name, found, change.pattern, change.times)
		}
		text = pattern.ReplaceAll(text, []byte(change.to))
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// arrival is what a message says of itself, in the words of its receiver.
type arrival struct {
	alertID, ruleID, correlation string
	// event is what a service is sent, as the reason of a notification.
	event string
	// whole says that it describes the alert, and not only what happened to it. At Slack, what raises an alert shows it as it
	// is by then: perhaps acknowledged.
	whole bool
	// digest says that it was about many alerts: alertIDs, in the order of their ids.
	digest   bool
	alertIDs []string
}

const anID = `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`

var errNotTaken = errors.New("no message that the service takes")

// isOf says whether a message is that of a notification: about the same alert, and of the same kind.
func (r *request) isOf(n *notification, a *alert) bool {
	if r.digest != (n.Reason == aDigest) || r.hook != n.Hook || r.alertID != n.AlertID {
		return false
	}
	if !isService(r.hook) {
		return r.ruleID == n.RuleID && (a.About != anExchange || r.correlation == a.Correlation)
	}
	return (r.event == n.Reason || r.whole && n.Reason == aRaising) && (a.About != anExchange || r.correlation == a.Correlation || r.correlation == "" && r.event != aRaising)
}

// readArrival reads the body of a request to a webhook.
func readArrival(hook string, to *url.URL, header map[string][]string, body []byte) (arrival, error) {
	switch hook {
	case pagerDuty:
		return readPagerDuty(to, body)
	case jiraService:
		return readJiraService(to, header, body)
	case slackIncoming:
		return readSlack(body)
	default:
		return readGeneric(body)
	}
}

func readGeneric(body []byte) (arrival, error) {
	var message struct {
		Type string
		Data struct {
			Alerts   []string
			Alert    struct{ ID string }
			Rule     struct{ ID string }
			Exchange struct {
				CorrelationID string `json:"correlationId"`
			}
		}
	}
	err := readJSON(body, &message)
	slices.Sort(message.Data.Alerts)
	return arrival{
		alertID: message.Data.Alert.ID, ruleID: message.Data.Rule.ID, correlation: message.Data.Exchange.CorrelationID,
		digest: message.Type == "digest", alertIDs: message.Data.Alerts,
	}, err
}

func readPagerDuty(to *url.URL, body []byte) (arrival, error) {
	var event struct {
		RoutingKey string `json:"routing_key"`
		Action     string `json:"event_action"`
		Key        string `json:"dedup_key"`
		Payload    *struct {
			Summary, Source, Severity string
			Details                   struct {
				Correlation string `json:"correlation_id"`
			} `json:"custom_details"`
		}
	}
	err := readJSON(body, &event)
	a := arrival{alertID: event.Key, event: map[string]string{"trigger": aRaising, "acknowledge": anAcknowledging, "resolve": aResolution}[event.Action]}
	if err != nil || to.Path != "/"+pagerDuty+"/v2/enqueue" || event.RoutingKey != routingKey || a.alertID == "" || a.event == "" {
		return arrival{}, errors.Join(errNotTaken, err)
	}
	if a.event != aRaising {
		return a, nil
	}
	if event.Payload == nil || event.Payload.Summary == "" || event.Payload.Source == "" || event.Payload.Severity == "" {
		return arrival{}, errNotTaken
	}
	a.correlation = event.Payload.Details.Correlation
	return a, nil
}

var jiraServiceAlias = regexp.MustCompile(`^/` + jiraService + `/v2/alerts/(` + anID + `)/(acknowledge|close)$`)

func readJiraService(to *url.URL, header map[string][]string, body []byte) (arrival, error) {
	var message struct {
		Message, Alias, Source string
		Details                struct{ CorrelationID string }
	}
	err := readJSON(body, &message)
	if err != nil || !slices.Equal(header["Authorization"], []string{"GenieKey " + genieKey}) {
		return arrival{}, errors.Join(errNotTaken, err)
	}
	if path := jiraServiceAlias.FindStringSubmatch(to.Path); path != nil && to.RawQuery == "identifierType=alias" {
		return arrival{alertID: path[1], event: map[string]string{"acknowledge": anAcknowledging, "close": aResolution}[path[2]]}, nil
	}
	if to.Path != "/"+jiraService+"/v2/alerts" || message.Message == "" || message.Alias == "" {
		return arrival{}, errNotTaken
	}
	return arrival{alertID: message.Alias, event: aRaising, correlation: message.Details.CorrelationID}, nil
}

var (
	slackAlert       = regexp.MustCompile("Alert `(" + anID + ")`$")
	slackCorrelation = regexp.MustCompile("Correlation `([^`]*)`")
)

// readSlack reads the line of ids at the end of a message, as people do who search for one.
func readSlack(body []byte) (arrival, error) {
	var message struct {
		Text   string
		Blocks []struct {
			Type     string
			Fields   []any
			Elements []struct{ Text any }
		}
	}
	if err := readJSON(body, &message); err != nil {
		return arrival{}, errors.Join(errNotTaken, err)
	}
	whole := false
	for _, block := range message.Blocks {
		whole = whole || len(block.Fields) > 0
		if block.Type != "context" {
			continue
		}
		for _, element := range block.Elements {
			text, _ := element.Text.(string)
			id, correlation := slackAlert.FindStringSubmatch(text), slackCorrelation.FindStringSubmatch(text)
			if id == nil {
				continue
			}
			_, said, _ := strings.Cut(message.Text, " ")
			a := arrival{alertID: id[1], event: eventOf(said), whole: whole}
			if correlation != nil {
				a.correlation = correlation[1]
			}
			return a, nil
		}
	}
	return arrival{}, errNotTaken
}

// eventOf reads what has happened from how a text for people begins.
func eventOf(text string) string {
	switch {
	case strings.HasPrefix(text, "Acknowledged: "):
		return anAcknowledging
	case strings.HasPrefix(text, "Resolved: "):
		return aResolution
	default:
		return aRaising
	}
}

// answer is what a service answers to what it takes.
func answer(hook string) (status int, body string) {
	switch hook {
	case pagerDuty:
		return 202, `{"status":"success","message":"Event processed"}`
	case jiraService:
		return 202, `{"result":"Request will be processed"}`
	case slackIncoming:
		return 200, "ok"
	default:
		return 200, ""
	}
}

// hookOf is the first part of a path.
func hookOf(path string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return first
}
