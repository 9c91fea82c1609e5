// Package doctor examines this machine and the Berth that commands talk to. It
// changes nothing; each examination is one finding, with what to do about it.
package doctor

import (
	"fmt"
	"slices"

	"github.com/berth-dev/berth/cli/internal/output"
)

// Finding is what one examination found.
type Finding struct {
	What   string `json:"what"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitempty"`
}

// Bad is the finding of an error. It has the error's remedy.
func Bad(what string, err error) Finding {
	f := Finding{What: what, Detail: err.Error()}
	if advised, ok := err.(interface{ Remedy() string }); ok {
		f.Remedy = advised.Remedy()
	}
	return f
}

func good(what, format string, args ...any) Finding {
	return Finding{What: what, OK: true, Detail: fmt.Sprintf(format, args...)}
}

// Healthy tells whether nothing is wrong.
func Healthy(found []Finding) bool {
	return !slices.ContainsFunc(found, func(f Finding) bool { return !f.OK })
}

// View shows findings.
func View() output.View[Finding] {
	return output.View[Finding]{
		Name: func(f Finding) string { return f.What },
		Columns: []output.Column[Finding]{
			{Head: "", Cell: func(f Finding) string {
				if f.OK {
					return "✓"
				}
				return "✗"
			}},
			{Head: "WHAT", Cell: func(f Finding) string { return f.What }},
			{Head: "DETAIL", Cell: func(f Finding) string { return f.Detail }},
		},
	}
}
