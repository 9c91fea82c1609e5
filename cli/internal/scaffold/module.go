package scaffold

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/berth-dev/berth/pkg/tfvars"
)

// moduleFiles make a component of a Terraform module. Its variables without a
// default become inputs.
func moduleFiles(abs, from string) ([]File, error) {
	read, err := readModule(from)
	if err != nil {
		return nil, err
	}
	whole, err := filepath.Abs(from)
	if err != nil {
		return nil, err
	}
	s, err := sourceAt(abs, from, componentName(filepath.Base(whole)), isLeftOut)
	if err != nil {
		return nil, err
	}
	needed, version := read.needed, read.version
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
	if read.openTofu {
		lines = append(lines, `tool = "opentofu"`)
	}
	files := []File{}
	if len(needed) > 0 {
		files = append(files, inputsFor(needed))
		lines = append(lines, "", "[vars]")
		widest := 0
		for _, v := range needed {
			widest = max(widest, len(v.Name))
		}
		for _, v := range needed {
			lines = append(lines, fmt.Sprintf("%-*s = %s", widest, v.Name, quoted(fromInput(v))))
		}
	}
	files = append(files, text("components/"+s.name+".toml", lines...))
	return append(files, s.files...), nil
}

// moduleRead is what the files of a module say.
type moduleRead struct {
	needed   []tfvars.Variable // those without a default
	version  string            // that the module asks for, "" for any
	openTofu bool              // it has files for OpenTofu
}

// readModule reads a module. One with files for OpenTofu is read as that does.
func readModule(from string) (read moduleRead, err error) {
	entries, err := os.ReadDir(from)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return read, err
	}
	var m tfvars.Module
	read.openTofu = slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return !e.IsDir() && tfvars.IsOpenTofu(e.Name()) })
	for _, name := range tfvars.Read(entries, read.openTofu) {
		data, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return read, err
		}
		m.Add(name, data)
		if read.version == "" {
			read.version = versionIn(string(data))
		}
	}
	if m.Files == 0 {
		return read, fmt.Errorf("%s is not a Terraform module: it has no .tf file", from)
	}
	for _, v := range m.Variables {
		if !v.Optional {
			read.needed = append(read.needed, v)
		}
	}
	return read, nil
}

// inputsFor asks for the values of variables.
func inputsFor(needed []tfvars.Variable) File {
	lines := []string{
		"# inputs",
		"[[group]]",
		`name         = "general"`,
		`display_name = "General"`,
		`description  = "What can differ between installs."`,
	}
	for _, v := range needed {
		description := v.Description
		if description == "" {
			description = "The variable " + v.Name + " of the module."
		}
		lines = append(lines, "", "[[input]]",
			"name         = "+quoted(v.Name),
			"display_name = "+quoted(title(v.Name)),
			"description  = "+quoted(description),
			`group        = "general"`,
			"type         = "+quoted(inputType(v)),
			"required     = true")
		if v.Sensitive {
			lines = append(lines, "sensitive    = true")
		}
	}
	return text("inputs.toml", lines...)
}

// inputType is the type of an input for the variable.
func inputType(v tfvars.Variable) string {
	switch v.Type {
	case "", "string", "any":
		return "string"
	case "number", "bool":
		return v.Type
	case "list", "set", "tuple":
		return "list"
	}
	return "json"
}

// fromInput is the template of the variable's value. A name with a dash cannot
// stand in a path.
func fromInput(v tfvars.Variable) string {
	if strings.Contains(v.Name, "-") {
		return `{{ index .nuon.inputs.inputs "` + v.Name + `" }}`
	}
	return "{{ .nuon.inputs.inputs." + v.Name + " }}"
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
