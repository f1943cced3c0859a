package netport_test

import (
	"net"
	"testing"

	"tocsin/cmd/devstack/internal/netport"
)

func TestFree(t *testing.T) {
	t.Parallel()
	free, err := netport.Free(0)
	if err != nil {
		t.Fatal(err)
	}
	if err := netport.Available(free); err != nil {
		t.Errorf("port %d: %v", free, err)
	}

	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	taken := listener.Addr().(*net.TCPAddr).Port
	if err := netport.Available(taken); !netport.Taken(err) {
		t.Errorf("a port in use is reported as %v", err)
	}
	if other, err := netport.Free(taken); err != nil || other == taken {
		t.Errorf("port %d instead of the taken %d, %v", other, taken, err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if same, err := netport.Free(taken); err != nil || same != taken {
		t.Errorf("port %d instead of the preferred %d, %v", same, taken, err)
	}
}
