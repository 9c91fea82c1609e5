package main

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/berth-dev/berth/pkg/appconfig/schema"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/httpserver"
)

// schemaAge is how long editors may keep a schema, in seconds: until a newer
// ctl-api may have another one.
const schemaAge = "3600"

// serveSchemas serves the JSON Schemas of the app format to editors, which have
// no credentials: `#:schema <url of ctl-api>/schemas/helm` as a file's first
// line. They say nothing of any org.
func serveSchemas(routes gin.IRouter) {
	routes.GET("/schemas", func(c *gin.Context) {
		type kind struct {
			Name  string `json:"name"`
			Files string `json:"files"`
		}
		items := []kind{}
		for _, k := range schema.Kinds() {
			items = append(items, kind{Name: k.Name, Files: k.Files})
		}
		c.JSON(http.StatusOK, gin.H{"items": items})
	})
	routes.GET("/schemas/:kind", func(c *gin.Context) {
		text, err := schema.Of(strings.TrimSuffix(c.Param("kind"), ".json"))
		if err != nil {
			httpserver.WriteProblem(c, fault.With(fault.Newf(fault.ErrNotFound, "%v", err), fault.Code("schema_not_found")))
			return
		}
		c.Header("Cache-Control", "public, max-age="+schemaAge)
		c.Data(http.StatusOK, "application/schema+json", text)
	})
}
