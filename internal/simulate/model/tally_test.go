package model_test

import (
	"testing"

	"tocsin/internal/simulate/model"
	"tocsin/internal/windowtest"
	"tocsin/rules"
)

// TestTallyLaw holds the model to what ClickHouse does.
func TestTallyLaw(t *testing.T) {
	ch := &model.ClickHouse{Now: func() int64 { return windowtest.Watermark }}
	windowtest.TallyLaw(t, ch.On(func() int { return 0 }), func(list ...rules.Exchange) {
		for _, e := range list {
			ch.Insert(model.Row{Exchange: e, VisibleNS: []int64{0}})
		}
	})
}
