package slackalike

import (
	"cmp"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// Defaults of [Options].
const (
	DefaultRate  = 1.0 // messages a second and webhook, as Slack documents for incoming webhooks
	DefaultBurst = 4   // Slack allows short bursts and gives no number
	DefaultKept  = 2000
)

// Options are the settings of [NewServer].
type Options struct {
	// Hooks are the existing webhooks; [DefaultHooks] if nil.
	Hooks []Hook
	// Bot posts by the Web API; [DefaultBot] if nil.
	Bot *Bot
	// Rate is how many messages a second a webhook accepts in the long run, 1 by default; a
	// negative rate means any number. Burst is how many it accepts at once.
	Rate  float64
	Burst int
	// Kept is how many requests are kept, 2,000 by default.
	Kept int
	// Journal is a file that keeps the requests over a restart; "" means none.
	Journal string
	// Clock is the present, time.Now by default.
	Clock func() time.Time
	// Logger is required.
	Logger *slog.Logger
}

// DefaultHooks are the webhooks of a server for which none are configured.
func DefaultHooks() []Hook {
	return []Hook{
		{Path: "T0DEMO/B0OPS/integrationops", Channel: "#integration-ops", App: "Tocsin"},
		{Path: "T0DEMO/B0ORDERS/ordersteam", Channel: "#orders", App: "Tocsin"},
		{Path: "T0DEMO/B0BILLING/billingteam", Channel: "#billing", App: "Tocsin"},
	}
}

// Server is the stand-in for Slack, an [http.Handler].
type Server struct {
	opts     Options
	registry *registry
	bots     *bots
	client   *http.Client
	record   *record
	page     *template.Template
	mux      *http.ServeMux

	closing   chan struct{}
	closeOnce sync.Once
}

// NewServer returns a server with the entries of its journal. The caller closes it.
func NewServer(opts Options) (*Server, error) {
	if opts.Logger == nil {
		return nil, errors.New("slack look-alike: a logger is required")
	}
	if opts.Hooks == nil {
		opts.Hooks = DefaultHooks()
	}
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	opts.Rate = cmp.Or(opts.Rate, DefaultRate)
	opts.Burst = cmp.Or(opts.Burst, DefaultBurst)
	opts.Kept = cmp.Or(opts.Kept, DefaultKept)

	registry, err := newRegistry(opts.Hooks, opts.Rate, opts.Burst)
	if err != nil {
		return nil, err
	}
	if opts.Bot == nil {
		bot := DefaultBot()
		opts.Bot = &bot
	}
	bots, err := newBots(*opts.Bot, opts.Rate)
	if err != nil {
		return nil, err
	}
	registry.addBot(*opts.Bot)
	page, err := parsePage()
	if err != nil {
		return nil, err
	}
	s := &Server{opts: opts, registry: registry, bots: bots, client: newClient(), record: newRecord(opts.Kept), page: page, closing: make(chan struct{})}
	if opts.Journal != "" {
		unreadable, err := s.record.open(opts.Journal)
		if err != nil {
			return nil, err
		}
		if unreadable > 0 {
			opts.Logger.Warn("the journal of messages has unreadable lines, they are gone", slog.Int("lines", unreadable))
		}
	}
	s.mux = s.routes()
	return s, nil
}

// newClient returns the client that notifies the bot's app of pressed buttons.
func newClient() *http.Client {
	return &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Close ends every waiting request (hung ones and live pages) and closes the journal. It must come
// before the shutdown of the HTTP server, which would otherwise wait for these requests.
func (s *Server) Close() error {
	s.closeOnce.Do(func() { close(s.closing) })
	return s.record.close()
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("/services/{team}/{service}/{token}", s.receive)
	mux.HandleFunc("/services/", s.receiveUnknown)
	mux.HandleFunc("/api/chat.postMessage", s.post)
	mux.HandleFunc("/api/chat.update", s.update)
	mux.HandleFunc("/api/chat.postEphemeral", s.ephemeral)
	mux.HandleFunc("/api/users.info", s.userInfo)
	mux.HandleFunc("/api/", s.unknownMethod)

	// A page of another origin in the same browser must not be able to change anything here; the
	// webhooks themselves are open to everyone.
	guard := http.NewCrossOriginProtection()
	mux.Handle("GET /control/ephemerals", http.HandlerFunc(s.ephemeralsList))
	mux.Handle("GET /control/faults", http.HandlerFunc(s.faultsList))
	mux.Handle("POST /control/faults", guard.Handler(http.HandlerFunc(s.faultsSet)))
	mux.Handle("DELETE /control/faults", guard.Handler(http.HandlerFunc(s.faultsReset)))
	mux.Handle("GET /control/hooks", http.HandlerFunc(s.hooksList))
	mux.Handle("POST /control/hooks", guard.Handler(http.HandlerFunc(s.hooksAdd)))
	mux.Handle("POST /control/press", guard.Handler(http.HandlerFunc(s.press)))
	mux.Handle("GET /api/messages", http.HandlerFunc(s.messagesList))
	mux.Handle("DELETE /api/messages", guard.Handler(http.HandlerFunc(s.messagesClear)))

	mux.HandleFunc("GET /{$}", s.showPage)
	mux.HandleFunc("GET /events", s.streamEvents)
	mux.Handle("GET /assets/", assets())
	return mux
}
