package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

const common = `
openapi: 3.0.3
info: {title: common, version: "1"}
paths: {}
components:
  schemas:
    Problem: {type: object, properties: {item: {$ref: "#/components/schemas/Item"}}}
    Item: {type: string}
  responses:
    Problem:
      description: An error.
      content: {application/problem+json: {schema: {$ref: "#/components/schemas/Problem"}}}
`

const head = `
openapi: 3.0.3
info: {title: api, version: "1"}
paths:
  /things:
    get:
`

func TestBundle(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		doc     string
		wantErr string // empty: it is bundled
	}{
		{
			name: "a shared response brings its schemas along",
			doc: head + `
      operationId: listThings
      summary: All things.
      responses: {default: {$ref: "common.yaml#/components/responses/Problem"}}
`,
		},
		{
			name: "two components of one name",
			doc: head + `
      operationId: listThings
      summary: All things.
      responses: {default: {$ref: "common.yaml#/components/responses/Problem"}}
components:
  schemas:
    Item: {type: integer}
`,
			wantErr: "schemas/Item is defined here and in common.yaml#/components/schemas/Item",
		},
		{
			name: "an operation without id and summary",
			doc: head + `
      responses: {"204": {description: none}}
`,
			wantErr: "GET /things: operationId is missing\nGET /things: summary is missing",
		},
		{
			name: "an example that breaks its schema",
			doc: head + `
      operationId: listThings
      summary: All things.
      responses:
        "200":
          description: ok
          content: {application/json: {schema: {type: integer}, example: many}}
`,
			wantErr: "example",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for name, text := range map[string]string{"common.yaml": common, "api.yaml": tc.doc} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			raw, err := Bundle(t.Context(), filepath.Join(dir, "api.yaml"))
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Fatalf("error is %v, want %q", err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			// A loader that may not follow references to files reads it.
			doc, err := openapi3.NewLoader().LoadFromData(raw)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"Problem", "Item"} {
				if doc.Components.Schemas[name] == nil {
					t.Errorf("schema %s is missing in\n%s", name, raw)
				}
			}
		})
	}
}
