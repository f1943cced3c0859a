package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
)

// pageLinks has the values of the Link headers for each path of a page, in the form of the router:
// a segment that begins with $ matches any segment.
type pageLinks map[string][]string

// firstAnswers are what every page requests from the API at once. A browser without a cookie is not
// signed in, and its requests would be refused.
const firstAnswers = "</api/v1/session>; rel=preload; as=fetch; crossorigin, </api/v1/me>; rel=preload; as=fetch; crossorigin"

// readLinks returns nothing if the build has listed nothing.
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

// announce adds headers for what the page at an address will request. It adds nothing if there is
// no list.
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

// of prefers an exact path to one with a segment that matches any.
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
