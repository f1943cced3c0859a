package demo

import "time"

// route is the profile of one integration route.
type route struct {
	app  string
	id   string
	kind traffic

	// weight is the route's share of all exchanges, relative to the others.
	weight float64
	// fragility multiplies the overall failure rate; 0 is a route that fails
	// only in an outage.
	fragility float64
	// median and spread are the parameters of its lognormal duration; spread is
	// the standard deviation of the logarithm.
	median time.Duration
	spread float64
	// staging is the share that runs in staging.
	staging float64

	// partner is the system at the other end, as it appears in host names and messages.
	partner string
	// failures are the ways in which this route fails, the first most often.
	failures []failureKind
}

// traffic says what a route carries, which decides its attributes.
type traffic int

const (
	orderTraffic traffic = iota
	invoiceTraffic
	shipmentTraffic
	customerTraffic
	stockTraffic
	paymentTraffic
	fileTraffic
	recordTraffic
)

// catalog returns the routes of the demo company. Weights, durations and fragilities are chosen so
// that the traffic has the shape described in the package comment; the generator's tests check it.
func catalog() []route {
	const ms = time.Millisecond
	return []route{
		{"orders", "order-intake", orderTraffic, 90, 0.5, 3 * ms, 1.3, 0.10, "webshop", kinds(badJSON, validation, duplicateKey)},
		{"orders", "order-to-erp", orderTraffic, 70, 2.2, 14 * ms, 1.6, 0.12, "erp", kinds(connectionRefused, idocRejected, readTimeout, serverError)},
		{"orders", "order-status-sync", orderTraffic, 60, 0.6, 4 * ms, 1.4, 0.10, "erp", kinds(nullPointer, readTimeout)},
		{"orders", "order-cancel", orderTraffic, 12, 1.4, 8 * ms, 1.4, 0.15, "erp", kinds(staleState, connectionRefused)},
		{"orders", "order-enrichment", orderTraffic, 45, 0.5, 5 * ms, 1.5, 0.10, "crm", kinds(notFound, nullPointer)},

		{"billing", "invoice-export", invoiceTraffic, 22, 2.6, 18 * ms, 1.7, 0.15, "datev", kinds(invalidIBAN, xmlInvalid, sftpDenied)},
		{"billing", "invoice-create", invoiceTraffic, 34, 0.9, 7 * ms, 1.4, 0.12, "erp", kinds(validation, deadlock)},
		{"billing", "credit-note-export", invoiceTraffic, 6, 2.0, 16 * ms, 1.6, 0.20, "datev", kinds(xmlInvalid, invalidIBAN)},
		{"billing", "dunning-run", invoiceTraffic, 3, 2.5, 60 * ms, 1.8, 0.20, "mail-gateway", kinds(smtpRejected, readTimeout)},
		{"billing", "tax-lookup", invoiceTraffic, 30, 1.1, 6 * ms, 1.7, 0.10, "vies", kinds(serverError, tooManyRequests)},

		{"shipping", "shipment-create", shipmentTraffic, 30, 1.3, 12 * ms, 1.6, 0.10, "carrier-api", kinds(addressUnknown, tooManyRequests, readTimeout)},
		{"shipping", "label-print", shipmentTraffic, 28, 1.2, 9 * ms, 1.5, 0.08, "label-service", kinds(serverError, outOfMemory)},
		{"shipping", "tracking-import", shipmentTraffic, 75, 0.4, 2 * ms, 1.4, 0.08, "carrier-api", kinds(badJSON, unknownHost)},
		{"shipping", "customs-declaration", shipmentTraffic, 4, 3.4, 40 * ms, 1.8, 0.20, "atlas", kinds(xmlInvalid, certificateExpired, readTimeout)},

		{"crm", "customer-sync", customerTraffic, 50, 0.8, 5 * ms, 1.5, 0.12, "crm", kinds(duplicateKey, validation, tooManyRequests)},
		{"crm", "lead-import", customerTraffic, 10, 1.6, 11 * ms, 1.5, 0.18, "marketing", kinds(csvBroken, validation)},
		{"crm", "consent-update", customerTraffic, 14, 0.7, 4 * ms, 1.3, 0.12, "consent-store", kinds(staleState, serverError)},
		{"crm", "address-validation", customerTraffic, 26, 1.0, 8 * ms, 1.7, 0.10, "geo-service", kinds(addressUnknown, readTimeout)},

		{"inventory", "stock-level-push", stockTraffic, 95, 0.3, 2 * ms, 1.3, 0.08, "webshop", kinds(tooManyRequests, serverError)},
		{"inventory", "stock-import", stockTraffic, 18, 1.2, 15 * ms, 1.7, 0.12, "wms", kinds(csvBroken, duplicateKey)},
		{"inventory", "reservation", stockTraffic, 55, 0.6, 3 * ms, 1.3, 0.08, "wms", kinds(deadlock, insufficientStock)},
		{"inventory", "goods-receipt", stockTraffic, 12, 1.3, 10 * ms, 1.5, 0.12, "erp", kinds(idocRejected, validation)},

		{"payments", "payment-capture", paymentTraffic, 36, 1.1, 11 * ms, 1.6, 0.10, "psp", kinds(cardDeclined, readTimeout, serverError)},
		{"payments", "refund", paymentTraffic, 7, 1.8, 13 * ms, 1.6, 0.12, "psp", kinds(cardDeclined, staleState)},
		{"payments", "bank-statement-import", paymentTraffic, 5, 2.4, 45 * ms, 1.7, 0.15, "bank", kinds(camtUnparsable, sftpDenied)},
		{"payments", "sepa-export", paymentTraffic, 4, 2.8, 35 * ms, 1.7, 0.15, "bank", kinds(invalidIBAN, sftpDenied)},

		{"pricing", "price-update", stockTraffic, 48, 0.4, 3 * ms, 1.4, 0.12, "webshop", kinds(validation, tooManyRequests)},
		{"pricing", "promotion-sync", recordTraffic, 9, 0.9, 6 * ms, 1.4, 0.20, "webshop", kinds(nullPointer, badJSON)},
		{"pricing", "currency-rates", recordTraffic, 6, 1.4, 9 * ms, 1.4, 0.15, "ecb", kinds(unknownHost, xmlInvalid)},

		{"identity", "user-provisioning", customerTraffic, 11, 1.3, 9 * ms, 1.4, 0.15, "ldap", kinds(ldapRefused, duplicateKey)},
		{"identity", "group-sync", recordTraffic, 8, 1.0, 20 * ms, 1.6, 0.15, "ldap", kinds(ldapRefused, readTimeout)},

		{"returns", "return-label", shipmentTraffic, 9, 1.1, 9 * ms, 1.5, 0.10, "carrier-api", kinds(addressUnknown, serverError)},
		{"returns", "return-receipt", orderTraffic, 10, 1.2, 7 * ms, 1.4, 0.12, "wms", kinds(staleState, notFound)},

		{"procurement", "purchase-order-edi", fileTraffic, 8, 2.3, 24 * ms, 1.7, 0.15, "as2-partner", kinds(edifactInvalid, certificateExpired)},
		{"procurement", "supplier-catalog", fileTraffic, 3, 2.1, 90 * ms, 1.8, 0.20, "supplier", kinds(csvBroken, outOfMemory)},
		{"procurement", "invoice-receipt", invoiceTraffic, 8, 1.9, 22 * ms, 1.6, 0.15, "archive", kinds(xmlInvalid, validation)},

		{"documents", "archive-upload", fileTraffic, 24, 0.9, 12 * ms, 1.7, 0.10, "archive", kinds(diskFull, serverError)},
		{"documents", "pdf-render", fileTraffic, 20, 1.2, 28 * ms, 1.4, 0.12, "renderer", kinds(outOfMemory, templateBroken)},

		{"analytics", "event-stream", recordTraffic, 100, 0.2, 1500 * time.Microsecond, 1.2, 0.10, "kafka", kinds(badJSON, kafkaTimeout)},
		{"analytics", "warehouse-load", recordTraffic, 6, 1.5, 50 * ms, 1.8, 0.15, "warehouse", kinds(deadlock, kafkaTimeout)},
		{"analytics", "report-mail", fileTraffic, 3, 1.7, 30 * ms, 1.6, 0.20, "mail-gateway", kinds(smtpRejected, templateBroken)},
	}
}

func kinds(k ...failureKind) []failureKind { return k }
