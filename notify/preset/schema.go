package preset

import (
	"bytes"
	"fmt"
	"net/url"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Valid checks a body against the preset's schema. Without a schema, every body is valid.
func (p *Preset) Valid(body []byte) error {
	if len(p.Schema) == 0 {
		return nil
	}
	compiled, err := p.compiled()
	if err != nil {
		return err
	}
	value, err := p.decode(body)
	if err != nil {
		return fmt.Errorf("read the body: %w", err)
	}
	return compiled.Validate(value)
}

// decode parses a body. A form becomes a mapping of texts.
func (p *Preset) decode(body []byte) (any, error) {
	if p.encoding != encodingForm {
		return jsonschema.UnmarshalJSON(bytes.NewReader(body))
	}
	values, err := url.ParseQuery(string(body))
	members := map[string]any{}
	for name := range values {
		members[name] = values.Get(name)
	}
	return members, err
}

// compileSchema parses the preset's schema.
func (p *Preset) compileSchema() (*jsonschema.Schema, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(p.Schema))
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	// No file and no network: a schema must be self-contained.
	compiler.UseLoader(jsonschema.SchemeURLLoader{})
	const at = "mem:///preset.json"
	if err := compiler.AddResource(at, document); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	compiled, err := compiler.Compile(at)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return compiled, nil
}
