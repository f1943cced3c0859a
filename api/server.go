// Package api answers HTTP.
//
// openapi.yaml is the only description of the API: the server's types and interface are generated
// from it, and so are the browser's. A handler turns a request into a call of one of the small
// interfaces that are declared next to the handlers, and the answer into generated types. Decisions
// are left to stores and domain packages.
//
// Every method of these interfaces acts for one tenant: objects of another tenant do not exist and
// are a fault of kind NotFound. Errors that a caller can act upon are faults; every other error is
// internal, logged and not shown. Slices may be nil if they are empty. All methods are safe for
// concurrent use.
//
//	request ─▶ request id ─▶ log ─▶ recover ─▶ host ─▶ cross-origin ─▶ /healthz, /readyz
//	                                                         ├──▶ /metrics: its token
//	                                                         ├──▶ /api/openapi.json, /api/docs
//	                                                         ├──▶ /slack/interactions: signature ─▶ press of a button
//	                                                         ├──▶ /api/v1: compression ─▶ identity ─▶ time limit ─▶ strict JSON ─▶ handler
//	                                                         └──▶ anything else: the web application
//
// [Options.Identify] is the one place that decides who makes a request. All other code reads this
// from the request's context, and a store is never asked without a tenant. openapi.yaml names the
// role that each operation needs. The person who changes something is passed on in the context
// ([access.As]) and recorded in the audit log. Errors also leave through one place (problem.go): a
// fault's kind becomes a status. An error without a kind becomes a 500 that shows only the request
// id, under which the log has the details.
//
// Streams of events hold no database connection. One poller for each tenant reads the state of the
// inbox while at least one page listens. A page that reads too slowly is cut off and reconnects.
package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"tocsin/alerts"
	"tocsin/evaluator/preview"
	"tocsin/internal/access"
	"tocsin/internal/fault"
	"tocsin/notify"
	"tocsin/notify/preset"
	"tocsin/rules"
)

