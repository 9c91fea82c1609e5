// Package appconfig owns the app folder language: which files and keys there
// are, what they mean, and what is wrong with a folder.
//
// It reads a folder (or the bundle made from one) into an [App], reports every
// problem at once as [Diagnostic] values with file, line and column, and
// answers the questions that the rest of the system asks about a config: what
// depends on what ([NewGraph]), what must be built again ([Component.BuildDigest]),
// what only must be deployed again ([Component.DeployDigest]), and where the
// sources are ([Sources]).
//
//	folder ──Bundle──▶ packs ──OpenBundle──▶ fs.FS
//	   └──────────────Load─────────────────────┘
//	                 ▲ │ Fetches: what stands elsewhere
//	      fetched ───┘ │
//	                  App ──▶ Validate · NewGraph · Sources · digests
//
// The command line and the control plane run this same code over the same
// bytes. Nothing here renders a template, talks to the network or keeps state;
// values are kept as they were written. What stands elsewhere is noted
// ([Fetches]); the command line fetches it and loads again with the results
// ([LoadOptions]), and the bundle carries them with their digests.
//
// Two questions are kept apart: whether a folder is right by the rules of the
// language ([Load], [Validate]; together [CheckFormat]), and whether this
// version can deploy it ([Unsupported]). [Check] asks both, as a sync does.
//
// To add a file kind, add a row to the table in kinds.go, a row to fileKinds in
// keys.go and a file for its block. To add a component type, add a row to
// componentTypes in component.go and one to fileKinds. Block structs describe
// themselves by tags:
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
// make the JSON Schemas ([Schema]), the list of keys for editors
// ([FileKind.Keys]) and docs/reference/app-config.md; after a change run
//
//	go test ./appconfig -run TestFieldDocs -update
//	go test ./appconfig -run TestReferencePage -update
package appconfig
