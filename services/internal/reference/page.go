// Package reference publishes the contract of an API: as a document for
// programs, and as a page for people, which Redoc renders.
//
// The page loads nothing from anybody else: the script is part of the
// executable, and the Content-Security-Policy allows no other.
package reference

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/gin-gonic/gin"
)

//go:embed page.html.tmpl
var pageHTML string

var pageTemplate = template.Must(template.New("reference").Parse(pageHTML))

//go:embed start.js
var startJS []byte

// assets has redoc.standalone.js, unless the build left it out
// (dev/scripts/assets.sh).
//
//go:embed assets
var assets embed.FS

const redoc = "assets/redoc.standalone.js"

// policy allows the two scripts, the contract, and the styles that carry the
// nonce; Redoc makes two without it, which are named by their contents. It
// searches in a worker that it makes itself.
const policy = "default-src 'none'; script-src 'nonce-%[1]s'; " +
	"style-src 'nonce-%[1]s' 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=' 'sha256-QMIg+bpjm3JdElJ388KYke01izlUW0UoNOeKjpMxdgc='; " +
	"connect-src 'self'; img-src data:; worker-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Redoc shows a logo of its makers next to their name, from their site, and has no
// setting for it. An image that holds nothing takes its place, and Redoc leaves
// out what cannot be shown.
var redocLogo, noLogo = []byte("https://cdn.redoc.ly/redoc/logo-mini.svg"), []byte("data:,")

// redocScript is the script of the page, which asks no other site for anything.
func redocScript() ([]byte, error) {
	script, err := assets.ReadFile(redoc)
	return bytes.ReplaceAll(script, redocLogo, noLogo), err
}

// Serve serves the contract at /openapi.json and the page at /reference. What that
// takes is made when somebody asks for it.
func Serve(router gin.IRouter, spec *openapi3.T, basePath string, clients Clients) {
	title := spec.Info.Title
	_, missing := fs.Stat(assets, redoc)
	router.GET("/openapi.json", serve("application/json", func() ([]byte, error) { return Document(spec, basePath, clients) }))
	router.GET("/reference/redoc.js", serve("text/javascript; charset=utf-8", redocScript))
	router.GET("/reference/start.js", serve("text/javascript; charset=utf-8", func() ([]byte, error) { return startJS, nil }))
	router.GET("/reference", func(c *gin.Context) {
		nonce := rand.Text()
		var page bytes.Buffer
		if err := pageTemplate.Execute(&page, struct {
			Title, Nonce string
			Missing      bool
		}{title, nonce, missing != nil}); err != nil {
			panic(fmt.Sprintf("reference: render page: %v", err))
		}
		c.Header("Content-Security-Policy", fmt.Sprintf(policy, nonce))
		c.Header("Cache-Control", "no-store")
		c.Header("Referrer-Policy", "no-referrer")
		c.Header("X-Content-Type-Options", "nosniff")
		c.Data(http.StatusOK, "text/html; charset=utf-8", page.Bytes())
	})
}

// serve answers with a file that stays the same as long as the service runs.
func serve(contentType string, read func() ([]byte, error)) gin.HandlerFunc {
	type made struct {
		body []byte
		tag  string
	}
	file := sync.OnceValues(func() (made, error) {
		body, err := read()
		return made{body, fmt.Sprintf(`"%x"`, sha256.Sum256(body))}, err
	})
	return func(c *gin.Context) {
		f, err := file()
		switch {
		case errors.Is(err, fs.ErrNotExist):
			c.Status(http.StatusNotFound)
			return
		case err != nil:
			panic(fmt.Sprintf("reference: %v", err)) // a mistake at build time
		}
		c.Header("ETag", f.tag)
		c.Header("Cache-Control", "no-cache")
		c.Header("X-Content-Type-Options", "nosniff")
		if c.GetHeader("If-None-Match") == f.tag {
			c.Status(http.StatusNotModified)
			return
		}
		c.Data(http.StatusOK, contentType, f.body)
	}
}
