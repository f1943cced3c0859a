package webhook

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"tocsin/alerts"
	"tocsin/notify/template"
	"tocsin/rules"
)

// exchangeField returns a field of an exchange by its name in an address.
func exchangeField(e *rules.Exchange, name string) (value string, known bool) {
	switch name {
	case "tenantId":
		return e.TenantID, true
	case "executionId":
		return e.ExecutionID, true
	case "correlationId":
		return e.CorrelationID, true
	case "environment":
		return e.Environment, true
	case "application":
		return e.Application, true
	case "route":
		return e.Route, true
	}
	return "", false
}

// placeholders are the names in braces.
var placeholders = regexp.MustCompile(`\{([^{}]*)\}`)

// CheckExchangeURL returns what is wrong with an address of exchanges, such as
// "https://traces.example.com/trace/{correlationId}". It needs http or https and a host without
// names in braces. The names may be tenantId, executionId, correlationId, environment, application
// and route. An empty text means no address.
func CheckExchangeURL(address string) error {
	if address == "" {
		return nil
	}
	for _, name := range placeholders.FindAllStringSubmatch(address, -1) {
		if _, known := exchangeField(&rules.Exchange{}, name[1]); !known {
			return fmt.Errorf("TOCSIN_EXCHANGE_URL: unknown name {%s}; the names are tenantId, executionId, correlationId, environment, application and route", name[1])
		}
	}
	u, err := url.Parse(placeholders.ReplaceAllString(address, "x"))
	whole := err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil
	authority, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(address, "https://"), "http://"), "/")
	if !whole || strings.ContainsAny(authority, "{}") {
		return fmt.Errorf("TOCSIN_EXCHANGE_URL %q must have the form https://traces.example.com/trace/{correlationId}", address)
	}
	return nil
}

// ExchangeURL returns where people find the exchange of an alert. It returns "" if there is no
// address, no exchange, or no value for a name, because such a link would lead nowhere.
func (r *Renderer) ExchangeURL(a *alerts.Instance) string {
	e := &a.Exchange
	if r.exchangeURL == "" || a.Health || !template.HasExample(a.Count, e) {
		return ""
	}
	whole := true
	filled := placeholders.ReplaceAllStringFunc(r.exchangeURL, func(name string) string {
		value, _ := exchangeField(e, strings.Trim(name, "{}"))
		whole = whole && value != ""
		// Valid both in a path and in the value of a query.
		return strings.ReplaceAll(url.QueryEscape(value), "+", "%20")
	})
	if !whole {
		return ""
	}
	return filled
}
