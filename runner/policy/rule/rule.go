// Package rule is what the rule languages have in common: a document as rules see it, rules
// that can be asked about it, and what is wrong with a file.
package rule

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/berth-dev/berth/pkg/policy"
)

// Set is the rules of one file, ready to be asked.
type Set interface {
	// Judge gives at least one verdict, without the names of policy, document and component.
	Judge(ctx context.Context, d *Document) []policy.Verdict
}

// Problem is something wrong with a file of rules.
type Problem struct {
	Line int    `json:"line"` // from 1 on
	Text string `json:"message"`
}

// Problems are all of a file, as an error.
type Problems []Problem

func (p Problems) Error() string {
	if len(p) == 0 {
		return "no problem"
	}
	text := fmt.Sprintf("line %d: %s", p[0].Line, p[0].Text)
	if more := len(p) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text
}

// MaxText is how long a file of rules may be, in bytes.
const MaxText = 4 << 20

// Document is one thing that rules are held against, decoded. Nobody may change it: all
// rules see the same one.
type Document struct {
	policy.Document
	Body, Old map[string]any
	// Namespaces are the labels of those that are known.
	Namespaces map[string]map[string]string
	// Now is the one time that rules of a request see.
	Now time.Time

	input func() (ast.Value, error)
}

// Decode reads the bodies of a document. Numbers become int64 or float64.
func Decode(d policy.Document, r policy.Request, now time.Time) (*Document, error) {
	out := &Document{Document: d, Namespaces: r.Namespaces, Now: now}
	var err error
	if out.Body, err = object(d.Body); err != nil {
		return nil, fmt.Errorf("the document cannot be read: %w", err)
	}
	if out.Old, err = object(d.Old); err != nil {
		return nil, fmt.Errorf("the document's earlier form cannot be read: %w", err)
	}
	if out.Body == nil && out.Old == nil {
		return nil, errors.New("the document is empty")
	}
	out.Document.Body, out.Document.Old = nil, nil // they are as large again
	out.input = sync.OnceValues(func() (ast.Value, error) {
		in, err := out.Input()
		if err != nil {
			return nil, err
		}
		return ast.InterfaceToValue(in)
	})
	return out, nil
}

func object(raw []byte) (map[string]any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var decoded map[string]any
	err := json.Unmarshal(raw, &decoded)
	return decoded, err
}

// Object is the Kubernetes object: as it will be, or was where it is deleted.
func (d *Document) Object() map[string]any {
	if d.Body == nil || d.Operation == policy.Delete {
		return d.Old
	}
	return d.Body
}

// Input is what Rego sees as input.
func (d *Document) Input() (map[string]any, error) {
	switch d.Form {
	case policy.FormObject:
		o := d.Object()
		kind, _ := o["kind"].(string)
		group, version := "", ""
		if text, ok := o["apiVersion"].(string); ok {
			if group, version = split(text); version == "" {
				group, version = "", group
			}
		}
		return map[string]any{"review": map[string]any{
			"kind":      map[string]any{"group": group, "version": version, "kind": kind},
			"object":    value(d.Body),
			"oldObject": value(d.Old),
			"operation": string(d.Operation),
		}}, nil
	case policy.FormPlan:
		return map[string]any{"plan": value(d.Body)}, nil
	case policy.FormImage:
		return d.Body, nil
	case policy.FormScript:
		return map[string]any{"script": value(d.Body)}, nil
	case policy.FormRelease:
		return map[string]any{"release": value(d.Body)}, nil
	case policy.FormPulumi:
		return map[string]any{"preview": value(d.Body)}, nil
	case policy.FormChanges:
		return map[string]any{"changes": value(d.Body)}, nil
	case policy.FormFootprint:
		return map[string]any{"footprint": value(d.Body)}, nil
	}
	return nil, fmt.Errorf("documents of form %q are not known", d.Form)
}

// Value is Input as Rego holds it, made once.
func (d *Document) Value() (ast.Value, error) { return d.input() }

// value keeps a missing body null.
func value(m map[string]any) any {
	if m == nil {
		return nil
	}
	return m
}

// split cuts an apiVersion in two.
func split(apiVersion string) (group, version string) {
	for i := range len(apiVersion) {
		if apiVersion[i] == '/' {
			return apiVersion[:i], apiVersion[i+1:]
		}
	}
	return apiVersion, ""
}
