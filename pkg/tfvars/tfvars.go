// Package tfvars reads which variables and outputs a Terraform module declares,
// which variables a file of values gives, and where either has no end. It reads only as much of the language as that
// needs, with neither Terraform nor a parser of it, in time and memory that
// grow with the size of what it reads, even when the input is hostile.
// Terraform itself says what is wrong with a module.
//
// hashicorp/hcl/v2 would be less code, but it parses by recursion without a
// limit: 300 KB of "[", "(", "!" or "${\"" exceed Go's stack, which ends the
// process and cannot be recovered from, and ctl-api, like all that reads app
// folders, takes files of up to 4 MiB from strangers. 1 MB of "a?" takes hcl
// 4.1 s and 1.2 GB, and this package 0.14 s and nothing but the text. The engine
// is a process for one job and uses hcl; FuzzSameVariables in
// runner/engine/module holds that both find the same variables.
package tfvars

import (
	"encoding/json"
	"path"
	"strings"
)

// MaxVariables is how many variables are read of one file, and of one module.
const MaxVariables = 10_000

// Variable is an input variable of a module.
type Variable struct {
	Name        string
	Type        string // its first word, such as "list"; "" when none is written
	Description string // in one line
	Optional    bool   // it has a default, which may be null
	Sensitive   bool
}

// Assignment is a value that a file gives to a variable.
type Assignment struct {
	Name string
	Line int // from 1
}

// Module collects the variables of one module, file by file. The zero value is
// a module without files.
type Module struct {
	// Variables are in the order of their files. What an override file says of
	// one is merged in.
	Variables []Variable
	// Given has the variables that get a value by files of the module itself:
	// terraform.tfvars, *.auto.tfvars, and both with .json.
	Given map[string]bool
	// Outputs are the names of what it gives to others, in the order of their files.
	Outputs []string
	// Files counts the files of configuration.
	Files int
	// Unsure is set when a file could not be read to its end, so that there may
	// be more than is known.
	Unsure bool

	byName map[string]int
}

// Add reads one file of the module, one of those that [Read] names. Others are left
// alone.
func (m *Module) Add(name string, data []byte) {
	switch {
	case isAutomatic(name):
		given, whole := Assigned(string(data))
		m.Unsure = m.Unsure || !whole
		if m.Given == nil {
			m.Given = map[string]bool{}
		}
		for _, a := range given {
			m.Given[a.Name] = true
		}
	case isConfiguration(name):
		m.Files++
		read, outputs := Declared, Outputs
		if strings.HasSuffix(name, ".json") {
			read, outputs = DeclaredJSON, outputsJSON
		}
		found, whole := read(string(data))
		given, all := outputs(string(data))
		m.Outputs = append(m.Outputs, given...)
		m.Unsure = m.Unsure || !whole || !all
		for _, v := range found {
			m.declare(v)
		}
	}
}

func (m *Module) declare(v Variable) {
	if i, ok := m.byName[v.Name]; ok {
		m.Variables[i].Optional = m.Variables[i].Optional || v.Optional
		m.Variables[i].Sensitive = m.Variables[i].Sensitive || v.Sensitive
		return
	}
	if len(m.Variables) >= MaxVariables {
		m.Unsure = true
		return
	}
	if m.byName == nil {
		m.byName = map[string]int{}
	}
	m.byName[v.Name] = len(m.Variables)
	m.Variables = append(m.Variables, v)
}

func isConfiguration(name string) bool {
	if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "#") {
		return false // as Terraform has it; it also ignores "main.tf~"
	}
	return strings.HasSuffix(name, ".tf") || strings.HasSuffix(name, ".tf.json") || IsOpenTofu(name)
}

func isAutomatic(name string) bool {
	name = strings.TrimSuffix(name, ".json")
	return name == "terraform.tfvars" || path.Ext(name) == ".tfvars" && strings.HasSuffix(name, ".auto.tfvars")
}

// Declared finds the variables that a file of Terraform's own language declares.
// whole is false when the file is broken or has too many: then there may be
// more.
func Declared(source string) (found []Variable, whole bool) {
	whole = blocks(source, "variable", func(name string, s *scanner) (ok, more bool) {
		v := Variable{Name: name}
		closed := s.attributes(&v)
		switch {
		case !isIdentifier(v.Name):
			return false, true
		case len(found) == MaxVariables:
			return false, false
		}
		found = append(found, v)
		return closed, true
	})
	return found, whole
}

