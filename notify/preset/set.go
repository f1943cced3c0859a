package preset

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"tocsin/notify"
)

//go:embed receivers/*.yaml
var receivers embed.FS

//go:embed receiver.schema.json
var schema []byte

// Schema returns the JSON Schema of the files of presets, for editors.
func Schema() []byte { return slices.Clone(schema) }

// Set is a set of presets. It is safe for concurrent use; nil is an empty set.
type Set struct{ list []*Preset }

// builtIn reads the presets of the program once.
var builtIn = sync.OnceValues(func() ([]*Preset, error) { //nolint:gochecknoglobals // read once
	files, err := fs.Glob(receivers, "receivers/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list receivers: %w", err)
	}
	var list []*Preset
	for _, file := range files {
		text, err := receivers.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read receiver: %w", err)
		}
		p, err := Parse(strings.TrimPrefix(file, "receivers/"), text)
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
})

// Load reads the presets of the program and those of an operator. Each path is a file, or a folder
// whose files with names in .yaml or .yml are read. An operator's preset replaces the program's
// preset with the same id. Operators' presets are tried with samples; see [Preset.Check].
func Load(paths ...string) (*Set, error) {
	list, err := builtIn()
	if err != nil {
		return nil, err
	}
	set := &Set{list: slices.Clone(list)}
	seen := map[string]string{}
	messages := samples{}
	for _, path := range paths {
		files, err := filesOf(path)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			p, err := ReadFile(file)
			if err != nil {
				return nil, err
			}
			if before := seen[p.ID]; before != "" {
				return nil, &Error{File: file, Line: 1, Message: fmt.Sprintf("The ID %q is also used by %s; change one of them", p.ID, before)}
			}
			seen[p.ID] = file
			if report := p.check(messages); len(report.Problems) > 0 {
				return nil, &Error{File: file, Line: 1, Message: report.Problems[0] + "; see `tocsin receivers check`"}
			}
			set.list = slices.DeleteFunc(set.list, func(other *Preset) bool { return other.ID == p.ID })
			set.list = append(set.list, p)
		}
	}
	slices.SortFunc(set.list, func(a, b *Preset) int { return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)) })
	return set, nil
}

// ReadFile reads an operator's preset.
func ReadFile(path string) (*Preset, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read receiver: %w", err)
	}
	p, err := Parse(path, text)
	if err != nil {
		return nil, err
	}
	p.Own = true
	return p, nil
}

func filesOf(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read receivers: %w", err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("read receivers: %w", err)
	}
	var files []string
	for _, entry := range entries {
		if extension := filepath.Ext(entry.Name()); !entry.IsDir() && (extension == ".yaml" || extension == ".yml") {
			files = append(files, filepath.Join(path, entry.Name()))
		}
	}
	return files, nil
}

// All returns the presets by name.
func (s *Set) All() []*Preset {
	if s == nil {
		return nil
	}
	return s.list
}

// Schedule returns the schedule and the maximum age of a webhook's receiver.
func (s *Set) Schedule(w *notify.Webhook) notify.Schedule {
	if w.Preset == "" {
		return notify.Schedule{}
	}
	p := s.Get(w.Preset)
	if p == nil {
		return notify.Schedule{}
	}
	return p.Schedule
}

// Span returns the duration of the longest schedule of a receiver.
func (s *Set) Span() (longest time.Duration) {
	for _, p := range s.All() {
		longest = max(longest, notify.Policy{Schedule: p.Schedule.Pauses}.Span())
	}
	return longest
}

// TakesDigests reports whether the receiver of a preset takes digests. Webhooks without a preset do, and
// so does a preset that is not known at present.
func (s *Set) TakesDigests(id string) bool {
	p := s.Get(id)
	return p == nil || p.Sends(Digest)
}

// Get returns a preset by its id; nil if there is none.
func (s *Set) Get(id string) *Preset {
	for _, p := range s.All() {
		if p.ID == id {
			return p
		}
	}
	return nil
}

// Speaking returns the ids of the presets with a protocol.
func (s *Set) Speaking(protocol string) []string {
	ids := []string{}
	for _, p := range s.All() {
		if p.Protocol == protocol {
			ids = append(ids, p.ID)
		}
	}
	return ids
}

// Keyed returns the ids of the presets whose receivers identify alerts by a key.
func (s *Set) Keyed() []string {
	ids := []string{}
	for _, p := range s.All() {
		if p.Keyed {
			ids = append(ids, p.ID)
		}
	}
	return ids
}
