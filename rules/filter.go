package rules

// Scope says which exchanges a rule looks at. Each list is a disjunction of names, in which "*"
// matches any run of characters; an empty list means no restriction. Names in a Not list are
// excluded, whatever the other lists say.
type Scope struct {
	Environments    []string `json:"environments,omitempty" validate:"max=100,dive,required,max=200,text"`
	NotEnvironments []string `json:"notEnvironments,omitempty" validate:"max=100,dive,required,max=200,text"`
	Applications    []string `json:"applications,omitempty" validate:"max=100,dive,required,max=200,text"`
	NotApplications []string `json:"notApplications,omitempty" validate:"max=100,dive,required,max=200,text"`
	Routes          []string `json:"routes,omitempty" validate:"max=100,dive,required,max=200,text"`
	NotRoutes       []string `json:"notRoutes,omitempty" validate:"max=100,dive,required,max=200,text"`
}

// MaxWildcards is how many wildcards a name of a scope may have. ClickHouse nests functions for each of them, and refuses to
// nest about a hundred: a rule could then be evaluated, but neither counted nor previewed.
const MaxWildcards = 20

// Filter says which exchanges a rule matches. Its parts are combined by AND. An absent part means
// no restriction, except Statuses.
type Filter struct {
	// Statuses are terminal statuses; none means FAILED.
	Statuses      []Status `json:"statuses,omitempty" validate:"max=2,unique,dive,oneof=COMPLETED FAILED"`
	ErrorTypes    []string `json:"errorTypes,omitempty" validate:"max=100,dive,required,max=500,text"`
	NotErrorTypes []string `json:"notErrorTypes,omitempty" validate:"max=100,dive,required,max=500,text"`
	// ErrorMessageContains is compared byte by byte, with case. The message must contain none of
	// ErrorMessageNotContains.
	ErrorMessageContains    string   `json:"errorMessageContains,omitempty" validate:"max=1000,text"`
	ErrorMessageNotContains []string `json:"errorMessageNotContains,omitempty" validate:"max=20,dive,required,max=1000,text"`
	// ErrorMessageMatches is an RE2 expression that matches anywhere in the message. None of
	// ErrorMessageNotMatches may match.
	ErrorMessageMatches    string   `json:"errorMessageMatches,omitempty" validate:"max=1000,text,regexp"`
	ErrorMessageNotMatches []string `json:"errorMessageNotMatches,omitempty" validate:"max=20,dive,required,max=1000,text,regexp"`
	// MinDurationMS and MaxDurationMS are inclusive, in milliseconds.
	MinDurationMS *int64           `json:"minDurationMs,omitempty" validate:"omitempty,min=0,max=9000000000000"`
	MaxDurationMS *int64           `json:"maxDurationMs,omitempty" validate:"omitempty,min=0,max=9000000000000"`
	Attributes    []AttributeMatch `json:"attributes,omitempty" validate:"max=50,dive"`
}

// StatusesOrDefault returns the statuses that f selects: FAILED if it names none.
func (f *Filter) StatusesOrDefault() []Status {
	if len(f.Statuses) == 0 {
		return []Status{Failed}
	}
	return f.Statuses
}

// Fields are the fields of an exchange that a condition uses, in addition to its status.
type Fields struct {
	Environment, Application, Route, ErrorType bool
	// Others says that the condition uses other fields as well.
	Others bool
}

// FieldsOf returns the fields that a condition uses.
func FieldsOf(s *Scope, f *Filter) Fields {
	return Fields{
		Environment: len(s.Environments)+len(s.NotEnvironments) > 0,
		Application: len(s.Applications)+len(s.NotApplications) > 0,
		Route:       len(s.Routes)+len(s.NotRoutes) > 0,
		ErrorType:   len(f.ErrorTypes)+len(f.NotErrorTypes) > 0,
		Others: f.ErrorMessageContains != "" || len(f.ErrorMessageNotContains) > 0 ||
			f.ErrorMessageMatches != "" || len(f.ErrorMessageNotMatches) > 0 ||
			f.MinDurationMS != nil || f.MaxDurationMS != nil || len(f.Attributes) > 0,
	}
}

// namesOf returns the names that the scope includes and excludes, for the field that exchanges are
// grouped by.
func (s *Scope) namesOf(by GroupBy) (some, others []string) {
	switch by {
	case GroupByRoute:
		return s.Routes, s.NotRoutes
	case GroupByApplication:
		return s.Applications, s.NotApplications
	case GroupByEnvironment:
		return s.Environments, s.NotEnvironments
	case GroupByNothing, GroupByErrorType, GroupByAttribute:
	}
	return nil, nil
}
