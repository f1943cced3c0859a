//go:build !unix

// Command devstack is for developing Tocsin and for trying it out. It needs Linux or macOS.
package main

import (
	"fmt"
	"os"
	"runtime"
)

func main() {
	_, _ = fmt.Fprintf(os.Stderr, "devstack: no database engines for %s/%s: use Linux, macOS or, on Windows, WSL 2\n",
		runtime.GOOS, runtime.GOARCH)
	os.Exit(1)
}
