// Package pluginstate keeps the states of plugins: it brings the files that a plugin
// left to the engine of its next job, and hands in what they became. The agent does
// so by itself, before an engine starts and after it is over, so that a plugin needs
// no network for it and an engine that is killed loses nothing.
//
//	control plane, sealed ─▶ Bring ─▶ in/state ─▶ engine ─▶ work/plugin/work/state
//	          ▲                                                       │ whatever ended it
//	          └────────────────────────── Take ◀─────────────────────┘
//
// Sealing, serial, fence, lock, and what waits on disk while the control plane is
// away are those of package stateproxy.
package pluginstate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/berth-dev/berth/pkg/plugin"
)

// Document is the state of a plugin as it is sealed. Its outer form is that of a
// Terraform state, version 4, which is what the agent counts and shows.
type Document struct {
	Version   int      `json:"version"`
	Serial    int64    `json:"serial"`
	Lineage   string   `json:"lineage"`
	Outputs   struct{} `json:"outputs"`
	Resources []file   `json:"resources"`
	Plugin    inner    `json:"plugin"`
}

// file is a file of the state without what is in it.
type file struct {
	Mode      string     `json:"mode"`
	Type      string     `json:"type"`
	Name      string     `json:"name"`
	Instances []instance `json:"instances"`
}

type instance struct {
	Attributes map[string]any `json:"attributes"`
}

type inner struct {
	Format int          `json:"format"`
	Files  plugin.State `json:"files"`
}

const (
	outerVersion = 4
	innerFormat  = 1
)

// Parse reads a document; an empty body is one without files, of no lineage yet. Its
// errors quote nothing of it.
func Parse(body []byte) (Document, error) {
	var d Document
	if len(body) == 0 {
		return d, nil
	}
	if err := json.Unmarshal(body, &d); err != nil {
		return d, errors.New("the state is not JSON of a known form")
	}
	if d.Version != outerVersion || d.Plugin.Format != innerFormat {
		return d, errors.New("the state is not a plugin's, or of a newer runner")
	}
	return d, nil
}

// Next is the document after d with these files.
func (d Document) Next(files plugin.State) Document {
	next := Document{Version: outerVersion, Serial: d.Serial + 1, Lineage: d.Lineage, Resources: []file{}, Plugin: inner{Format: innerFormat, Files: files}}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		sum := sha256.Sum256(files[name])
		next.Resources = append(next.Resources, file{Mode: "managed", Type: "file", Name: name, Instances: []instance{{
			Attributes: map[string]any{"size_bytes": len(files[name]), "sha256": hex.EncodeToString(sum[:])},
		}}})
	}
	return next
}
