package httpserver

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/gin-gonic/gin"
)

//go:embed reference.html.tmpl
var referenceHTML string

var referenceTemplate = template.Must(template.New("reference").Parse(referenceHTML))

type (
	referencePage struct {
		Title, Version, Description string
		Tags                        []referenceTag
	}
	referenceTag struct {
		Name, Description string
		Operations        []referenceOperation
	}
	referenceOperation struct {
		ID, Method, Path, Summary, Description string
		Parameters                             []referenceParameter
		Bodies                                 []referenceBody
		Responses                              []referenceBody
	}
	referenceParameter struct {
		Name, In, Type, Description string
		Required                    bool
	}
	referenceBody struct {
		Status, Description, ContentType, Example string
	}
)

// serveReference serves the contract for people and for programs. The page is
// rendered once, loads nothing from anywhere and runs no script.
func (s *Server) serveReference() {
	raw, err := s.cfg.Spec.MarshalJSON()
	if err != nil {
		panic(fmt.Sprintf("httpserver: encode contract: %v", err))
	}
	var page bytes.Buffer
	if err := referenceTemplate.Execute(&page, referenceOf(s.cfg.Spec, s.cfg.BasePath)); err != nil {
		panic(fmt.Sprintf("httpserver: render reference: %v", err))
	}
	s.engine.GET("/openapi.json", func(c *gin.Context) { c.Data(http.StatusOK, "application/json", raw) })
	s.engine.GET("/reference", func(c *gin.Context) {
		c.Header("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
		c.Data(http.StatusOK, "text/html; charset=utf-8", page.Bytes())
	})
}

func referenceOf(spec *openapi3.T, basePath string) referencePage {
	page := referencePage{Title: spec.Info.Title, Version: spec.Info.Version, Description: spec.Info.Description}
	byTag := map[string][]referenceOperation{}
	for path, item := range spec.Paths.Map() {
		for method, op := range item.Operations() {
			tag := "Other"
			if len(op.Tags) > 0 {
				tag = op.Tags[0]
			}
			byTag[tag] = append(byTag[tag], referenceOperationOf(method, basePath+path, item, op))
		}
	}
	// Tags in the order of the contract, then those it does not describe.
	for _, tag := range spec.Tags {
		page.Tags = append(page.Tags, referenceTag{Name: tag.Name, Description: tag.Description, Operations: byTag[tag.Name]})
		delete(byTag, tag.Name)
	}
	for _, name := range sortedKeys(byTag) {
		page.Tags = append(page.Tags, referenceTag{Name: name, Operations: byTag[name]})
	}
	page.Tags = slices.DeleteFunc(page.Tags, func(t referenceTag) bool { return len(t.Operations) == 0 })
	for _, tag := range page.Tags {
		slices.SortFunc(tag.Operations, func(a, b referenceOperation) int {
			return strings.Compare(a.Path+" "+methodOrder(a.Method), b.Path+" "+methodOrder(b.Method))
		})
	}
	return page
}

// methodOrder sorts reading before writing.
func methodOrder(method string) string {
	return fmt.Sprint(slices.Index([]string{"GET", "POST", "PUT", "PATCH", "DELETE"}, method), method)
}

func referenceOperationOf(method, path string, item *openapi3.PathItem, op *openapi3.Operation) referenceOperation {
	ref := referenceOperation{ID: op.OperationID, Method: method, Path: path, Summary: op.Summary, Description: op.Description}
	for _, p := range append(slices.Clone(item.Parameters), op.Parameters...) {
		ref.Parameters = append(ref.Parameters, referenceParameter{
			Name: p.Value.Name, In: p.Value.In, Required: p.Value.Required,
			Type: typeText(p.Value.Schema), Description: p.Value.Description,
		})
	}
	if op.RequestBody != nil {
		ref.Bodies = bodiesOf("", op.RequestBody.Value.Description, op.RequestBody.Value.Content)
	}
	if op.Responses != nil {
		responses := op.Responses.Map()
		for _, status := range sortedKeys(responses) {
			response := responses[status].Value
			description := ""
			if response.Description != nil {
				description = *response.Description
			}
			ref.Responses = append(ref.Responses, bodiesOf(status, description, response.Content)...)
		}
	}
	return ref
}

func bodiesOf(status, description string, content openapi3.Content) []referenceBody {
	if len(content) == 0 {
		return []referenceBody{{Status: status, Description: description}}
	}
	var bodies []referenceBody
	for _, contentType := range sortedKeys(content) {
		bodies = append(bodies, referenceBody{
			Status: status, Description: description, ContentType: contentType, Example: exampleText(content[contentType]),
		})
	}
	return bodies
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// exampleText is the contract's own example, or one made from the schema.
func exampleText(media *openapi3.MediaType) string {
	var example any
	switch {
	case media.Example != nil:
		example = media.Example
	case len(media.Examples) > 0:
		example = media.Examples[sortedKeys(media.Examples)[0]].Value.Value
	default:
		example = exampleOf(media.Schema, 0)
	}
	if text, ok := example.(string); ok {
		return text
	}
	text, err := json.MarshalIndent(example, "", "  ")
	if err != nil || example == nil {
		return ""
	}
	return string(text)
}

// maxExampleDepth ends schemas that contain themselves.
const maxExampleDepth = 6

func exampleOf(ref *openapi3.SchemaRef, depth int) any {
	if ref == nil || ref.Value == nil || depth > maxExampleDepth {
		return nil
	}
	schema := ref.Value
	switch {
	case schema.Example != nil:
		return schema.Example
	case schema.Default != nil:
		return schema.Default
	case len(schema.Enum) > 0:
		return schema.Enum[0]
	case len(schema.OneOf) > 0:
		return exampleOf(schema.OneOf[0], depth+1)
	case len(schema.AnyOf) > 0:
		return exampleOf(schema.AnyOf[0], depth+1)
	case schema.Type.Is("array"):
		if item := exampleOf(schema.Items, depth+1); item != nil {
			return []any{item}
		}
		return []any{}
	case schema.Type.Is("string"):
		return exampleString(schema.Format)
	case schema.Type.Is("integer"), schema.Type.Is("number"):
		if schema.Min != nil {
			return *schema.Min
		}
		return 0
	case schema.Type.Is("boolean"):
		return false
	}
	object := map[string]any{}
	for _, part := range schema.AllOf {
		if fields, ok := exampleOf(part, depth+1).(map[string]any); ok {
			for name, value := range fields {
				object[name] = value
			}
		}
	}
	for name, property := range schema.Properties {
		if value := exampleOf(property, depth+1); value != nil {
			object[name] = value
		}
	}
	return object
}

func exampleString(format string) string {
	switch format {
	case "date-time":
		return "2026-11-21T09:30:00Z"
	case "byte", "binary":
		return "…"
	}
	return "string"
}

func typeText(ref *openapi3.SchemaRef) string {
	if ref == nil || ref.Value == nil || ref.Value.Type == nil {
		return ""
	}
	schema := ref.Value
	text := strings.Join(schema.Type.Slice(), " or ")
	if schema.Type.Is("array") {
		text = "list of " + typeText(schema.Items)
	}
	if len(schema.Enum) > 0 {
		values := make([]string, len(schema.Enum))
		for i, value := range schema.Enum {
			values[i] = fmt.Sprint(value)
		}
		text += ": " + strings.Join(values, ", ")
	}
	if schema.Default != nil {
		text += fmt.Sprintf(", default %v", schema.Default)
	}
	return text
}
