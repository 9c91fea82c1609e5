// Package module reads the source of a Terraform module: its variables, where
// it keeps its state, and the modules that it calls. It needs neither Terraform
// nor providers, and evaluates nothing.
package module

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"

	"github.com/berth-dev/berth/pkg/tfvars"
)

// Module is the source of one module directory.
type Module struct {
	Variables map[string]Variable
	// Backend is where the module wants to keep its state: the type of its
	// backend block, "cloud", or "".
	Backend   string
	BackendAt string // "main.tf:3"
	// EncryptionAt is where a module has OpenTofu encrypt states and plans, "" for nowhere.
	EncryptionAt string
	// Versions are the required_version of the module, one for each time that it says one.
	Versions  []string
	Calls     []Call
	Providers map[string]Provider // by the name that the module gives them; nil for none
	Files     []string            // names, sorted; override files last
}

// Variable is an input variable.
type Variable struct {
	Name      string
	Kind      Kind
	Type      string // as written, for errors; "" when there is none
	Required  bool
	Sensitive bool
	Ephemeral bool
	At        string
}

// Kind is what a text must be read as to be a value of a variable.
type Kind string

// The kinds. Terraform treats a variable without a type like one of type
// string when its value comes as text.
const (
	Untyped    Kind = ""
	String     Kind = "string"
	Number     Kind = "number"
	Bool       Kind = "bool"
	Any        Kind = "any"
	Collection Kind = "collection" // lists, sets, maps, objects, tuples
)

// Call is a module block.
type Call struct {
	Name, Source, At string
	Version          string // of a registry, as written; "" for any
}

// Local tells whether the called module is part of the same source tree.
func (c Call) Local() bool {
	return strings.HasPrefix(c.Source, "./") || strings.HasPrefix(c.Source, "../")
}

// Is tells whether a file is configuration of Terraform or of OpenTofu.
func Is(name string) bool {
	if strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~") || strings.HasPrefix(name, "#") {
		return false
	}
	return strings.HasSuffix(name, ".tf") || strings.HasSuffix(name, ".tf.json") || tfvars.IsOpenTofu(name)
}

// Read reads the module in a directory as Terraform does, or as OpenTofu, which reads
// its own files in the place of others. An error tells every problem of the syntax, with
// file and line. A directory without configuration is no module.
func Read(dir string, openTofu bool) (*Module, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	m := &Module{Variables: map[string]Variable{}}
	var overrides []string
	for _, name := range tfvars.Read(entries, openTofu) {
		switch {
		case !Is(name): // a file of values
		case IsOverride(name):
			overrides = append(overrides, name)
		default:
			m.Files = append(m.Files, name)
		}
	}
	if len(m.Files) == 0 {
		return nil, ErrNoModule
	}
	m.Files = append(m.Files, overrides...)

	parser := hclparse.NewParser()
	var problems hcl.Diagnostics
	for _, name := range m.Files {
		src, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		parse := parser.ParseHCL
		if strings.HasSuffix(name, ".json") {
			parse = parser.ParseJSON
		}
		file, diags := parse(src, name)
		problems = append(problems, diags...)
		if file != nil {
			problems = append(problems, m.add(file, src)...)
		}
	}
	if err := syntaxError(problems); err != nil {
		return nil, err
	}
	return m, nil
}

// ErrNoModule is returned for a directory without *.tf and *.tf.json files, for OpenTofu
// also without *.tofu and *.tofu.json.
var ErrNoModule = fmt.Errorf("there are no .tf files")

// IsOverride tells whether a file of configuration is read after all others, and replaces
// what they say.
func IsOverride(name string) bool {
	base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, ".json"), ".tf"), ".tofu")
	return base == "override" || strings.HasSuffix(base, "_override")
}

// maxProblems keeps the error of a file that is no HCL at all readable.
const maxProblems = 5

func syntaxError(diags hcl.Diagnostics) error {
	var lines []string
	for _, d := range diags {
		if d.Severity != hcl.DiagError {
			continue
		}
		line := d.Summary
		if d.Subject != nil {
			line = place(*d.Subject) + ": " + line
		}
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	if len(lines) > maxProblems {
		lines = append(lines[:maxProblems], fmt.Sprintf("and %d more", len(lines)-maxProblems))
	}
	if len(lines) == 0 {
		return nil
	}
	return fmt.Errorf("%s", strings.Join(lines, "; "))
}

func place(r hcl.Range) string { return fmt.Sprintf("%s:%d", r.Filename, r.Start.Line) }
