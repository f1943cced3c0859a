package rules

import "slices"

// Evidence says which completed exchanges are evidence that an earlier failed exchange has been
// dealt with.
type Evidence string

// The kinds of evidence.
const (
	// EvidenceCorrelation is an exchange of the same environment, application and route with the
	// same correlation id.
	EvidenceCorrelation Evidence = "CORRELATION_ID"
	// EvidenceAttribute is an exchange of the same environment, application and route with
	// the same value of one attribute.
	EvidenceAttribute Evidence = "ATTRIBUTE"
)

// Resolution is what resolves the alerts of a PerExchange rule, in addition to people. It has an
// age, evidence, or both.
type Resolution struct {
	// AfterSeconds is the age at which an alert is resolved; 0 means never.
	AfterSeconds int `json:"afterSeconds,omitempty" validate:"omitempty,min=60,max=31536000"`
	// Evidence resolves an alert when an exchange completes that began after the failed one had
	// ended; empty means none.
	Evidence Evidence `json:"evidence,omitempty" validate:"omitempty,oneof=CORRELATION_ID ATTRIBUTE"`
	// Attribute is the key of the attribute. It is used only by EvidenceAttribute.
	Attribute string `json:"attribute,omitempty" validate:"max=500,text"`
}

// crossResolution checks which rules may resolve their alerts, and by what.
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
	report(r.Evidence == EvidenceAttribute && r.Attribute != "" && d.Filter.leavesOutAll(r.Attribute), r.Attribute,
		"resolution.attribute", "Resolution.Attribute", "contradiction", evidenceFiltered)
	report(r.Evidence != EvidenceAttribute && r.Attribute != "", r.Attribute, "resolution.attribute", "Resolution.Attribute", "not_applicable", evidenceAttribute)
}
