package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"
)

// contentSecurityPolicy allows inline styles because the component library writes its variables
// there.
const contentSecurityPolicy = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
	"object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

const (
	keepForEver = "public, max-age=31536000, immutable"
	askEachTime = "no-cache"
)

// linksFile is written by the build and not served, see readLinks.
const linksFile = "links.json"

// handler serves the files of one site. It is immutable, and safe for concurrent use.
type handler struct {
	files map[string]file
	links pageLinks
}

// file is one file in all its forms. The compressed forms are nil if the build has not made them.
type file struct {
	contentType    string
	tag            string
	plain, br, gz  []byte
	keepsForEver   bool
	isHTMLDocument bool
}

func newHandler(site fs.FS) (*handler, error) {
	h := &handler{files: map[string]file{}}
	err := fs.WalkDir(site, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || isCompressed(name) {
			return err
		}
		f, err := readFile(site, name)
		if err != nil {
			return err
		}
		h.files[name] = f
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the site: %w", err)
	}
	delete(h.files, linksFile)
	if h.links, err = readLinks(site); err != nil {
		return nil, fmt.Errorf("read the site: %w", err)
	}
	if _, ok := h.files["index.html"]; !ok {
		return nil, fmt.Errorf("read the site: index.html: %w", fs.ErrNotExist)
	}
	return h, nil
}

func readFile(site fs.FS, name string) (file, error) {
	plain, err := fs.ReadFile(site, name)
	if err != nil {
		return file{}, err
	}
	hash := sha256.Sum256(plain)
	f := file{
		contentType:    contentType(name),
		tag:            base64.RawURLEncoding.EncodeToString(hash[:12]),
		plain:          plain,
		keepsForEver:   strings.HasPrefix(name, "assets/"),
		isHTMLDocument: path.Ext(name) == ".html",
	}
	// A missing form stays nil: the plain form works for everybody.
	f.br, _ = fs.ReadFile(site, name+".br")
	f.gz, _ = fs.ReadFile(site, name+".gz")
	return f, nil
}

// ServeHTTP answers GET and HEAD, and 405 to everything else.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	name := strings.TrimPrefix(path.Clean("/"+r.URL.Path), "/")
	f, ok := h.files[name]
	if !ok {
		if strings.HasPrefix(name, "assets/") {
			w.Header().Set("Cache-Control", askEachTime)
			http.NotFound(w, r)
			return
		}
		f = h.files["index.html"]
		h.links.announce(w.Header(), name, r)
	}
	f.serve(w, r)
}

func (f file) serve(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Type", f.contentType)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", askEachTime)
	if f.keepsForEver {
		header.Set("Cache-Control", keepForEver)
	}
	if f.isHTMLDocument {
		header.Set("Content-Security-Policy", contentSecurityPolicy)
		header.Set("Referrer-Policy", "same-origin")
	}

	body, tag := f.plain, f.tag
	if f.br != nil || f.gz != nil {
		header.Add("Vary", "Accept-Encoding")
		accepted := r.Header.Values("Accept-Encoding")
		switch {
		case f.br != nil && accepts(accepted, "br"):
			body, tag = f.br, f.tag+"-br"
			header.Set("Content-Encoding", "br")
		case f.gz != nil && accepts(accepted, "gzip"):
			body, tag = f.gz, f.tag+"-gz"
			header.Set("Content-Encoding", "gzip")
		}
	}
	header.Set("ETag", strconv.Quote(tag))
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

// accepts reports whether a client accepts the coding: it is named, and not with a quality of zero.
// A star does not count: such a client gets the plain form.
func accepts(header []string, coding string) bool {
	for part := range strings.SplitSeq(strings.Join(header, ","), ",") {
		name, parameter, _ := strings.Cut(part, ";")
		if !strings.EqualFold(strings.TrimSpace(name), coding) {
			continue
		}
		value, isQuality := strings.CutPrefix(strings.TrimSpace(parameter), "q=")
		if !isQuality {
			return true
		}
		quality, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		return err == nil && quality > 0
	}
	return false
}

func isCompressed(name string) bool {
	return strings.HasSuffix(name, ".br") || strings.HasSuffix(name, ".gz")
}

// contentType does not use the machine's own table, which differs between systems.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".png":
		return "image/png"
	case ".woff2":
		return "font/woff2"
	case ".json":
		return "application/json"
	case ".webmanifest":
		return "application/manifest+json"
	case ".txt":
		return "text/plain; charset=utf-8"
	default:
		return "application/octet-stream"
	}
}
