package notify

// What is kept of an attempt, beside its outcome, so that somebody can tell
// later what was sent and what came back. Nothing of it shows a secret: a
// sender masks the values of all headers but those that it knows to be harmless.

// RequestHead is what a request sends. It is not stored, but derived from the frozen body,
// the webhook, and the instant at which the attempt began.
type RequestHead struct {
	Method string `json:"method"`
	// Host is where the request goes, with its port if the URL names one; the
	// rest of a URL is a secret.
	Host    string        `json:"host"`
	Headers []HeaderField `json:"headers"`
	// BodySHA256 is the digest of the body, in hex, and BodyBytes its size.
	BodySHA256 string `json:"bodySha256"`
	BodyBytes  int    `json:"bodyBytes"`
}

// ResponseHead is what is kept of the head of an answer, at most 4 KiB of names
// and values together.
type ResponseHead struct {
	// StatusLine is the protocol, the status and its reason.
	StatusLine string        `json:"statusLine"`
	Headers    []HeaderField `json:"headers"`
	// Truncated is true when headers were left out or cut.
	Truncated bool `json:"truncated,omitempty"`
}

// HeaderField is a header. The value of a masked one is empty.
type HeaderField struct {
	Name   string `json:"name"`
	Value  string `json:"value,omitempty"`
	Masked bool   `json:"masked,omitempty"`
}
