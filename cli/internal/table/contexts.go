package table

import (
	"github.com/berth-dev/berth/cli/internal/contexts"
	"github.com/berth-dev/berth/cli/internal/output"
)

// NamedContext is a context with its name, as programs get it.
type NamedContext struct {
	Name string `json:"name"`
	contexts.Context
	Current bool `json:"current"`
}

// Context shows contexts.
func Context() output.View[NamedContext] {
	return output.View[NamedContext]{
		Name: func(x NamedContext) string { return x.Name },
		None: "no contexts yet: berth up creates one, berth context add creates others",
		Columns: []output.Column[NamedContext]{
			{Head: "NAME", Shrinks: true, Cell: func(x NamedContext) string { return x.Name }},
			{Head: "URL", Shrinks: true, Cell: func(x NamedContext) string { return x.URL }},
			{Head: "ORG", Shrinks: true, Cell: func(x NamedContext) string { return x.Org }},
			{Head: "CURRENT", Cell: func(x NamedContext) string {
				if x.Current {
					return "✓"
				}
				return ""
			}},
			{Head: "TOKEN FILE", Wide: true, Cell: func(x NamedContext) string { return x.TokenFile }},
		},
	}
}
