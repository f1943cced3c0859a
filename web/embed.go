// Package web carries the web application inside the binary and serves it.
//
// Vite builds the application into dist, which is not committed; dist-placeholder is, so that a fresh clone builds with
// Go alone and says in the browser what is missing. Both are embedded by one pattern that matches whether dist exists or
// not. What is served is decided once, when the handler is made: dist if it holds an application, else the placeholder.
//
// Everything served is held in memory, with an entity tag and, where the build has made them, a Brotli and a gzip form.
// Files below assets/ carry a hash of their content in their names: a browser may keep them for ever, and one that is
// missing is 404. All else must be asked for anew each time, which costs a 304. Any other path is a page of the
// application and gets its index.html, whose script reads the address.
//
// With a page come Link headers that name what its address needs beside index.html: its own scripts and styles, as the build
// has listed them, and the first answers of the API for a browser that brings a cookie. They are hints: a page does
// without them, later.
//
// The headers forbid the page everything that it does not do: no script but its own files, no other host, no framing.
package web

import (
	"embed"
	"io/fs"
	"net/http"
)

//go:embed all:dist*
var built embed.FS

// Handler serves the web application, or the placeholder if the binary was built without it. It panics if neither is in
// the binary, which only a damaged source tree can bring about.
func Handler() http.Handler {
	for _, dir := range []string{"dist", "dist-placeholder"} {
		if _, err := fs.Stat(built, dir+"/index.html"); err != nil {
			continue
		}
		site, err := fs.Sub(built, dir)
		if err != nil {
			panic(err)
		}
		h, err := newHandler(site)
		if err != nil {
			panic(err)
		}
		return h
	}
	panic("web: the binary holds no page")
}
