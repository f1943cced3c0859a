package product

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestAddressIsFoundInTheLog(t *testing.T) {
	for name, test := range map[string]struct {
		pieces []string
		want   string
	}{
		"whole":         {[]string{"level=INFO msg=running address=127.0.0.1:8080 roles=\"[api]\"\n"}, "127.0.0.1:8080"},
		"in pieces":     {[]string{"level=INFO msg=starting\nlevel=INFO msg=run", "ning address=127.0.0.1:80", "80 roles=x\nmore\n"}, "127.0.0.1:8080"},
		"without a API": {[]string{"level=INFO msg=running address=\"\" roles=\"[dispatch]\"\n"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := &running{found: make(chan string, 1)}
			for _, piece := range test.pieces {
				if n, err := r.Write([]byte(piece)); n != len(piece) || err != nil {
					t.Fatalf("Write = %d, %v", n, err)
				}
			}
			select {
			case got := <-r.found:
				if got != test.want {
					t.Errorf("address %q, want %q", got, test.want)
				}
			default:
				t.Error("nothing was found")
			}
		})
	}
	r := &running{found: make(chan string, 1)}
	_, _ = r.Write([]byte("level=INFO msg=stopping\nlevel=INFO msg=running address=127"))
	if len(r.found) > 0 {
		t.Error("an address that was cut off was found")
	}
}

func TestAwaitEnds(t *testing.T) {
	asked := 0
	if _, err := Await(t.Context(), func() (bool, error) { asked++; return asked == 3, nil }); err != nil || asked != 3 {
		t.Errorf("asked %d times, %v", asked, err)
	}
	broken := errors.New("broken")
	if _, err := Await(t.Context(), func() (bool, error) { return false, broken }); !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := Await(ctx, func() (bool, error) { return false, nil }); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want that of the context", err)
	}
}

func TestReadsLeaveOutTheReading(t *testing.T) {
	before, after := Reads{Queries: 10, Rows: 100, Parts: 3}, Reads{Queries: 15, Rows: 150, Parts: 7}
	if got := after.Since(before); got != (Reads{Queries: 4, Rows: 50, Parts: 4}) {
		t.Errorf("Since = %+v", got)
	}
}