// blocks finds the blocks KIND "NAME" {} of a file and hands each to found, with
// the scanner behind the opening brace; found reads up to its closing one. Each
// tells whether its block is whole, and whether to look for more. whole is false
// when a block is not, or the file is broken.
func blocks(source, kind string, found func(name string, s *scanner) (ok, more bool)) (whole bool) {
	s := newScanner(source)
	whole = true
	depth := 0
	var head statement
	for {
		t := s.next()
		switch {
		case t.kind == tokenEnd:
			return whole && depth == 0 && !s.broken
		case t.kind == tokenLine:
			if depth == 0 {
				head = statement{}
			}
			continue
		case t.opens():
			if depth == 0 && t.text == "{" && head.n == 2 && head.first[0].isWord(kind) {
				ok, more := found(head.first[1].unquoted(), s)
				if !more {
					return false
				}
				whole = whole && ok
				head = statement{}
				continue
			}
			depth++
		case t.closes():
			if depth--; depth < 0 {
				depth, whole = 0, false
			}
			if depth == 0 {
				head = statement{}
			}
			continue
		}
		if depth == 0 {
			head.add(t)
		}
	}
}

// attributes reads the block of a variable up to its closing brace, which may
// be missing.
func (s *scanner) attributes(v *Variable) (closed bool) {
	depth := 0
	var head statement
	for {
		t := s.next()
		if depth == 0 && t.kind != tokenLine && head.n == 2 && head.first[1].isSign("=") {
			v.set(head.first[0].text, t)
		}
		switch {
		case t.kind == tokenEnd:
			return false
		case t.kind == tokenLine:
			if depth == 0 {
				head = statement{}
			}
			continue
		case t.closes() && depth == 0:
			return t.text == "}"
		case t.opens():
			depth++
		case t.closes():
			depth--
		}
		if depth == 0 {
			head.add(t)
		}
	}
}

// set takes an attribute of a variable, by the first token of its value.
func (v *Variable) set(attribute string, value token) {
	switch attribute {
	case "type":
		v.Type = value.unquoted()
	case "default":
		v.Optional = true
	case "sensitive":
		v.Sensitive = value.isWord("true")
	case "description":
		if value.kind == tokenText {
			v.Description = value.unquoted()
		}
	}
}

// DeclaredJSON is Declared for the JSON form of the language.
func DeclaredJSON(source string) (found []Variable, whole bool) {
	whole = true
	root, ok := members(source)
	if !ok {
		return nil, false
	}
	for _, block := range root {
		if block.name != "variable" {
			continue
		}
		for _, table := range tables(block.value, &whole) {
			for _, declared := range table {
				if !isIdentifier(declared.name) || len(found) == MaxVariables {
					whole = false
					continue
				}
				v := Variable{Name: declared.name}
				for _, body := range tables(declared.value, &whole) {
					for _, attribute := range body {
						v.setJSON(attribute.name, attribute.value)
					}
				}
				found = append(found, v)
			}
		}
	}
	return found, whole
}

func (v *Variable) setJSON(attribute string, value json.RawMessage) {
	var text string
	isText := json.Unmarshal(value, &text) == nil
	switch {
	case attribute == "default":
		v.Optional = true
	case attribute == "sensitive":
		v.Sensitive = string(value) == "true" || text == "true"
	case attribute == "type" && isText:
		v.Type, _, _ = strings.Cut(text, "(")
	case attribute == "description" && isText:
		v.Description = strings.Join(strings.Fields(text), " ")
	}
}

// Assigned finds the variables that a file of values gives: terraform.tfvars and
// its like, or the same as JSON, which begins with a brace. whole is false when
// the file is broken or has too many.
func Assigned(source string) (found []Assignment, whole bool) {
	if strings.HasPrefix(strings.TrimSpace(source), "{") {
		return assignedJSON(source)
	}
	s := newScanner(source)
	whole = true
	depth := 0
	var head statement
	for {
		t := s.next()
		switch {
		case t.kind == tokenEnd:
			return found, whole && depth == 0 && !s.broken && head.assigns()
		case t.kind == tokenLine:
			if depth == 0 {
				whole = whole && head.assigns()
				head = statement{}
			}
			continue
		case t.opens():
			depth++
		case t.closes():
			depth--
		}
		if depth < 0 {
			return found, false
		}
		if head.add(t); head.n > len(head.first) {
			continue
		}
		name := head.first[0]
		switch named := name.isName(); {
		case head.n == 1:
			whole = whole && named
		case !t.isSign("="):
			whole = false
		case named && len(found) == MaxVariables:
			return found, false
		case named:
			found = append(found, Assignment{Name: name.text, Line: name.line})
		}
	}
}

func assignedJSON(source string) (found []Assignment, whole bool) {
	root, ok := members(source)
	if !ok {
		return nil, false
	}
	whole = true
	for _, m := range root {
		if !isIdentifier(m.name) || len(found) == MaxVariables {
			whole = false
			continue
		}
		found = append(found, Assignment{Name: m.name, Line: m.line})
	}
	return found, whole
}
