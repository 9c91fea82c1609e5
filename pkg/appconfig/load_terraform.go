package appconfig

import (
	"encoding/json"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// terraformVars warns of variables that a module of the app folder does not
// declare: Terraform itself says so only in the output of a plan, and ignores
// them.
func (l *loader) terraformVars() {
	m := modules{folder: newFolder(l.folder.fsys), declared: map[string][]string{}}
	if s := l.app.Sandbox; s != nil && s.Type == SandboxTypeTerraform {
		src, ok := s.Source()
		l.moduleVars(&m, s.At, src, ok, s.Vars)
	}
	for i := range l.app.Components {
		if c := &l.app.Components[i]; c.TerraformModule != nil {
			src, ok := c.Source()
			l.moduleVars(&m, c.At, src, ok, c.TerraformModule.Vars)
		}
	}
}

func (l *loader) moduleVars(m *modules, at Place, src Source, ok bool, vars map[string]string) {
	if !ok || src.Kind != SourceLocal || len(vars) == 0 {
		return
	}
	declared, known := m.variables(src.Directory)
	if !known {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		if slices.Contains(declared, name) {
			continue
		}
		d := l.at(Warning, CodeUndeclared, at.key("vars").key(name), "the module in %s has no variable %q, so the value does nothing", src.Directory, name)
		l.diags = append(l.diags, l.suggest(d.remedy("declare it there, or remove it here"), name, declared))
	}
}

// modules reads which variables Terraform modules declare, within the limits
// of an app folder and beside what is read of the config.
type modules struct {
	folder   *folder
	declared map[string][]string
}

// variables lists what a module declares, sorted; known is false when its files
// cannot be read or there are none.
func (m *modules) variables(dir string) (names []string, known bool) {
	if names, ok := m.declared[dir]; ok {
		return names, names != nil
	}
	m.declared[dir] = nil
	if !m.folder.isDir(dir) {
		return nil, false
	}
	entries, err := fs.ReadDir(m.folder.fsys, dir)
	if err != nil {
		return nil, false
	}
	names = []string{}
	files := 0
	for _, entry := range entries {
		isHCL, isJSON := strings.HasSuffix(entry.Name(), ".tf"), strings.HasSuffix(entry.Name(), ".tf.json")
		if entry.IsDir() || !isHCL && !isJSON {
			continue
		}
		files++
		data, err := m.folder.read(path.Join(dir, entry.Name()))
		if err != nil {
			return nil, false
		}
		if isHCL {
			names = append(names, hclVariables(string(data))...)
			continue
		}
		var file struct {
			Variable map[string]json.RawMessage `json:"variable"`
		}
		if json.Unmarshal(data, &file) != nil {
			return nil, false // another legal form: a list of tables
		}
		names = append(names, slices.Collect(maps.Keys(file.Variable))...)
	}
	if files == 0 {
		return nil, false
	}
	slices.Sort(names)
	m.declared[dir] = names
	return names, true
}

// hclVariables finds the `variable "name" {` blocks of a Terraform file. It
// knows as much of HCL as keeps it from looking into comments, strings,
// heredocs and other blocks.
func hclVariables(src string) []string {
	var names []string
	depth, last, before := 0, "", "" // the last two words outside of blocks
	for i := 0; i < len(src); {
		rest := src[i:]
		switch c := src[i]; {
		case c == '#' || strings.HasPrefix(rest, "//"):
			i += lineLength(rest)
		case strings.HasPrefix(rest, "/*"):
			i += until(rest, 2, "*/")
		case strings.HasPrefix(rest, "<<"):
			i += heredocLength(rest)
		case c == '"':
			n := stringLength(rest)
			if depth == 0 {
				before, last = last, strings.Trim(rest[:n], `"`)
			}
			i += n
		case c == '{' || c == '[' || c == '(':
			if c == '{' && depth == 0 && before == "variable" {
				names = append(names, last)
			}
			depth++
			before, last = "", ""
			i++
		case c == '}' || c == ']' || c == ')':
			depth = max(depth-1, 0)
			i++
		case isWordByte(c):
			n := 1
			for n < len(rest) && (isWordByte(rest[n]) || rest[n] == '-') {
				n++
			}
			if depth == 0 {
				before, last = last, rest[:n]
			}
			i += n
		default:
			i++
		}
	}
	return names
}

func isWordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

func lineLength(s string) int {
	if n := strings.IndexByte(s, '\n'); n >= 0 {
		return n + 1
	}
	return len(s)
}

// until returns the length of s up to and with an end that stands at or behind
// from.
func until(s string, from int, end string) int {
	if n := strings.Index(s[from:], end); n >= 0 {
		return from + n + len(end)
	}
	return len(s)
}

// stringLength measures a quoted string. Inside ${…} quotes begin strings of
// their own.
func stringLength(s string) int {
	var inside []byte // what is open: a string or braces
	for i := 0; i < len(s); i++ {
		inString := len(inside) > 0 && inside[len(inside)-1] == '"'
		switch c := s[i]; {
		case inString && c == '\\':
			i++
		case inString && c == '"', !inString && c == '}':
			if inside = inside[:max(len(inside)-1, 0)]; len(inside) == 0 {
				return i + 1
			}
		case inString && (strings.HasPrefix(s[i:], "$${") || strings.HasPrefix(s[i:], "%%{")):
			i += 2
		case inString && (strings.HasPrefix(s[i:], "${") || strings.HasPrefix(s[i:], "%{")):
			inside = append(inside, '{')
			i++
		case !inString && (c == '"' || c == '{'):
			inside = append(inside, c)
		}
	}
	return len(s)
}

// heredocLength measures <<EOT … EOT, or the two brackets when it is none.
func heredocLength(s string) int {
	n := 2
	if n < len(s) && s[n] == '-' {
		n++
	}
	word := n
	for n < len(s) && isWordByte(s[n]) {
		n++
	}
	end := s[word:n]
	if end == "" {
		return 2
	}
	for n += lineLength(s[n:]); n < len(s); {
		line := s[n : n+lineLength(s[n:])]
		n += len(line)
		if strings.TrimSpace(line) == end {
			break
		}
	}
	return n
}
