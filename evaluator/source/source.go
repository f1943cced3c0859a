// Package source is the contract of what the evaluator reads exchanges from. A source is only read.
//
// Several servers may answer for a source, and one of them may lag behind the others. Therefore every
// answer names its server. Two answers are compared only if one server gave both:
// what one server shows and another does not show is no change.
package source

import (
	"context"
	"errors"

	"tocsin/cursor"
	"tocsin/rules"
)

// Source is where exchanges are read. Every answer names the server that gave it:
// two answers of one pass are compared only if the same server gave both, because
// another replica of the same table may lag behind.
type Source interface {
	// Observe returns the source's clock and the fingerprints of a range, both from
	// one query. Buckets without exchanges are left out; their order is not defined.
	Observe(ctx context.Context, q ObserveQuery) (Observation, error)
	// RowCounts returns how many rows begin in each of some ranges, whatever their
	// status and as often as they are stored. On a table sorted by start time it reads
	// the primary key only. It may count rows of other tenants, always the same ones.
	RowCounts(ctx context.Context, q RowCountQuery) (RowCounts, error)
	// Scan returns the terminal exchanges of a range in the order of their positions.
	// It may answer [ErrTooMuch], but not to a scan for one exchange.
	Scan(ctx context.Context, q Scan) (Page, error)
}

// ErrTooMuch says that exchanges are too large to hold as many at once as a scan asks
// for. Fewer of them may do.
var ErrTooMuch = errors.New("too many exchanges at once")

// Tenants says whose exchanges a query reads. The source narrows by the names or, where
// they are too many to send, by the share. Where it does so, an answer may hold other
// tenants of the same share, which the caller drops.
type Tenants struct {
	// Names are sorted, distinct, and at least one.
	Names []string
	// Index and Of say that xxHash64(name) mod Of = Index for every name. Of = 0 says
	// nothing: then the source narrows by the names, however many there are.
	Index, Of uint32
}

// ObserveQuery asks for the fingerprints of the terminal exchanges of a range.
type ObserveQuery struct {
	Tenants  Tenants
	Statuses []rules.Status
	FromNS   int64
	// ToNS ends the range, exclusive; 0 ends it at the watermark: the source's clock
	// minus SettleNS. A range that is empty returns the clock alone.
	ToNS, SettleNS int64
	// WidthNS is the width of a bucket; bucket n begins at n × WidthNS.
	WidthNS int64
	// SplitNS is an instant in the range at which a bucket is counted in two parts: what
	// begins at or after it is answered as a bucket that begins there.
	SplitNS int64
}

// Observation is the answer to an [ObserveQuery].
type Observation struct {
	// Server identifies the server that answered, the same in each of its answers.
	Server string
	// NowNS is the source's clock, in nanoseconds since the Unix epoch.
	NowNS        int64
	Fingerprints []Fingerprint
}

// Fingerprint shows whether the exchanges of a bucket are still the same. The fingerprints of
// adjoining buckets add up to that of both together.
type Fingerprint struct {
	// FromNS is the beginning of the bucket, a multiple of its width.
	FromNS int64
	// Count is the number of rows. Checksum is the sum of a hash of their ids, modulo 2^64.
	Count, Checksum uint64
}

// RowCountQuery asks how many rows begin in each of some ranges.
type RowCountQuery struct {
	Tenants Tenants
	Ranges  []cursor.Range
}

// RowCounts is the answer to a [RowCountQuery], in the order of its ranges.
type RowCounts struct {
	Server string
	Counts []uint64
}

// Scan asks for a range of the terminal exchanges of some tenants.
type Scan struct {
	Tenants Tenants
	// After is the position strictly after which the range begins.
	After cursor.Position
	// BeforeNS is the start time before which the range ends, exclusive, in
	// nanoseconds since the Unix epoch.
	BeforeNS int64
	// Statuses narrows to what any of the rules can match; never empty.
	Statuses []rules.Status
	// Applications narrows to the exchanges of the applications of these very
	// names; none narrows nothing.
	Applications []string
	// CompletedLeastNS leaves out what completed within less time, in nanoseconds; 0
	// leaves out nothing.
	CompletedLeastNS int64
	// EndedSinceNS allows to leave out what ended before that instant, in nanoseconds
	// since the Unix epoch; 0 leaves out nothing.
	EndedSinceNS int64
	// Limit is how many exchanges to return, at least 1. Exchanges of the last position
	// are all returned, so that no position is cut in two: equal ids of several tenants
	// may begin in the same nanosecond.
	Limit int
	// Narrow leaves out what does not match, where it is not nil.
	Narrow *Narrowing
}

// Narrowing is a condition that a scan may use to leave out what does not match.
type Narrowing struct {
	Scope  rules.Scope
	Filter rules.Filter
}

// Page is the answer to a [Scan].
type Page struct {
	Server    string
	Exchanges []rules.Exchange
	// More says that the limit was reached: the range may hold more.
	More bool
}
