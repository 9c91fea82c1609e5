// Package offline renders components without a cluster, for who wants to know
// what they would apply. It reads the app folder and changes nothing.
package offline

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/berth-dev/berth/pkg/permissions"
	"github.com/berth-dev/berth/runner/engine/helm"
	"github.com/berth-dev/berth/runner/engine/kube"
)

// maxRequest is the largest request that is read, in bytes.
const maxRequest = 64 << 20

// Run reads a JSON list of [permissions.Source] and writes one of
// [permissions.Rendered]. What cannot be rendered is a note, not an error.
func Run(in io.Reader, out io.Writer) error {
	var sources []permissions.Source
	if err := json.NewDecoder(io.LimitReader(in, maxRequest)).Decode(&sources); err != nil {
		return fmt.Errorf("read what to render: %w", err)
	}
	all := make([]permissions.Rendered, len(sources))
	for i, src := range sources {
		all[i] = Render(src)
	}
	return json.NewEncoder(out).Encode(all)
}

// Render renders one component.
func Render(src permissions.Source) permissions.Rendered {
	r := permissions.Rendered{Component: src.Component, Objects: []permissions.RenderedObject{}, Unknown: []permissions.Note{}}
	texts, prefix := helm.Texts{src.File: src.Manifest}, ""
	if src.Chart != "" {
		var notes []permissions.Note
		var err error
		if texts, notes, err = helm.Offline(src); err != nil {
			notes = append(notes, permissions.Note{Text: "the chart cannot be rendered: " + err.Error()})
		}
		prefix = src.File
		for _, n := range notes {
			r.Unknown = append(r.Unknown, permissions.Note{From: where(src.Component, path.Join(prefix, n.From)), Text: n.Text})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		for _, doc := range documents(texts[name]) {
			from := path.Join(prefix, name)
			if src.Chart == "" { // lines of a chart's template are not those of its source
				from = fmt.Sprintf("%s:%d", from, doc.line)
			}
			objects, err := kube.ParseObjects(doc.text)
			if err != nil {
				r.Unknown = append(r.Unknown, permissions.Note{From: where(src.Component, from), Text: "it cannot be read: " + err.Error()})
			}
			for _, obj := range objects {
				if !onlyTests(obj) {
					r.Objects = append(r.Objects, permissions.RenderedObject{From: from, Body: obj.Object})
				}
			}
		}
	}
	return r
}

func where(component, file string) string {
	return fmt.Sprintf("%s (%s)", component, cmp.Or(file, "?"))
}

// onlyTests says that an object is a test of a chart, which engines never run.
func onlyTests(obj *unstructured.Unstructured) bool {
	events := obj.GetAnnotations()["helm.sh/hook"]
	if events == "" {
		return false
	}
	for event := range strings.SplitSeq(events, ",") {
		if e := strings.TrimSpace(event); e != "test" && e != "test-success" {
			return false
		}
	}
	return true
}

// document is one of a stream of YAML, and the line of its first word.
type document struct {
	text string
	line int
}

func documents(stream string) []document {
	var all []document
	var now strings.Builder
	line, first := 0, 0
	end := func() {
		if first > 0 {
			all = append(all, document{text: now.String(), line: first})
		}
		now.Reset()
		first = 0
	}
	for text := range strings.Lines(stream) {
		line++
		if strings.HasPrefix(text, "---") {
			end()
			continue
		}
		if trimmed := strings.TrimSpace(text); first == 0 && trimmed != "" && !strings.HasPrefix(trimmed, "#") {
			first = line
		}
		now.WriteString(text)
	}
	end()
	return all
}
