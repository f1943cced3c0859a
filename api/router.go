package api

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
)

// Policies for what a browser may do with an answer. Pages may contain inline styles, because
// component libraries use them; scripts may only come from files.
const (
	policyData = "default-src 'none'; frame-ancestors 'none'"
	policyPage = "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
		"font-src 'self'; connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)

// router connects the parts in the order that the package comment shows.
func (s *server) router(document *document, public *url.URL) (*echo.Echo, error) {
	e := s.guarded(public)
	e.Binder = strictBinder{}
	crossOrigin := http.NewCrossOriginProtection()
	if public != nil {
		if err := crossOrigin.AddTrustedOrigin(public.Scheme + "://" + public.Host); err != nil {
			return nil, fmt.Errorf("api: trust public URL: %w", err)
		}
	}
	e.Use(checkOrigin(crossOrigin), s.pages, compress(), s.identify(document))

	s.monitored(e)
	if s.Slack != nil {
		e.POST(prefixInteractions+":webhook", s.interact)
	}
	if s.SingleSignOn != nil {
		e.GET(pathProviderStart, s.beginElsewhere)
		e.GET(PathProviderCallback, s.endElsewhere)
	}
	document.register(e)
	operations := NewStrictHandler(s, []StrictMiddlewareFunc{document.refuseUnknownParameters, s.limitTime})
	RegisterHandlersWithBaseURL(e, operations, strings.TrimSuffix(prefixV1, "/"))
	return e, nil
}

// guarded returns the router with the middleware of all answers.
func (s *server) guarded(public *url.URL) *echo.Echo {
	e := echo.New()
	e.HTTPErrorHandler = s.handleError
	e.IPExtractor = echo.ExtractIPDirect()
	if len(s.TrustedProxies) > 0 {
		e.IPExtractor = echo.ExtractIPFromXFFHeader(trusted(s.TrustedProxies)...)
	}
	e.Pre(requestID, s.health.closeWhileDraining, s.logRequests(), s.recoverPanics(), secureHeaders(public))
	e.Use(checkHost(newHosts(s.ListenAddress, public)))
	return e
}

// monitored adds the answers for probes and Prometheus.
func (s *server) monitored(e *echo.Echo) {
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		e.Add(method, pathHealth, s.health.alive)
		e.Add(method, pathReady, s.health.ready)
	}
	if s.Metrics != nil {
		e.GET(pathMetrics, s.answerMetrics)
	}
}

// answerMetrics answers /metrics. Metrics contain numbers and the names of webhooks and of this
// program's parts, but no content of exchanges.
func (s *server) answerMetrics(c echo.Context) error {
	if s.MetricsToken != "" {
		sent := sha256.Sum256([]byte(strings.TrimPrefix(c.Request().Header.Get(echo.HeaderAuthorization), "Bearer ")))
		want := sha256.Sum256([]byte(s.MetricsToken))
		if subtle.ConstantTimeCompare(sent[:], want[:]) != 1 {
			return unauthorized("Send the token for metrics as Authorization: Bearer …")
		}
	}
	s.Metrics.ServeHTTP(c.Response(), c.Request())
	return nil
}

const (
	pathHealth  = "/healthz"
	pathReady   = "/readyz"
	pathMetrics = "/metrics"
	prefixAPI   = "/api/"
	prefixV1    = "/api/v1/"
	pathEvents  = prefixV1 + "events"
)

// pages passes requests outside the API to the web application. It runs before the router, because
// a catch-all route would hide which paths exist for other methods.
func (s *server) pages(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		if p := r.URL.Path; strings.HasPrefix(p, prefixAPI) || isInteraction(r) && s.Slack != nil || p == pathHealth || p == pathReady || p == pathMetrics && s.Metrics != nil {
			return next(c)
		}
		h := c.Response().Header()
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			h.Set(echo.HeaderAllow, "GET, HEAD")
			return echo.ErrMethodNotAllowed
		}
		h.Set(echo.HeaderContentSecurityPolicy, policyPage)
		h.Del(echo.HeaderCacheControl)
		s.Web.ServeHTTP(c.Response(), r)
		return nil
	}
}

// leastCompressed is the size in bytes from which an answer is compressed. A smaller one fits into two packets anyway. No
// answer that shows a secret, as the creation of a token does, is as large.
const leastCompressed = 2 << 10

// compress compresses the answers of operations for clients that accept it, at the level that costs least: a page of 200
// rules, 185 kB, becomes 23 kB in 0.7 ms of a processor, and level 6 takes twice as long for 19 kB. Streams stay as they are, because a compressor holds events back.
func compress() echo.MiddlewareFunc {
	return middleware.GzipWithConfig(middleware.GzipConfig{
		Level:     gzip.BestSpeed,
		MinLength: leastCompressed,
		Skipper: func(c echo.Context) bool {
			path := c.Request().URL.Path
			return !strings.HasPrefix(path, prefixV1) || path == pathEvents
		},
	})
}

// requestID gives the request an id. It ignores an id of the client, so that every id in the log
// was made here.
func requestID(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		id, err := uuid.NewV7()
		if err != nil {
			return fmt.Errorf("make request id: %w", err)
		}
		c.Request().Header.Del(echo.HeaderXRequestID)
		c.Response().Header().Set(echo.HeaderXRequestID, id.String())
		return next(c)
	}
}

