package demo

import (
	"fmt"
	"time"
)

// failure is one way in which one exchange failed.
type failure struct {
	errorType string
	message   string
	// library are the frames of the component that threw, innermost first.
	library []string
	// own is the method of the route's own code that called it.
	own string
	// took is how long the exchange ran; 0 is as long as any of its route.
	took time.Duration
}

// failureKind makes failures of one sort.
type failureKind func(d dice, r *route, s subject) failure

func address(d dice) string {
	return fmt.Sprintf("10.20.%d.%d:%d", d.between(1, 8), d.between(2, 240), pick(d, 443, 8443, 8080))
}

func connectionRefused(d dice, r *route, _ subject) failure {
	return failure{
		errorType: "java.net.ConnectException",
		message:   fmt.Sprintf("Connection refused: %s-%d.internal/%s", r.partner, d.between(1, 3), address(d)),
		library:   socketFrames("sun.nio.ch.Net.pollConnect(Native Method)", "sun.nio.ch.NioSocketImpl.connect(NioSocketImpl.java:592)"),
		own:       "send",
		took:      d.span(time.Millisecond, 9*time.Millisecond),
	}
}

func readTimeout(d dice, r *route, s subject) failure {
	limit := pick(d, time.Second, time.Second, 2*time.Second, 5*time.Second, 10*time.Second, 30*time.Second)
	return failure{
		errorType: "java.net.SocketTimeoutException",
		message:   fmt.Sprintf("Read timed out after %d ms: POST https://%s.internal/api/v2/%s", limit.Milliseconds(), r.partner, s.number),
		library:   socketFrames("sun.nio.ch.NioSocketImpl.timedRead(NioSocketImpl.java:288)", "sun.nio.ch.NioSocketImpl.implRead(NioSocketImpl.java:314)"),
		own:       "awaitReply",
		took:      limit + d.span(time.Millisecond, 30*time.Millisecond),
	}
}

func unknownHost(d dice, r *route, _ subject) failure {
	return failure{
		errorType: "java.net.UnknownHostException",
		message:   fmt.Sprintf("%s.%s: Temporary failure in name resolution", r.partner, pick(d, "eu-central-1.example.net", "api.example.org")),
		library:   socketFrames("java.net.Inet6AddressImpl.lookupAllHostAddr(Native Method)", "java.net.InetAddress.getAllByName(InetAddress.java:1312)"),
		own:       "open",
		took:      d.span(2*time.Second, 6*time.Second),
	}
}

func serverError(d dice, r *route, s subject) failure {
	status := pick(d, "500 Internal Server Error", "502 Bad Gateway", "503 Service Unavailable")
	body := pick(d,
		`{"error":"internal","traceId":"`+d.hex(16)+`","path":"/v2/`+s.number+`"}`,
		`<html><head><title>502 Bad Gateway</title></head><body>nginx & friends</body></html>`,
		`{"code":"E-`+d.number(4)+`","detail":"Systemwartung bis 14:30 Uhr, bitte später erneut versuchen"}`,
	)
	return failure{
		errorType: "org.apache.camel.http.base.HttpOperationFailedException",
		message:   fmt.Sprintf("HTTP operation failed invoking https://%s.internal/v2 with statusCode: %s\nbody: %s", r.partner, status, body),
		library:   httpFrames(),
		own:       "send",
	}
}

func tooManyRequests(d dice, r *route, _ subject) failure {
	return failure{
		errorType: "com.nordhaus.platform.RateLimitedException",
		message:   fmt.Sprintf("%s answered 429, Retry-After: %d s (quota %q exhausted)", r.partner, d.between(1, 120), pick(d, "burst", "minute", "daily")),
		library:   httpFrames(),
		own:       "send",
	}
}

func certificateExpired(d dice, r *route, _ subject) failure {
	return failure{
		errorType: "javax.net.ssl.SSLHandshakeException",
		message:   fmt.Sprintf("PKIX path validation failed: validity check failed: NotAfter: Fri Nov %02d 23:59:59 UTC 2026, CN=%s", d.between(1, 20), r.partner),
		library: []string{
			"java.base/sun.security.ssl.Alert.createSSLException(Alert.java:130)",
			"java.base/sun.security.ssl.CertificateMessage$T13CertificateConsumer.checkServerCerts(CertificateMessage.java:1318)",
			"java.base/sun.security.ssl.SSLSocketImpl.startHandshake(SSLSocketImpl.java:455)",
		},
		own: "open",
	}
}