// Options configures the API. Fields without a default must be set.
type Options struct {
	Rules     RuleStore
	Webhooks  WebhookStore
	Silences  SilenceStore
	Routing   RoutingStore
	Inbox     Inbox
	Handling  Handling
	Teams     TeamStore
	Bulk      Bulk
	Reading   Reading
	Folder    Folder
	Issues    Issues
	Views     ViewStore
	Activity  Activity
	Previewer Previewer
	Exchanges Exchanges
	Explainer Explainer
	// Texts writes the titles and messages of tests and previews.
	Texts preview.Texts
	// ExchangeURL returns where people see an alert's exchange; "" if there is no such place. Nil
	// means "" for all.
	ExchangeURL func(*alerts.Instance) string
	// Renderer and Sender make and send the messages of tests and previews.
	Renderer      notify.Renderer
	Sender        Sender
	Notifications Notifications
	Status        StatusSource
	Past          SystemPast
	Replicas      Replicas
	Keys          Keys
	Reconciler    Reconciler
	InboxStates   InboxStates
	// Missed finds what reconnecting pages have missed. Without it, they are not notified.
	Missed Missed
	// Receivers are the receivers that webhooks can be for; nil means none.
	Receivers *preset.Set
	// Slack is the store for button presses. Without it, there are no buttons.
	Slack SlackStore
	// SlackCaller is required with Slack.
	SlackCaller SlackCaller
	// Checks are the dependencies that /readyz and the status check.
	Checks []Check
	// CheckRule returns what is wrong with a definition's templates.
	CheckRule func(*rules.Definition) []fault.Field
	// CheckWebhook returns what is wrong with a webhook's URL, headers, secret and template. Names
	// and the bounds of numbers are checked before.
	CheckWebhook func(*notify.Webhook) []fault.Field
	// Metrics answers /metrics. If it is nil, Web answers.
	Metrics http.Handler
	// MetricsToken is required by /metrics; if it is empty, /metrics is open.
	MetricsToken string
	// Web answers everything outside the API.
	Web http.Handler

	// Authenticator lets people and programs in. Users, Tokens and Audit are its stores for administrators.
	Authenticator *access.Authenticator
	Users         UserStore
	Tokens        TokenStore
	Audit         AuditReader
	// SingleSignOn is the sign-in through a provider; nil means that there is none.
	SingleSignOn *SingleSignOn
	// Identify returns who makes a request. Its error is a fault or an [echo.HTTPError]. By default
	// it asks the Authenticator for the request's token or session.
	Identify func(*http.Request) (Identity, error)
	// Open says that nobody has to sign in, because Identify lets everybody in.
	Open bool
	// Tenant is the tenant of the first administrator, "default" by default.
	Tenant string

	// ReplicaID and Version identify this process and its program.
	ReplicaID string
	Version   string

	// DeadAfter is the silence after which a replica is shown as dead; 1 min by default.
	DeadAfter time.Duration

	// ListenAddress is the address that the server listens on, "host:port". Its host may be used in
	// requests; if it is not a specific host, any IP address may be used.
	ListenAddress string
	// PublicURL is the address of the server for people, if it is not ListenAddress.
	PublicURL string
	// TrustedProxies are the proxies whose X-Forwarded-For is trusted to name the client.
	TrustedProxies []netip.Prefix

	Log *slog.Logger
	Now func() time.Time
	// Clock returns the present instant by the clock of the store. What people choose is compared with
	// it, and not with that of this process: it also decides later.
	Clock func(ctx context.Context) (time.Time, error)

	// RequestTimeout bounds every call except streams; 15 s by default. Calls about many alerts, messages, rules or
	// exchanges have three times as long.
	RequestTimeout time.Duration
	// InboxInterval is the time between two looks at an inbox; 1 s by default.
	InboxInterval time.Duration
	// Heartbeat is the time between two beats of a stream; 15 s by default.
	Heartbeat time.Duration
	// MaxStreams bounds the streams of this process; 1,000 by default.
	MaxStreams int
}

// Check checks one dependency.
type Check struct {
	// Name is shown to operators, such as "postgres".
	Name string
	// Required says that a replica without it is not ready.
	Required bool
	// Ask returns nil if the dependency can be used.
	Ask func(context.Context) error
}

func (o *Options) applyDefaults() {
	if o.Tenant == "" {
		o.Tenant = "default"
	}
	if o.DeadAfter == 0 {
		o.DeadAfter = time.Minute
	}
	if o.RequestTimeout == 0 {
		o.RequestTimeout = 15 * time.Second
	}
	if o.InboxInterval == 0 {
		o.InboxInterval = time.Second
	}
	if o.Heartbeat == 0 {
		o.Heartbeat = 15 * time.Second
	}
	if o.MaxStreams == 0 {
		o.MaxStreams = 1000
	}
}

func (o *Options) validate() error {
	absent := map[string]bool{
		"Rules": o.Rules == nil, "Webhooks": o.Webhooks == nil, "Silences": o.Silences == nil, "Routing": o.Routing == nil, "Inbox": o.Inbox == nil, "Handling": o.Handling == nil, "Teams": o.Teams == nil,
		"Bulk": o.Bulk == nil, "Reading": o.Reading == nil, "Folder": o.Folder == nil, "Issues": o.Issues == nil, "Views": o.Views == nil, "Activity": o.Activity == nil, "Previewer": o.Previewer == nil, "Exchanges": o.Exchanges == nil, "Explainer": o.Explainer == nil, "Texts": o.Texts == nil, "Renderer": o.Renderer == nil, "Sender": o.Sender == nil,
		"Notifications": o.Notifications == nil, "Status": o.Status == nil, "Past": o.Past == nil, "InboxStates": o.InboxStates == nil,
		"Replicas": o.Replicas == nil, "Keys": o.Keys == nil, "Reconciler": o.Reconciler == nil,
		"CheckRule": o.CheckRule == nil, "CheckWebhook": o.CheckWebhook == nil,
		"SlackCaller":   o.Slack != nil && o.SlackCaller == nil,
		"Authenticator": o.Authenticator == nil, "Users": o.Users == nil, "Tokens": o.Tokens == nil, "Audit": o.Audit == nil,
		"Web": o.Web == nil, "Log": o.Log == nil, "Now": o.Now == nil, "Clock": o.Clock == nil,
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(absent)) {
		if absent[name] {
			errs = append(errs, fmt.Errorf("api: Options.%s is required", name))
		}
	}
	if o.RequestTimeout < 0 || o.InboxInterval < 0 || o.Heartbeat < 0 || o.MaxStreams < 0 {
		errs = append(errs, errors.New("api: no duration or bound in Options may be negative"))
	}
	return errors.Join(errs...)
}

