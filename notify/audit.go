package notify

// What is kept of an attempt in addition to its outcome, so that people can see later what was sent
// and what came back. It contains no secrets: a sender masks the values of all headers except those
// that it knows to be harmless.

// RequestHead is the head of a request. It is not stored, but derived from the frozen body, the
// webhook, and the instant at which the attempt began.
type RequestHead struct {
	Method string `json:"method"`
	// Host is the host of the URL, with the port if the URL contains one. The rest of the URL is a
	// secret.
	Host    string        `json:"host"`
	Headers []HeaderField `json:"headers"`
	// BodySHA256 is the hash of the body in hex, and BodyBytes its size.
	BodySHA256 string `json:"bodySha256"`
	BodyBytes  int    `json:"bodyBytes"`
}

// ResponseHead is the stored part of the head of a response, at most 4 KiB of names and values
// together.
type ResponseHead struct {
	// StatusLine is the protocol, the status and the reason phrase.
	StatusLine string        `json:"statusLine"`
	Headers    []HeaderField `json:"headers"`
	// Truncated is true if headers were left out or cut.
	Truncated bool `json:"truncated,omitempty"`
}

// HeaderField is a header. Its value is empty if it was masked.
type HeaderField struct {
	Name   string `json:"name"`
	Value  string `json:"value,omitempty"`
	Masked bool   `json:"masked,omitempty"`
}
