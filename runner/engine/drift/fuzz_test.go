package drift_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/berth-dev/berth/runner/engine/drift"
)

// FuzzExplain gives hostile objects: any JSON may be what is live, with any
// managedFields, and what a dry run answered.
func FuzzExplain(f *testing.F) {
	for _, s := range scenarios {
		r := s.recorded(f)
		live, err := json.Marshal(r.Live)
		if err != nil {
			f.Fatal(err)
		}
		tried, err := json.Marshal(r.Tried)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(live, tried)
	}
	deep := strings.Repeat(`{"f:a":`, 100) + "{}" + strings.Repeat("}", 100)
	f.Add([]byte(`{"metadata":{"managedFields":[{"manager":"berth","operation":"Apply","fieldsV1":`+deep+`}]},"data":`+deep+`}`), []byte(`{"data":`+deep+`}`))
	f.Add([]byte(`{"metadata":{"managedFields":[{"fieldsV1":{"f:data":{"k:{\"a\":[]}":{},"v:1e999":{},"i:-1":{},".":{}}}}]},"data":[{"a":1},{"a":1}]}`), []byte(`{"data":[1]}`))
	wanted := scenarios[0].recorded(f)
	f.Fuzz(func(t *testing.T, live, tried []byte) {
		o := drift.Object{Ref: wanted.object().Ref, Wanted: wanted.Wanted}
		o.Live = anything(live)
		if o.Live == nil {
			return
		}
		o.Live.SetAPIVersion("apps/v1")
		o.Live.SetKind("Deployment")
		o.UID = string(o.Live.GetUID())
		for _, o.Tried = range []*unstructured.Unstructured{nil, anything(tried)} {
			found := drift.Explain(o, drift.Secrets{Key: []byte("key")})
			again := drift.Explain(o, drift.Secrets{Key: []byte("key")})
			one, two := drift.Report{Findings: []drift.Finding{found}}, drift.Report{Findings: []drift.Finding{again}}
			if one.Digest() != two.Digest() {
				t.Error("the same object has two digests")
			}
			for _, d := range found.Differences {
				if len(d.Path) > 20_000 || len(d.Want)+len(d.Have) > 10_000 || !utf8.ValidString(d.Path+d.Want+d.Have+d.Manager) || strings.ContainsAny(d.Path+d.Manager, "\n\x1b") {
					t.Errorf("difference %+v", d)
				}
			}
			_ = one.Lines(10)
		}
	})
}

func anything(data []byte) *unstructured.Unstructured {
	var object map[string]any
	if json.Unmarshal(data, &object) != nil || object == nil {
		return nil
	}
	if _, ok := object["metadata"].(map[string]any); !ok {
		object["metadata"] = map[string]any{}
	}
	return &unstructured.Unstructured{Object: object}
}
