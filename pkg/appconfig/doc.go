// Package appconfig owns the app folder language: the blocks of an app, how a
// folder becomes one ([Load]), and what identifies its parts.
//
// It reads a folder (or the bundle made from one) into an [App], and reports
// every problem of single files and blocks at once as [place.Diagnostic] values
// with file, line and column. It says what must be built again
// ([Component.BuildDigest]), what only must be deployed again
// ([Component.DeployDigest]), and where the sources are ([Sources]).
//
//	folder ──bundle.Make──▶ packs ──bundle.Open──▶ fs.FS
//	   └────────────────────Load─────────────────────┘
//	                        ▲ │ Fetches: what stands elsewhere
//	             fetched ───┘ │
//	                         App ──▶ check · graph · Sources · digests
//
// The command line and the control plane run this same code over the same
// bytes. Nothing here renders a template, talks to the network or keeps state;
// values are kept as they were written. What stands elsewhere is noted
// ([Fetches]); the command line fetches it and loads again with the results
// ([LoadOptions]), and the bundle carries them with their digests.
//
// Two questions are kept apart: whether a folder is right by the rules of the
// language (check.Format), and whether this version can deploy it
// (check.Unsupported). check.Folder asks both, as a sync does.
//
// # Rooms
//
// The language is divided into packages, and each imports only those further
// down; pkg/deps_test.go says so.
//
//	check      bundle     schema          what is asked of an app: see each
//	  │          │          │ └─▶ schema/fielddoc (generated, alone)
//	graph        │          │             what needs what, and in which order
//	  └──────────┴──────────┴──▶ appconfig    the blocks, and how they are read
//	bind                                  TOML tables into structs, by their tags
//	syntax     template    fetch          one file · what is rendered later · what stands elsewhere
//	folder     digest                     files within limits · what identifies them
//	place                                 where something stands, and what is wrong there
//
// To add a file kind, add a row to the table in kinds.go, a row to fileKinds in
// schema/keys.go and a file for its block. To add a component type, add a row to
// componentTypes in component.go and a file for its block; the rest of it is in
// docs/contributing/component-type.md. Block structs describe themselves by tags:
//
//	toml      the key in the file
//	alias     its other names, with commas between them
//	rule      "required" for keys that must be there
//	enum      the values that are allowed, with commas between them
//	default   what a key that is left out means, for people and schemas
//	template  "true" for values rendered later with an install's state
//	base      "." when "./x" is relative to the app folder whatever the kind says
//	digest    "build", "deploy" or "-" (not part of any digest)
//
// The comment of a field says what its key means. Comments and tags together
// make the JSON Schemas (schema.Of), the list of keys for editors
// (schema.Kind.Keys) and docs/reference/app-config.md; after a change run
//
//	go test ./appconfig/schema -run TestFieldDocs -update
//	go test ./appconfig/schema -run TestReferencePage -update
package appconfig
