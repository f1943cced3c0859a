package postgres_test

import (
	"testing"
	"time"
)

// BenchmarkCommitKnown commits pages of 1,000 alerts that exist already, alternating with pages of
// new ones.
func BenchmarkCommitKnown(b *testing.B) {
	p := newPersist(b)
	batch := p.page()
	p.commit(b, batch)
	var fresh, known time.Duration
	for b.Loop() {
		batch := p.page()
		began := time.Now()
		p.commit(b, batch)
		fresh += time.Since(began)
		batch.Revision = p.revision
		for i := range batch.Instances {
			batch.Instances[i].Late = true
		}
		began = time.Now()
		if done := p.write(b, batch); len(done.Inserted) > 0 {
			b.Fatal("new")
		}
		known += time.Since(began)
	}
	b.ReportMetric(float64(fresh.Microseconds())/float64(b.N*pageOf), "us/new")
	b.ReportMetric(float64(known.Microseconds())/float64(b.N*pageOf), "us/known")
	b.ReportMetric(0, "ns/op")
}
