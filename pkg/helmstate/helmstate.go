// Package helmstate is the state of a chart whose release records the control plane
// keeps (storage_driver = "nuon"): the document that the engine hands to its state
// backend, and that the agent seals before it leaves the customer's side.
//
// Records hold values and rendered manifests, so secrets. What stands outside of them,
// in Resources, is what the vendor may learn, as of any other state.
package helmstate

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

const (
	outerVersion = 4 // that of Terraform states, which the agent counts and shows
	innerFormat  = 1

	// MaxBytes bounds a document in clear. runner-api takes 32 MiB of a state, sealed.
	MaxBytes = 28 << 20
	// maxRecord bounds one record unpacked: it comes out of a document that is small.
	maxRecord = 256 << 20

	// Type is how the vendor sees one revision of a release.
	Type = "helm_revision"
)

// Document is the state of one component.
type Document struct {
	Version   int        `json:"version"`
	Serial    int64      `json:"serial"`
	Lineage   string     `json:"lineage"`
	Outputs   struct{}   `json:"outputs"`
	Resources []resource `json:"resources"`
	Helm      inner      `json:"helm"`
}

type inner struct {
	Format  int      `json:"format"`
	Records []Record `json:"records"`
}

// resource is a release without what is in it.
type resource struct {
	Mode      string     `json:"mode"`
	Type      string     `json:"type"`
	Name      string     `json:"name"`
	Instances []instance `json:"instances"`
}

type instance struct {
	IndexKey   any            `json:"index_key"` // another tool's may be a number
	Attributes map[string]any `json:"attributes"`
}

// Record is one revision of a release.
type Record struct {
	// Key is what Helm calls the record, such as sh.helm.release.v1.web.v3. It is
	// unique in its namespace.
	Key       string `json:"key"`
	Namespace string `json:"namespace"`
	Release   string `json:"release"`
	Revision  int    `json:"revision"`
	// Status is one of Helm's, such as deployed or pending-upgrade.
	Status       string    `json:"status"`
	Chart        string    `json:"chart,omitempty"`
	ChartVersion string    `json:"chart_version,omitempty"`
	AppVersion   string    `json:"app_version,omitempty"`
	DeployedAt   time.Time `json:"deployed_at,omitzero"`
	// Labels are those of the release that Helm does not write itself.
	Labels map[string]string `json:"labels,omitempty"`
	// Packed is the release as JSON, packed by gzip: made by Pack.
	Packed []byte `json:"packed"`
}

// ErrOther says that a state is another tool's: of a component that had this name before,
// and still has something in it.
var ErrOther = errors.New("the state is not one of Helm releases, or of a newer runner")

// Parse reads a document; an empty body is one without records, of no lineage yet. The
// state of another tool that has nothing in it any more is one without records too, so
// that its serial keeps rising. Errors quote nothing of it.
func Parse(body []byte) (Document, error) {
	var d Document
	if len(body) == 0 {
		return d, nil
	}
	if err := json.Unmarshal(body, &d); err != nil {
		return Document{}, errors.New("the state is not JSON of a known form")
	}
	switch {
	case d.Version == outerVersion && d.Helm.Format == innerFormat:
		return d, nil
	case d.Version == outerVersion && d.Helm.Format == 0 && len(d.Resources) == 0:
		return Document{Serial: d.Serial, Lineage: d.Lineage}, nil
	}
	return Document{}, ErrOther
}

// Next is the document after d, with these records. lineage is used when d has none.
func (d Document) Next(lineage string, records []Record) Document {
	records = slices.Clone(records)
	slices.SortFunc(records, func(a, b Record) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Release, b.Release), cmp.Compare(a.Revision, b.Revision), cmp.Compare(a.Key, b.Key))
	})
	next := Document{
		Version: outerVersion, Serial: d.Serial + 1, Lineage: cmp.Or(d.Lineage, lineage), Resources: []resource{},
		Helm: inner{Format: innerFormat, Records: records},
	}
	for _, r := range records {
		last := len(next.Resources) - 1
		if last < 0 || next.Resources[last].Name != r.Release {
			next.Resources = append(next.Resources, resource{Mode: "managed", Type: Type, Name: r.Release})
			last++
		}
		next.Resources[last].Instances = append(next.Resources[last].Instances, r.shown())
	}
	return next
}

// shown is what a record shows without being opened.
func (r Record) shown() instance {
	attributes := map[string]any{
		"namespace": r.Namespace, "revision": r.Revision, "status": r.Status, "chart": r.Chart, "chart_version": r.ChartVersion,
		"app_version": r.AppVersion, "size_bytes": len(r.Packed),
	}
	if !r.DeployedAt.IsZero() {
		attributes["deployed_at"] = r.DeployedAt.UTC().Format(time.RFC3339)
	}
	return instance{IndexKey: Index(r.Namespace, r.Revision), Attributes: attributes}
}

// Index tells the revisions of a release apart in the list of a state.
func Index(namespace string, revision int) string { return fmt.Sprintf("%s/%d", namespace, revision) }

// Pack packs a release, given as JSON.
func Pack(raw []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(raw); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// Unpack returns the release of a record as JSON.
func (r Record) Unpack() ([]byte, error) {
	in, err := gzip.NewReader(bytes.NewReader(r.Packed))
	if err != nil {
		return nil, fmt.Errorf("record %s is damaged", r.Key)
	}
	raw, err := io.ReadAll(io.LimitReader(in, maxRecord+1))
	if err != nil || len(raw) > maxRecord {
		return nil, fmt.Errorf("record %s is damaged or too large", r.Key)
	}
	return raw, nil
}
