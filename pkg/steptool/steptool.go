// Package steptool is what an action says of a program that its steps need: "jq", or
// "jq>=1.6".
package steptool

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Tool is a program that steps need.
type Tool struct {
	// Name is that of the executable, without a directory.
	Name string
	// AtLeast is the lowest version that will do, "" for any.
	AtLeast string
}

// Remedy is what to do about a text that names no tool.
const Remedy = `write the name of a program, with the lowest version if it matters: "kubectl", "jq>=1.6"`

var written = regexp.MustCompile(`^([A-Za-z0-9_][A-Za-z0-9._+-]*)(?:\s*>=\s*v?(\d+(?:\.\d+)*))?$`)

// Parse reads one tool.
func Parse(text string) (Tool, error) {
	m := written.FindStringSubmatch(text)
	if m == nil {
		return Tool{}, fmt.Errorf("%q names no tool", text)
	}
	return Tool{Name: m[1], AtLeast: m[2]}, nil
}

// Enough says whether a version is the lowest one that will do, or a later one. The
// versions are numbers with dots; a missing number counts as 0.
func (t Tool) Enough(version string) bool {
	want, got := strings.Split(t.AtLeast, "."), strings.Split(version, ".")
	for i := range want {
		w, _ := strconv.Atoi(want[i])
		g := 0
		if i < len(got) {
			g, _ = strconv.Atoi(got[i])
		}
		if w != g {
			return g > w
		}
	}
	return true
}

var version = regexp.MustCompile(`(?:^|[^0-9.])v?(\d+(?:\.\d+)+)`)

// VersionIn is the first version in what a program prints about itself, "" when there
// is none.
func VersionIn(output string) string {
	if m := version.FindStringSubmatch(output); m != nil {
		return m[1]
	}
	return ""
}
