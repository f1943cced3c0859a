package preset

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"tocsin/internal/fault"
)

// minSecretBytes is the least length of a secret. A shorter one could not be distinguished from a
// word, and could not be removed from what is shown.
const minSecretBytes = 6

func (r *reader) inputs() error {
	seen := map[string]bool{}
	for i := range r.preset.Inputs {
		in := &r.preset.Inputs[i]
		if in.Type == "" {
			in.Type = InputText
		}
		if in.Example == "" {
			in.Example = in.Default
		}
		problem := ""
		_, patternErr := regexp.Compile(in.Pattern)
		switch {
		case !inputName.MatchString(in.Name):
			problem = "needs a name of letters and digits that begins with a small letter"
		case seen[in.Name]:
			problem = "appears twice; remove one"
		case in.Label == "":
			problem = "needs a label for the form"
		case in.Type != InputText && in.Type != InputURL && in.Type != InputChoice:
			problem = "must be of type text, url or choice"
		case (in.Type == InputChoice) != (len(in.Choices) > 0):
			problem = "needs choices if its type is choice, and must not have them otherwise"
		case patternErr != nil:
			problem = "has a pattern that cannot be read: " + patternErr.Error()
		case in.Link != "" && !r.linkValid(in.Link):
			problem = `has a link that is neither a URL with https nor "{{input.NAME}}/PATH" with the name of an input of type url that is no secret`
		case in.Secret && in.Default != "":
			problem = "is a secret and cannot have a default"
		case in.Example == "" && !in.Optional:
			problem = "needs an example, which is used to test the file"
		}
		if problem == "" && in.Example != "" {
			if fields := in.check(in.Example); len(fields) > 0 {
				problem = "has an example or a default that is not valid: " + fields[0].Message
			}
		}
		if problem != "" {
			return r.fail(r.lines["inputs"], "input %q %s", in.Name, problem)
		}
		seen[in.Name] = true
	}
	return nil
}

var (
	inputName = regexp.MustCompile(`^[a-z][A-Za-z0-9]{0,39}$`)
	inputLink = regexp.MustCompile(`^\{\{input\.([A-Za-z0-9]+)\}\}/\S*$`)
)

// linkValid reports whether people can follow the link of an input.
func (r *reader) linkValid(link string) bool {
	if m := inputLink.FindStringSubmatch(link); m != nil {
		in := r.preset.input(m[1])
		return in != nil && in.Type == InputURL && !in.Secret
	}
	u, err := url.Parse(link)
	return err == nil && u.Scheme == "https" && u.Host != ""
}

// leads reports whether an input can be the beginning of a URL.
func (in *Input) leads() bool {
	return in.Type == InputURL ||
		in.Type == InputChoice && !slices.ContainsFunc(in.Choices, func(c Choice) bool { return checkBase(c.Value) != nil })
}

// CheckInputs returns what is wrong with what a person entered, as fields
// "preset.inputs.NAME". No message repeats a value.
func (p *Preset) CheckInputs(inputs map[string]string) []fault.Field {
	var fields []fault.Field
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		if p.input(name) == nil {
			fields = append(fields, fault.Field{Field: inputsField + name, Code: "unknown_field", Message: p.Name + " has no such input; remove it"})
		}
	}
	for i := range p.Inputs {
		fields = append(fields, p.Inputs[i].check(inputs[p.Inputs[i].Name])...)
	}
	if len(fields) == 0 && p.Mails() {
		_, fields = p.mail(inputs)
	}
	return fields
}

// Missing returns the labels of the inputs that are required and not there.
func (p *Preset) Missing(inputs map[string]string) (labels []string) {
	for i := range p.Inputs {
		if in := &p.Inputs[i]; !in.Optional && in.Default == "" && inputs[in.Name] == "" {
			labels = append(labels, in.Label)
		}
	}
	return labels
}

// inputsField is what the names of fields begin with.
const inputsField = "preset.inputs."

// maxInputBytes bounds the length of an input.
const maxInputBytes = 2000

func (in *Input) check(value string) []fault.Field {
	problem, code := "", "pattern"
	switch {
	case value == "" && (in.Optional || in.Default != ""):
	case value == "":
		problem, code = "Enter "+in.Label, "required"
	case len(value) > maxInputBytes:
		problem, code = fmt.Sprintf("Must be at most %d bytes", maxInputBytes), "out_of_range"
	case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7F }) || strings.TrimSpace(value) != value:
		problem, code = "Contains line breaks, control characters, or spaces at the beginning or end; remove them", "text"
	case in.Secret && len(value) < minSecretBytes:
		problem = fmt.Sprintf("Too short for a secret: at least %d characters", minSecretBytes)
	case in.Type == InputURL:
		if err := checkBase(value); err != nil {
			problem, code = err.Error(), "url"
		}
	case in.Type == InputChoice:
		if !slices.ContainsFunc(in.Choices, func(c Choice) bool { return c.Value == value }) {
			problem, code = "Must be one of the offered values; GET /receivers lists them", "unknown_value"
		}
	}
	if problem == "" && value != "" && in.Pattern != "" && !regexp.MustCompile(`^(?:`+in.Pattern+`)$`).MatchString(value) {
		problem = "Does not have the expected form; " + in.Help
	}
	if problem == "" {
		return nil
	}
	return []fault.Field{{Field: inputsField + in.Name, Code: code, Message: problem}}
}