// Server answers HTTP. It is made by [New] or [NewMonitor] and safe for concurrent use.
type Server struct {
	echo *echo.Echo
	// hub is nil if there are no streams.
	hub    *hub
	health *health
}

// server holds the handlers of the operations.
type server struct {
	Options

	// secure says that people connect only over https.
	secure    bool
	validator *rules.Validator
	// previews holds a token for each preview under way.
	previews  chan struct{}
	hub       *hub
	health    *health
	startedAt time.Time
}

var _ StrictServerInterface = (*server)(nil)

// New returns a server. It starts nothing; [Server.Shutdown] ends its streams.
func New(o Options) (*Server, error) {
	o.applyDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	public, err := o.public()
	if err != nil {
		return nil, err
	}
	document, err := servedDocument()
	if err != nil {
		return nil, err
	}
	s := &server{
		Options:   o,
		validator: rules.NewValidator(),
		previews:  make(chan struct{}, maxPreviews),
		hub:       newHub(o.InboxStates, o.Log, o.InboxInterval, o.MaxStreams),
		health:    newHealth(o.Checks, o.Log, o.Now),
		startedAt: o.Now(),
		secure:    public != nil && public.Scheme == "https",
	}
	if s.Identify == nil {
		s.Identify = s.credentials
	}
	e, err := s.router(document, public)
	if err != nil {
		return nil, err
	}
	return &Server{echo: e, hub: s.hub, health: s.health}, nil
}

// NewMonitor returns a server that answers only /healthz, /readyz and /metrics, for a process that
// serves no API but is monitored. It needs Log and Now, and uses Checks, Metrics, MetricsToken,
// ListenAddress, PublicURL and TrustedProxies.
func NewMonitor(o Options) (*Server, error) {
	if o.Log == nil || o.Now == nil {
		return nil, errors.New("api: Options.Log and Options.Now are required")
	}
	public, err := o.public()
	if err != nil {
		return nil, err
	}
	s := &server{Options: o, health: newHealth(o.Checks, o.Log, o.Now)}
	e := s.guarded(public)
	s.monitored(e)
	return &Server{echo: e, health: s.health}, nil
}

// public returns the parsed PublicURL; nil if there is none.
func (o *Options) public() (*url.URL, error) {
	if o.PublicURL == "" {
		return nil, nil //nolint:nilnil // there is none
	}
	u, err := url.Parse(o.PublicURL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" {
		return nil, fmt.Errorf("api: public URL %q is not of the form https://host", o.PublicURL)
	}
	return u, nil
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.echo.ServeHTTP(w, r) }

// Drain makes /readyz say that this process is about to end, and makes connections close with their
// next answer. The server continues to answer.
func (s *Server) Drain() { s.health.draining.Store(true) }

// Shutdown ends every stream of events and refuses new ones. It returns when
// their poller has ended, or ctx has. Call it before or while the HTTP server
// shuts down, which otherwise waits for the streams.
func (s *Server) Shutdown(ctx context.Context) error {
	if s.hub == nil {
		return nil // a monitor has no streams
	}
	return s.hub.shutdown(ctx)
}
