package oidclogin

import (
	"crypto/sha256"
	"encoding/base64"
	"html/template"
	"net/http"

	"github.com/gin-gonic/gin"
)

const style = `body{font:16px/1.5 system-ui,sans-serif;max-width:32rem;margin:15vh auto;padding:0 1.5rem;color:#1a1a1a;background:#fff}
h1{font-size:1.25rem}a{color:inherit}
@media(prefers-color-scheme:dark){body{color:#eee;background:#111}}`

var (
	page = template.Must(template.New("").Parse(`<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{{.Title}} · Berth</title><style>` + style + `</style>
<main><h1>{{.Title}}</h1><p>{{.Text}}</p><p><a href="/ui/login">Back to the login</a></p></main></html>
`))
	styleHash = func() string {
		sum := sha256.Sum256([]byte(style))
		return base64.StdEncoding.EncodeToString(sum[:])
	}()
)

// problem answers with a page that says why somebody is not logged in.
func problem(c *gin.Context, status int, title, text string) {
	h := c.Writer.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'sha256-"+styleHash+"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	c.Status(status)
	if c.Request.Method != http.MethodHead {
		_ = page.Execute(c.Writer, struct{ Title, Text string }{title, text}) // nobody is there to read it
	}
	c.Abort()
}
