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
//	folder ──Bundle──▶ tar.gz ──OpenBundle──▶ fs.FS
//	   └──────────────Load──────────────────────┘
//	                   │
//	                  App ──▶ Validate · NewGraph · Sources · digests
//
// The command line and the control plane run this same code over the same
// bytes. Nothing here renders a template, talks to the network or keeps state;
// values are kept as they were written.
//
// To add a file kind, add a row to the table in kinds.go and a file for its
// block. To add a component type, add a row to componentTypes in component.go.
// Block structs describe themselves by tags:
//
//	toml      the key in the file
//	rule      "required" for keys that must be there
//	template  "true" for values rendered later with an install's state
//	digest    "build", "deploy" or "-" (not part of any digest)
package appconfig