// logRequests logs one line for each request, without its query, which may contain what people
// search for.
func (s *server) logRequests() echo.MiddlewareFunc {
	return middleware.RequestLoggerWithConfig(middleware.RequestLoggerConfig{
		HandleError:     true,
		LogLatency:      true,
		LogRemoteIP:     true,
		LogMethod:       true,
		LogURIPath:      true,
		LogRequestID:    true,
		LogStatus:       true,
		LogResponseSize: true,
		LogValuesFunc: func(c echo.Context, v middleware.RequestLoggerValues) error {
			level := slog.LevelInfo
			if v.URIPath == pathHealth || v.URIPath == pathReady {
				level = slog.LevelDebug
			}
			s.Log.LogAttrs(c.Request().Context(), level, "request",
				slog.String("request_id", v.RequestID),
				slog.String("method", v.Method),
				slog.String("path", v.URIPath),
				slog.Int("status", v.Status),
				slog.Int64("bytes", v.ResponseSize),
				slog.Duration("duration", v.Latency),
				slog.String("remote_ip", v.RemoteIP),
			)
			return nil
		},
	})
}

func (s *server) recoverPanics() echo.MiddlewareFunc {
	return middleware.RecoverWithConfig(middleware.RecoverConfig{
		StackSize:           8 << 10,
		DisableStackAll:     true,
		DisableErrorHandler: true,
		LogErrorFunc: func(c echo.Context, err error, stack []byte) error {
			s.Log.LogAttrs(c.Request().Context(), slog.LevelError, "panic in a handler; report it with its stack",
				slog.String("request_id", c.Response().Header().Get(echo.HeaderXRequestID)),
				slog.Any("error", err),
				slog.String("stack", string(stack)),
			)
			return fmt.Errorf("panic: %w", err)
		},
	})
}

func secureHeaders(public *url.URL) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			h := c.Response().Header()
			h.Set(echo.HeaderXContentTypeOptions, "nosniff")
			h.Set(echo.HeaderXFrameOptions, "DENY")
			h.Set(echo.HeaderReferrerPolicy, "same-origin")
			h.Set("Cross-Origin-Opener-Policy", "same-origin")
			h.Set("Cross-Origin-Resource-Policy", "same-origin")
			h.Set(echo.HeaderContentSecurityPolicy, policyData)
			h.Set(echo.HeaderCacheControl, "no-store")
			if public != nil && public.Scheme == "https" {
				h.Set(echo.HeaderStrictTransportSecurity, "max-age=31536000")
			}
			return next(c)
		}
	}
}

// hosts are the names under which the server may be requested. A page of another site that points
// its own name here (DNS rebinding) uses that name in its requests.
type hosts struct {
	names []string
	// anyIP allows every IP address, because no name is involved.
	anyIP bool
}

func newHosts(listen string, public *url.URL) hosts {
	var h hosts
	host, _, err := net.SplitHostPort(listen)
	if ip, notIP := netip.ParseAddr(host); err != nil || host == "" || (notIP == nil && ip.IsUnspecified()) {
		h.anyIP = true
	} else {
		h.names = append(h.names, strings.ToLower(host))
	}
	if public != nil {
		h.names = append(h.names, strings.ToLower(public.Hostname()))
	}
	return h
}

// allow reports whether the value of a Host header is one of h.
func (h hosts) allow(hostport string) bool {
	host := hostport
	if name, _, err := net.SplitHostPort(hostport); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if ip, err := netip.ParseAddr(host); err == nil && (h.anyIP || ip.Unmap().IsLoopback()) {
		return true
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || slices.Contains(h.names, host)
}

// checkHost refuses requests under other names. Probes use whatever address they know; they learn
// nothing confidential.
func checkHost(h hosts) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			r := c.Request()
			// Slack's signed requests use the name in the configuration of the Slack app.
			if isInteraction(r) {
				return next(c)
			}
			if r.URL.Path != pathHealth && r.URL.Path != pathReady && !h.allow(r.Host) {
				return echo.NewHTTPError(http.StatusMisdirectedRequest, "This server is not known by this name; an administrator can set TOCSIN_PUBLIC_URL to it")
			}
			return next(c)
		}
	}
}

// checkOrigin refuses writes that a page of another site makes a browser send.
func checkOrigin(protection *http.CrossOriginProtection) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			// A browser cannot make the signature.
			if isInteraction(c.Request()) {
				return next(c)
			}
			if err := protection.Check(c.Request()); err != nil {
				return echo.NewHTTPError(http.StatusForbidden, "Requests from pages of other sites are refused; open Tocsin at its own URL, or set TOCSIN_PUBLIC_URL to this one").SetInternal(err)
			}
			return next(c)
		}
	}
}

// longerForMany is how many times longer a call about many alerts, messages, rules or exchanges may take.
const longerForMany = 3

// limitTime bounds the duration of a call, except for streams.
func (s *server) limitTime(next StrictHandlerFunc, operationID string) StrictHandlerFunc {
	limit := s.RequestTimeout
	switch operationID {
	case "StreamEvents":
		return next
	case "TestWebhook", "TestRule":
		limit = max(limit, 2*testTimeout)
	case "AcknowledgeAlerts", "ResolveAlerts", "AssignAlerts", "UndoAlertAction", "ReadAlerts", "ApplyRules",
		"RetryNotifications", "DiscardNotifications", "PreviewReplay", "ReconcileRule":
		// These calls may concern all alerts, messages or rules, or all exchanges of many days.
		limit *= longerForMany
	}
	return func(c echo.Context, request any) (any, error) {
		r := c.Request()
		ctx, cancel := context.WithTimeout(r.Context(), limit)
		defer cancel()
		c.SetRequest(r.WithContext(ctx))
		defer c.SetRequest(r)
		return next(c, request)
	}
}

func trusted(proxies []netip.Prefix) []echo.TrustOption {
	options := []echo.TrustOption{echo.TrustLoopback(false), echo.TrustLinkLocal(false), echo.TrustPrivateNet(false)}
	for _, p := range proxies {
		p = p.Masked()
		bits := p.Addr().BitLen()
		options = append(options, echo.TrustIPRange(&net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), bits)}))
	}
	return options
}
