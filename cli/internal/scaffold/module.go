package scaffold

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// moduleFiles make a component of a Terraform module. Its variables without a
// default become inputs.
func moduleFiles(abs, from string) ([]File, error) {
	names, err := filepath.Glob(filepath.Join(from, "*.tf"))
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s is no Terraform module: it has no .tf file", from)
	}
	slices.Sort(names)
	var needed []variable
	version := ""
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		for _, v := range variables(string(data)) {
			if !v.hasDefault && !slices.ContainsFunc(needed, func(o variable) bool { return o.name == v.name }) {
				needed = append(needed, v)
			}
		}
		if version == "" {
			version = versionIn(string(data))
		}
	}
	whole, err := filepath.Abs(from)
	if err != nil {
		return nil, err
	}
	s, err := sourceAt(abs, from, componentName(filepath.Base(whole)), isLeftOut)
	if err != nil {
		return nil, err
	}
	if version == "" {
		version = terraformRange
	}
	lines := []string{
		"# terraform",
		"name              = " + quoted(s.name),
		`type              = "terraform_module"`,
		"terraform_version = " + quoted(version),
		"",
		"[berth]",
		"local_source = " + quoted(s.local),
	}
	files := []File{}
	if len(needed) > 0 {
		files = append(files, inputsFor(needed))
		lines = append(lines, "", "[vars]")
		widest := 0
		for _, v := range needed {
			widest = max(widest, len(v.name))
		}
		for _, v := range needed {
			lines = append(lines, fmt.Sprintf("%-*s = %s", widest, v.name, quoted(v.fromInput())))
		}
	}
	files = append(files, text("components/"+s.name+".toml", lines...))
	return append(files, s.files...), nil
}

// inputsFor asks for the values of variables.
func inputsFor(needed []variable) File {
	lines := []string{
		"# inputs",
		"[[group]]",
		`name         = "general"`,
		`display_name = "General"`,
		`description  = "What can be different in each install."`,
	}
	for _, v := range needed {
		description := v.description
		if description == "" {
			description = "The variable " + v.name + " of the module."
		}
		lines = append(lines, "", "[[input]]",
			"name         = "+quoted(v.name),
			"display_name = "+quoted(title(v.name)),
			"description  = "+quoted(description),
			`group        = "general"`,
			"type         = "+quoted(v.inputType()),
			"required     = true")
		if v.sensitive {
			lines = append(lines, "sensitive    = true")
		}
	}
	return text("inputs.toml", lines...)
}

// inputType is the type of an input for the variable.
func (v variable) inputType() string {
	kind, _, _ := strings.Cut(v.kind, "(")
	switch kind {
	case "", "string", "any":
		return "string"
	case "number", "bool":
		return kind
	case "list", "set", "tuple":
		return "list"
	}
	return "json"
}

// fromInput is the template of the variable's value. A name with a dash cannot
// stand in a path.
func (v variable) fromInput() string {
	if strings.Contains(v.name, "-") {
		return `{{ index .nuon.inputs.inputs "` + v.name + `" }}`
	}
	return "{{ .nuon.inputs.inputs." + v.name + " }}"
}

var requiredVersion = regexp.MustCompile(`(?m)^\s*required_version\s*=\s*"([^"]+)"`)

// versionIn finds what version a module asks for, "" when it asks for none.
func versionIn(source string) string {
	m := requiredVersion.FindStringSubmatch(source)
	if m == nil || !strings.ContainsAny(m[1][:1], "<>=~^") {
		return ""
	}
	if _, err := semver.NewConstraint(m[1]); err != nil {
		return ""
	}
	return m[1]
}
