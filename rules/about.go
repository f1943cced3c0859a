package rules

import "regexp"

// About is what a rule says to the people who handle its alerts. An alert always shows the rule's
// present text.
type About struct {
	Labels     map[string]string `json:"labels,omitempty"`
	Owner      string            `json:"owner,omitempty"`
	RunbookURL string            `json:"runbookUrl,omitempty"`
	Note       string            `json:"note,omitempty"`
}

// About returns what d says to the people who handle its alerts.
func (d *Definition) About() About {
	return About{Labels: d.Labels, Owner: d.Owner, RunbookURL: d.RunbookURL, Note: d.Note}
}

// SetAbout is the reverse of [Definition.About].
func (d *Definition) SetAbout(a About) {
	d.Labels, d.Owner, d.RunbookURL, d.Note = a.Labels, a.Owner, a.RunbookURL, a.Note
}

// The forms of a label's name and of a web address.
var (
	label   = regexp.MustCompile(`\A[A-Za-z][A-Za-z0-9_.-]{0,62}\z`)
	address = regexp.MustCompile(`\Ahttps?://[^\x00-\x20\x7f/?#@<>"]+([/?#][^\x00-\x20\x7f<>"]*)?\z`)
)

func isLabel(name string) bool { return label.MatchString(name) }

func isAddress(text string) bool { return text == "" || address.MatchString(text) }