func idocRejected(d dice, _ *route, s subject) failure {
	return failure{
		errorType: "com.nordhaus.erp.IdocRejectedException",
		message: fmt.Sprintf("IDoc %s rejected, status 51: \"%s\" (Beleg %s, Position %d)", d.number(16),
			pick(d, "Material nicht für Werk 1000 gepflegt", "Debitor gesperrt", "Buchungsperiode 11/2026 ist nicht geöffnet"), s.number, d.between(1, 40)*10),
		library: []string{
			"com.sap.conn.jco.rt.MiddlewareJavaRfc$JavaRfcClient.execute(MiddlewareJavaRfc.java:1806)",
			"com.sap.conn.idoc.rt.DefaultIDocProcessor.send(DefaultIDocProcessor.java:212)",
		},
		own: "post",
	}
}

func badJSON(d dice, _ *route, s subject) failure {
	line, column := d.between(1, 90), d.between(2, 120)
	return failure{
		errorType: "com.fasterxml.jackson.core.JsonParseException",
		message: fmt.Sprintf("Unexpected character ('}' (code 125)): was expecting double-quote to start field name\n at [Source: {\"id\":\"%s\",\"lines\":[{\"qty\":%d,}]}; line: %d, column: %d]",
			s.number, d.between(1, 9), line, column),
		library: jacksonFrames(),
		own:     "parse",
	}
}

func validation(d dice, _ *route, s subject) failure {
	what := pick(d,
		"field 'deliveryDate' lies in the past",
		"field 'vatId' must match \"^[A-Z]{2}[0-9A-Z]{2,12}$\"",
		"quantity must be > 0 && < 10000",
		"Straße darf nicht leer sein",
		"unknown unit of measure 'Stk.'",
	)
	return failure{
		errorType: "org.apache.camel.ValidationException",
		message:   fmt.Sprintf("Validation failed for %s of %s: %s", s.number, s.customer, what),
		library: []string{
			"org.apache.camel.component.bean.validator.BeanValidatorProducer.process(BeanValidatorProducer.java:52)",
		},
		own: "validate",
	}
}

func xmlInvalid(d dice, _ *route, s subject) failure {
	return failure{
		errorType: "org.xml.sax.SAXParseException",
		message: fmt.Sprintf("cvc-complex-type.2.4.a: Invalid content was found starting with element '<%s>'. One of '{<Amt Ccy=\"EUR\">, <Dt>}' is expected. [%s, line %d]",
			pick(d, "Betrag", "Empfänger", "TaxAmount"), s.number, d.between(4, 900)),
		library: []string{
			"java.xml/com.sun.org.apache.xerces.internal.util.ErrorHandlerWrapper.createSAXParseException(ErrorHandlerWrapper.java:204)",
			"java.xml/com.sun.org.apache.xerces.internal.impl.xs.XMLSchemaValidator.reportSchemaError(XMLSchemaValidator.java:3256)",
		},
		own: "validate",
	}
}

func invalidIBAN(d dice, _ *route, s subject) failure {
	return failure{
		errorType: "com.nordhaus.billing.InvalidIbanException",
		message: fmt.Sprintf("Invalid IBAN in line %d of %s: DE%s %s … (check digits do not match) for %q",
			d.between(1, 400), s.number, d.number(2), d.number(4), s.customer),
		own: "checkAccount",
	}
}

func csvBroken(d dice, _ *route, s subject) failure {
	return failure{
		errorType: "org.apache.camel.dataformat.bindy.UnmarshallingException",
		message: fmt.Sprintf("%s: line %d has %d columns, expected 14: \"%s;;Größe M;\"\"rot\"\";%d,90\"",
			s.number, d.between(2, 12000), d.between(9, 13), d.number(8), d.between(1, 300)),
		library: []string{"org.apache.camel.dataformat.bindy.csv.BindyCsvDataFormat.unmarshal(BindyCsvDataFormat.java:298)"},
		own:     "readLines",
	}
}

func nullPointer(_ dice, r *route, _ subject) failure {
	return failure{
		errorType: "java.lang.NullPointerException",
		message:   fmt.Sprintf("Cannot invoke \"com.nordhaus.%s.model.Customer.getBillingAddress()\" because the return value of \"Order.customer()\" is null", r.app),
		own:       "enrich",
	}
}
