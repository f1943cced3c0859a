// Package web embeds the web application in the binary and serves it.
//
// Vite builds the application into dist, which is not committed. dist-placeholder is committed, so
// that a fresh clone builds with Go only, and the browser shows what is missing. One pattern embeds
// both, whether dist exists or not. What is served is decided once, when the handler is made: dist
// if it contains an application, otherwise the placeholder.
//
// All files are in memory, each with an entity tag and, if the build has made them, a Brotli and a
// gzip form. Files below assets/ have a hash of their content in their names: browsers may cache
// them for ever, and a missing one is a 404. All other files must be revalidated each time, which
// costs a 304. Any other path is a page of the application and gets its index.html, whose script
// reads the address.
//
// A page has Link headers for what its address needs besides index.html: its scripts and styles, as
// listed by the build, and the first answers of the API for a browser that sends a cookie. They are
// hints: without them, a page works, but is slower.
//
// The headers forbid everything that the page does not do: only its own script files, no other
// host, no framing.
package web

import (
	"embed"
	"io/fs"
	"net/http"
)

//go:embed all:dist*
var built embed.FS

// Handler serves the web application, or the placeholder if the binary was built without it. It
// panics if the binary contains neither, which can only happen with a damaged source tree.
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
