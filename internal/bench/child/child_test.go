package child_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"tocsin/internal/bench/child"
)

func start(t *testing.T, script string) *child.Process {
	t.Helper()
	p, err := child.Start(child.Options{Path: "/bin/sh", Args: []string{"-c", script}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

func TestChildAnswers(t *testing.T) {
	p := start(t, `echo '{"N":1}'; read line; echo "{\"N\":$line}"; read line; exit 0`)
	var got struct{ N int }
	if err := p.Read(t.Context(), &got); err != nil || got.N != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	if err := p.WriteLine("42"); err != nil {
		t.Fatal(err)
	}
	if err := p.Read(t.Context(), &got); err != nil || got.N != 42 {
		t.Fatalf("%+v, %v", got, err)
	}
	// It ends when its standard input does.
	if err := p.Stop(time.Minute); err != nil {
		t.Error(err)
	}
	if err := p.Read(t.Context(), &got); err == nil {
		t.Error("a child that has ended answers")
	}
}

func TestChildThatEndsSaysWhy(t *testing.T) {
	p := start(t, `echo 'no such table' >&2; exit 3`)
	<-p.Ended()
	if err := p.Read(t.Context(), &struct{}{}); err == nil || !strings.Contains(err.Error(), "no such table") {
		t.Errorf("error %v, want what the child said", err)
	}
}

func TestReadingEndsWithItsContext(t *testing.T) {
	p := start(t, `read line`)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := p.Read(ctx, &struct{}{}); err == nil {
		t.Error("nothing was said, and it was read")
	}
}

func TestStubbornChildrenAreKilled(t *testing.T) {
	p := start(t, `trap '' TERM; echo '{}'; while :; do sleep 0.05; done`)
	if err := p.Read(t.Context(), &struct{}{}); err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(50 * time.Millisecond); err == nil || !strings.Contains(err.Error(), "was killed") {
		t.Errorf("error %v, want that it was killed", err)
	}
	select {
	case <-p.Ended():
	default:
		t.Error("it lives on")
	}
}

func TestParentIsWaitedFor(t *testing.T) {
	var said bytes.Buffer
	p := child.NewParent(strings.NewReader("go\n"), &said)
	if err := p.Say(map[string]int{"N": 1}); err != nil || said.String() != "{\"N\":1}\n" {
		t.Errorf("%q, %v", said.String(), err)
	}
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
	if err := p.Wait(); err != io.EOF { //nolint:errorlint // never wrapped
		t.Errorf("error %v, want the end", err)
	}
}
