// Command bundle turns one of our OpenAPI documents, which refer to
// openapi/common.yaml, into one self-contained JSON document.
//
//	bundle openapi/ctl-api.yaml services/ctl-api/internal/apigen/openapi.json
//
// Code is generated from the bundle only: a generator that sees two files
// either imports the server's framework into the clients or fails on shared
// responses. The bundle is validated, examples included, so that a document
// that lies about itself never reaches the generators.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/getkin/kin-openapi/openapi3"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: bundle IN.yaml OUT.json")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "bundle:", err)
		os.Exit(1)
	}
}

func run(in, out string) error {
	doc, err := Bundle(context.Background(), in)
	if err != nil {
		return fmt.Errorf("%s: %w", in, err)
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return err
	}
	if old, err := os.ReadFile(out); err == nil && bytes.Equal(old, doc) {
		return nil // keep the time stamp: nothing downstream changed
	}
	return os.WriteFile(out, doc, 0o644)
}

// Bundle reads the document at file and everything it refers to, and returns
// one indented JSON document with local references only. It returns all
// faults at once.
func Bundle(ctx context.Context, file string) ([]byte, error) {
	loader := openapi3.NewLoader()
	loader.IsExternalRefsAllowed = true
	doc, err := loader.LoadFromFile(file)
	if err != nil {
		return nil, err
	}

	names := newNamer(doc)
	doc.InternalizeRefs(ctx, names.resolve)
	if err := errors.Join(names.errs...); err != nil {
		return nil, err
	}
	raw, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return nil, err
	}

	// Load what we are about to write, not what we hold: a reference that
	// bundling left dangling shows only here.
	bundled, err := openapi3.NewLoader().LoadFromData(raw)
	if err != nil {
		return nil, fmt.Errorf("bundled document: %w", err)
	}
	if err := bundled.Validate(ctx, openapi3.EnableExamplesValidation()); err != nil {
		return nil, err
	}
	if err := checkOperations(bundled); err != nil {
		return nil, err
	}
	return append(raw, '\n'), nil
}

// checkOperations holds what the generators and the readers rely on: each
// operation has an id (it becomes the name of a method) and a summary.
func checkOperations(doc *openapi3.T) error {
	var errs []error
	for _, p := range doc.Paths.InMatchingOrder() {
		for method, op := range doc.Paths.Value(p).Operations() {
			if op.OperationID == "" {
				errs = append(errs, fmt.Errorf("%s %s: operationId is missing", method, p))
			}
			if op.Summary == "" {
				errs = append(errs, fmt.Errorf("%s %s: summary is missing", method, p))
			}
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return bytes.Compare([]byte(a.Error()), []byte(b.Error())) })
	return errors.Join(errs...)
}

// A namer gives each component from another file the name that it has there,
// and refuses two different components with one name.
type namer struct {
	own   map[string]bool   // "schemas/Install": defined by the document itself
	taken map[string]string // "schemas/Problem": where it came from
	errs  []error
}

func newNamer(doc *openapi3.T) *namer {
	n := &namer{own: map[string]bool{}, taken: map[string]string{}}
	c := doc.Components
	if c == nil {
		return n
	}
	addKeys(n.own, "schemas", c.Schemas)
	addKeys(n.own, "parameters", c.Parameters)
	addKeys(n.own, "headers", c.Headers)
	addKeys(n.own, "requestBodies", c.RequestBodies)
	addKeys(n.own, "responses", c.Responses)
	addKeys(n.own, "securitySchemes", c.SecuritySchemes)
	addKeys(n.own, "examples", c.Examples)
	addKeys(n.own, "links", c.Links)
	addKeys(n.own, "callbacks", c.Callbacks)
	return n
}

func addKeys[V any](own map[string]bool, collection string, m map[string]V) {
	for name := range m {
		own[collection+"/"+name] = true
	}
}

func (n *namer) resolve(_ *openapi3.T, ref openapi3.ComponentRef) string {
	from := ref.RefPath()
	name := path.Base(from.Fragment)
	key, origin := ref.CollectionName()+"/"+name, shortRef(from)
	switch earlier, seen := n.taken[key]; {
	case n.own[key]:
		n.errs = append(n.errs, fmt.Errorf("%s is defined here and in %s: rename one, or refer to the other file directly", key, origin))
		delete(n.own, key) // say it once
	case seen && earlier != origin:
		n.errs = append(n.errs, fmt.Errorf("%s comes from %s and from %s: rename one", key, earlier, origin))
	}
	n.taken[key] = origin
	return name
}

func shortRef(u *url.URL) string { return path.Base(u.Path) + "#" + u.Fragment }
