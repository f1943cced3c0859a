package demo

import (
	"fmt"
	"strings"
)

// subject is what one exchange is about; messages and attributes agree on it.
type subject struct {
	number   string // of the order, invoice, shipment … that is carried
	customer string
	host     string
}

func (d dice) subject(r *route) subject {
	var number string
	switch r.kind {
	case orderTraffic:
		number = "SO-" + d.number(7)
	case invoiceTraffic:
		number = "INV-2026-" + d.number(6)
	case shipmentTraffic:
		number = "00340" + d.number(15)
	case customerTraffic:
		number = "C" + d.number(8)
	case stockTraffic:
		number = fmt.Sprintf("%s-%s", pick(d, "TSH", "HOM", "GRD", "KIT"), d.number(6))
	case paymentTraffic:
		number = "pay_" + d.hex(14)
	case fileTraffic:
		number = fmt.Sprintf("%s_%s.%s", strings.ReplaceAll(r.id, "-", "_"), d.number(8), pick(d, "pdf", "csv", "edi", "zip"))
	case recordTraffic:
		number = d.hex(16)
	}
	return subject{number: number, customer: d.customer(), host: d.host(r)}
}

func (d dice) customer() string {
	return pick(d,
		"Müller & Söhne GmbH", "Brauhaus Köln", "Nordwind Logistik AG", "O'Neill Surf Supplies", "Fjällräven Återförsäljare",
		"Maison Lefèvre", "Bäckerei Grünwald", "Contoso Möbel", "Zürcher Werkzeughandel", "Łódź Tekstylia Sp. z o.o.",
		"Straßenbau <Süd> KG", "Weingut von der Höhe", "Papeterie \"Le Coin\"", "Hafenkontor Rostock", "Elektro Schäfer e. K.",
	)
}

func (d dice) host(r *route) string {
	return fmt.Sprintf("%s-%s-%s", r.app, d.hex(8)[:6], d.hex(5))
}

// attributes are what the route's runtime notes about an exchange.
func (d dice) attributes(r *route, s subject, environment string) map[string]string {
	a := map[string]string{
		"host":    s.host,
		"partner": r.partner,
		"version": pick(d, "4.18.2", "4.18.2", "4.18.2", "4.19.0-rc1"),
		"bytes":   fmt.Sprintf("%d", d.between(180, 9000)),
	}
	switch r.kind {
	case orderTraffic:
		a["orderId"], a["customer"] = s.number, s.customer
		a["channel"] = pick(d, "webshop", "marketplace", "edi", "phone")
	case invoiceTraffic:
		a["invoiceId"], a["customer"] = s.number, s.customer
		a["currency"] = pick(d, "EUR", "EUR", "EUR", "CHF", "SEK", "PLN")
	case shipmentTraffic:
		a["trackingNumber"] = s.number
		a["carrier"] = pick(d, "dhl", "dpd", "gls", "ups")
		a["country"] = pick(d, "DE", "DE", "AT", "CH", "FR", "PL", "SE")
	case customerTraffic:
		a["customerId"], a["customer"] = s.number, s.customer
	case stockTraffic:
		a["sku"] = s.number
		a["warehouse"] = pick(d, "HAM-1", "LEJ-2", "MUC-1")
	case paymentTraffic:
		a["paymentId"] = s.number
		a["method"] = pick(d, "card", "sepa", "paypal", "invoice")
	case fileTraffic:
		a["file"] = s.number
	case recordTraffic:
		a["batch"] = s.number
		a["records"] = fmt.Sprintf("%d", d.between(1, 500))
	}
	if environment == Staging {
		a["testData"] = "true"
	}
	return a
}
