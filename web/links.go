package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
)

// pageLinks has the values of the Link headers for each path of a page, as the router writes it: a segment that begins
// with $ stands for any.
type pageLinks map[string][]string

// firstAnswers are what every page asks the API for at once. Nobody who brings no cookie is signed in, and would be refused.
const firstAnswers = "</api/v1/session>; rel=preload; as=fetch; crossorigin, </api/v1/me>; rel=preload; as=fetch; crossorigin"

// readLinks returns nothing where the build has listed nothing.
func readLinks(site fs.FS) (pageLinks, error) {
	text, err := fs.ReadFile(site, linksFile)
	if errors.Is(err, fs.ErrNotExist) {
		return pageLinks{}, nil
	}
	if err != nil {
		return nil, err
	}
	var links pageLinks
	if err := json.Unmarshal(text, &links); err != nil {
		return nil, fmt.Errorf("%s: %w", linksFile, err)
	}
	return links, nil
}

// announce names what the page at an address will ask for. It says nothing of a site without such a list.
func (l pageLinks) announce(header http.Header, name string, r *http.Request) {
	if len(l) == 0 {
		return
	}
	if links := l.of("/" + name); len(links) > 0 {
		header.Add("Link", strings.Join(links, ", "))
	}
	if r.Header.Get("Cookie") != "" {
		header.Add("Link", firstAnswers)
	}
}

// of prefers the path that is written out to one with a segment that stands for any.
func (l pageLinks) of(path string) []string {
	if links, ok := l[path]; ok {
		return links
	}
	for pattern, links := range l {
		if matches(pattern, path) {
			return links
		}
	}
	return nil
}

func matches(pattern, path string) bool {
	want, got := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return false
	}
	for i := range want {
		if want[i] != got[i] && !strings.HasPrefix(want[i], "$") {
			return false
		}
	}
	return true
}
