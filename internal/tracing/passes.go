package tracing

import (
	"sync"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// passes holds back the spans of each pass until it ends. It drops those of a pass that neither
// raised anything nor failed, unless its trace is in the share.
type passes struct {
	sdktrace.SpanProcessor

	samples func(trace.TraceID) bool
	mu      sync.Mutex
	held    map[trace.TraceID][]sdktrace.ReadOnlySpan
}

func newPasses(next sdktrace.SpanProcessor, samples func(trace.TraceID) bool) *passes {
	return &passes{SpanProcessor: next, samples: samples, held: map[trace.TraceID][]sdktrace.ReadOnlySpan{}}
}

// mostHeld bounds the spans that are held back for one pass. Further spans of a long pass are lost,
// except its end.
const mostHeld = 1000

// OnEnd passes on the spans to export.
func (p *passes) OnEnd(s sdktrace.ReadOnlySpan) {
	id := s.SpanContext().TraceID()
	switch name := s.Name(); {
	case name == spanNotification, name == spanAttempt, name != spanPass && !s.Parent().IsValid():
		p.SpanProcessor.OnEnd(s)
	case name == spanPass:
		p.mu.Lock()
		held := p.held[id]
		delete(p.held, id)
		p.mu.Unlock()
		if !isWorthwhile(s) && !p.samples(id) {
			return
		}
		for _, child := range held {
			p.SpanProcessor.OnEnd(child)
		}
		p.SpanProcessor.OnEnd(s)
	default:
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.held[id]) < mostHeld {
			p.held[id] = append(p.held[id], s)
		}
	}
}

// isWorthwhile reports whether a pass is marked as worthwhile.
func isWorthwhile(s sdktrace.ReadOnlySpan) bool {
	for _, a := range s.Attributes() {
		if a.Key == keyWorthwhile {
			return a.Value.AsBool()
		}
	}
	return false
}
