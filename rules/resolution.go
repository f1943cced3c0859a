package rules

import "slices"

// Evidence says by what an exchange that completed is evidence that an earlier one, which
// failed, is dealt with.
type Evidence string

// The kinds of evidence.
const (
	// EvidenceCorrelation is an exchange with the same correlation id.
	EvidenceCorrelation Evidence = "CORRELATION_ID"
	// EvidenceAttribute is an exchange of the same environment, application and route with
	// the same value of one attribute.
	EvidenceAttribute Evidence = "ATTRIBUTE"
)

// Resolution is what resolves the alerts of a PerExchange rule beside people. At least one of
// age and evidence is there.
type Resolution struct {
	// AfterSeconds resolves an alert this long after it was raised; 0 never does.
	AfterSeconds int `json:"afterSeconds,omitempty" validate:"omitempty,min=60,max=31536000"`
	// Evidence resolves an alert when an exchange completed that began after the failed one
	// had ended; empty is by none.
	Evidence Evidence `json:"evidence,omitempty" validate:"omitempty,oneof=CORRELATION_ID ATTRIBUTE"`
	// Attribute is the key of the attribute. It is used only by EvidenceAttribute.
	Attribute string `json:"attribute,omitempty" validate:"max=500,text"`
}

// crossResolution holds which rules resolve their alerts, and by what.
func crossResolution(d *Definition, report func(wrong bool, value any, name, field, code, message string)) {
	r := d.Resolution
	if r == nil {
		return
	}
	if d.FireMode != PerExchange {
		report(true, r, "resolution", "Resolution", "not_applicable", resolutionNotApplicable)
		return
	}
	report(r.AfterSeconds == 0 && r.Evidence == "", r, "resolution", "Resolution", "required", resolutionRequired)
	report(r.Evidence != "" && slices.Contains(d.Filter.StatusesOrDefault(), Completed), r.Evidence,
		"resolution.evidence", "Resolution.Evidence", "not_applicable", evidenceNotApplicable)
	report(r.Evidence == EvidenceAttribute && r.Attribute == "", r.Attribute, "resolution.attribute", "Resolution.Attribute", "required", "")
	report(r.Evidence != EvidenceAttribute && r.Attribute != "", r.Attribute, "resolution.attribute", "Resolution.Attribute", "not_applicable", evidenceAttribute)
}
