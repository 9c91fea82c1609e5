// Package web serves the dashboard: the pages that `make build` makes of web/ and that
// are embedded into this executable. It knows nothing of what they show; they use the
// public API like everybody else.
//
// Pages are below /ui/, since the API is at the root. An address without a file is
// that of a page: it gets the one document, whose script finds the page.
package web

import (
	"bytes"
	"compress/gzip"
	"embed"
	"errors"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"

	"github.com/gin-gonic/gin"
)

// Base is what is before the path of each page.
const Base = "/ui/"

//go:embed all:dist
var embedded embed.FS

// policy is the content security policy of all pages: scripts, styles, fonts and data
// from here only, nothing inline, no evaluated text, no frame, and no HTML from strings
// but what the sanitizer made.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; manifest-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types dompurify"

// notBuilt is shown by an executable that was compiled without the pages.
const notBuilt = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Berth</title>
<h1>This build of Berth has no dashboard</h1>
<p>It was compiled without web/. <code>make build</code> makes the pages and compiles them in. The API is here: <a href="/reference">reference</a>.</p></html>
`

// A site are the files of the dashboard, packed with gzip where that helps.
type site struct {
	files fs.FS
	index []byte
}

// Register serves the embedded pages below Base, and leads the root there.
func Register(e *gin.Engine) {
	files, err := fs.Sub(embedded, "dist/pages")
	if err != nil {
		panic("web: " + err.Error()) // the path is a constant
	}
	register(e, files)
}

func register(e *gin.Engine, files fs.FS) {
	s := site{files: files, index: []byte(notBuilt)}
	if index, err := fs.ReadFile(files, "index.html"); err == nil {
		s.index = index
	}
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		e.Handle(method, Base+"*file", s.serve)
		e.Handle(method, "/", func(c *gin.Context) { c.Redirect(http.StatusFound, Base) })
		e.Handle(method, "/ui", func(c *gin.Context) { c.Redirect(http.StatusFound, Base) })
	}
}

func (s site) serve(c *gin.Context) {
	header := c.Writer.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")

	name := strings.TrimPrefix(path.Clean("/"+c.Param("file")), "/")
	if strings.HasPrefix(name, "assets/") || path.Ext(name) != "" && !strings.Contains(name, "/") {
		s.asset(c, name)
		return
	}
	header.Set("Cache-Control", "no-cache") // a new release has other assets
	c.Data(http.StatusOK, "text/html; charset=utf-8", s.index)
}

// asset serves a file. The names of assets change with their contents, so they are kept
// for good.
func (s site) asset(c *gin.Context, name string) {
	header := c.Writer.Header()
	header.Set("Cache-Control", "no-cache")
	if strings.HasPrefix(name, "assets/") {
		header.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	kind := mime.TypeByExtension(path.Ext(name))
	if path.Ext(name) == ".woff2" {
		kind = "font/woff2"
	}
	if body, err := fs.ReadFile(s.files, name); err == nil {
		c.Data(http.StatusOK, kind, body)
		return
	}
	packed, err := fs.ReadFile(s.files, name+".gz")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
		header.Set("Cache-Control", "no-store")
		c.String(http.StatusNotFound, "there is no file %s", name)
		return
	}
	header.Add("Vary", "Accept-Encoding")
	if strings.Contains(c.GetHeader("Accept-Encoding"), "gzip") {
		header.Set("Content-Encoding", "gzip")
		c.Data(http.StatusOK, kind, packed)
		return
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err == nil {
		var body []byte
		if body, err = io.ReadAll(unpacked); err == nil {
			c.Data(http.StatusOK, kind, body)
			return
		}
	}
	c.String(http.StatusInternalServerError, "the file %s of this build is damaged", name)
}
