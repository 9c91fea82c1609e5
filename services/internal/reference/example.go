package reference

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// maxExampleDepth ends schemas that contain themselves.
const maxExampleDepth = 8

// exampleOf is the contract's own example of a body, or one made from its
// schema.
func exampleOf(media *openapi3.MediaType) any {
	switch {
	case media == nil:
		return nil
	case media.Example != nil:
		return media.Example
	case len(media.Examples) > 0:
		return media.Examples[slices.Sorted(maps.Keys(media.Examples))[0]].Value.Value
	}
	return exampleOfSchema(media.Schema, "", 0)
}

// exampleOfSchema makes a value of a schema: of its own examples where it has
// some, with the required fields only where it contains itself. name is that of
// the field.
func exampleOfSchema(ref *openapi3.SchemaRef, name string, depth int) any {
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
		return exampleOfSchema(schema.OneOf[0], name, depth+1)
	case len(schema.AnyOf) > 0:
		return exampleOfSchema(schema.AnyOf[0], name, depth+1)
	case schema.Type.Is("array"):
		if item := exampleOfSchema(schema.Items, strings.TrimSuffix(name, "s"), depth+1); item != nil {
			return []any{item}
		}
		return []any{}
	case schema.Type.Is("string"):
		return exampleOfString(schema, name)
	case schema.Type.Is("integer"), schema.Type.Is("number"):
		if schema.Min != nil && *schema.Min > 1 {
			return *schema.Min
		}
		return 1
	case schema.Type.Is("boolean"):
		return true
	}
	return exampleOfObject(schema, name, depth)
}

func exampleOfObject(schema *openapi3.Schema, name string, depth int) any {
	object := map[string]any{}
	for _, part := range schema.AllOf {
		example := exampleOfSchema(part, name, depth+1)
		fields, ok := example.(map[string]any)
		if !ok && example != nil {
			return example // a reference to something else, with a description of its own
		}
		maps.Copy(object, fields)
	}
	for field, property := range schema.Properties {
		required := slices.Contains(schema.Required, field)
		if depth > maxExampleDepth/2 && !required {
			continue
		}
		if value := exampleOfSchema(property, field, depth+1); value != nil {
			object[field] = value
		} else if required {
			return nil // it contains itself: what holds it does without
		}
	}
	return object
}

// digest is one that a pattern asks for.
const digest = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

var idField = regexp.MustCompile(`^(id|.*_id)$`)

func exampleOfString(schema *openapi3.Schema, name string) string {
	switch {
	case schema.Format == "date-time":
		return "2026-11-21T09:30:00Z"
	case schema.Format == "byte", schema.Format == "binary":
		return "aGVsbG8="
	case schema.Format == "uri":
		return "https://berth.example.com"
	case strings.Contains(schema.Pattern, "sha256:"):
		return digest
	case strings.Contains(schema.Pattern, "[0-9a-f]{64}"):
		return strings.TrimPrefix(digest, "sha256:")
	case schema.Pattern != "":
		return exampleOfPattern(schema.Pattern)
	case idField.MatchString(name):
		return "01jd0c3k7m"
	case name == "":
		return "acme"
	}
	return strings.ReplaceAll(name, "_", " ")
}

// exampleOfPattern fits the patterns of names and the like; a field with
// another one needs an example of its own, which a test asks for.
func exampleOfPattern(pattern string) string {
	for _, value := range []string{"acme", "1", "ring=canary", "30s", "1.2.3"} {
		if fits, err := regexp.MatchString(pattern, value); err == nil && fits {
			return value
		}
	}
	if part := prefixed.FindStringSubmatch(pattern); part != nil {
		length, _ := strconv.Atoi(part[2])
		return part[1] + strings.Repeat("0123456789", length/10+1)[:length]
	}
	return "(" + pattern + ")"
}

// prefixed is the pattern of an id or secret: a prefix, and so many characters.
var prefixed = regexp.MustCompile(`^\^([a-z]+_)\[[^]]+\]\{(\d+)\}\$$`)
