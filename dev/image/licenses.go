package image

import (
	"bytes"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
)

// LicensesFile is the name of what [Licenses.Of] gives.
const LicensesFile = "THIRD-PARTY-LICENSES.txt"

// Licenses finds the terms of Go and of its modules on this machine.
type Licenses struct {
	Modules string // GOMODCACHE
	GoRoot  string // GOROOT
}

// licenseFile matches the names of files with terms, and with what has to be
// said of authors.
var licenseFile = regexp.MustCompile(`(?i)^(licen[sc]es?|copying|copyright|notice|patents|authors|unlicense)([-._].*)?$`)

// notText are files of these names that are code.
var notText = regexp.MustCompile(`(?i)\.(go|json|ya?ml|sh|tmpl|py|js)$`)

// Of is the text that goes with executables: every license and notice of what
// they link, each once, below the names of all modules that it is for. Modules
// without any are an error. The same executables give the same text.
func (l Licenses) Of(executables []string) ([]byte, error) {
	holders := map[string][]string{} // by text
	terms, err := l.texts(l.GoRoot)
	if err != nil {
		return nil, fmt.Errorf("license of Go: %w", err)
	}
	goVersion := ""
	modules := map[string]bool{}
	for _, file := range executables {
		build, err := buildinfo.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("build info of %s: %w", file, err)
		}
		goVersion = strings.TrimPrefix(build.GoVersion, "go")
		for _, m := range build.Deps {
			if name := nameOf(m); name != "" {
				modules[name] = true
			}
		}
	}
	// What is not code: the certificate authorities.
	if own, ok := debug.ReadBuildInfo(); ok {
		for _, m := range own.Deps {
			if m.Path == RootsModule {
				modules[nameOf(m)] = true
			}
		}
	}
	for _, text := range terms {
		holders[text] = append(holders[text], "Go "+goVersion)
	}
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		terms, err := l.texts(filepath.Join(l.Modules, escaped(name)))
		if err != nil {
			return nil, fmt.Errorf("license of %s: %w", name, err)
		}
		for _, text := range terms {
			holders[text] = append(holders[text], name)
		}
	}
	return layOut(holders), nil
}

// nameOf is PATH@VERSION; "" for a module of this source tree.
func nameOf(m *debug.Module) string {
	if m.Replace != nil {
		m = m.Replace
	}
	if strings.HasPrefix(m.Path, ".") || m.Version == "" || m.Version == "(devel)" {
		return ""
	}
	return m.Path + "@" + m.Version
}

// escaped is where the cache has a module: capitals are "!" and the small letter.
func escaped(name string) string {
	return regexp.MustCompile(`[A-Z]`).ReplaceAllStringFunc(name, func(s string) string { return "!" + strings.ToLower(s) })
}

// texts are those of the files with terms in a folder, without the same twice.
func (l Licenses) texts(dir string) ([]string, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var texts []string
	for _, f := range files {
		if !licenseFile.MatchString(f.Name()) || notText.MatchString(f.Name()) {
			continue
		}
		found, err := read(filepath.Join(dir, f.Name()), f)
		if err != nil {
			return nil, err
		}
		texts = append(texts, found...)
	}
	if len(texts) == 0 {
		if texts, err = statedTerms(dir); err != nil {
			return nil, err
		}
	}
	if len(texts) == 0 {
		return nil, errors.New("it has none")
	}
	slices.Sort(texts)
	return slices.Compact(texts), nil
}

// read is the text of a file, or those of a folder called LICENSES.
func read(at string, entry fs.DirEntry) (texts []string, err error) {
	if !entry.IsDir() {
		text, err := os.ReadFile(at)
		return []string{strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n"))}, err
	}
	files, err := os.ReadDir(at)
	for _, f := range files {
		if f.IsDir() || notText.MatchString(f.Name()) {
			continue
		}
		found, readErr := read(filepath.Join(at, f.Name()), f)
		texts, err = append(texts, found...), errors.Join(err, readErr)
	}
	return texts, err
}

// layOut writes every text once, the first by name of who has it first.
func layOut(holders map[string][]string) []byte {
	texts := slices.SortedFunc(maps.Keys(holders), func(a, b string) int {
		return strings.Compare(holders[a][0]+"\n"+a, holders[b][0]+"\n"+b)
	})
	line := strings.Repeat("=", 78)
	var out bytes.Buffer
	out.WriteString("Berth's executables contain the following works of others, under these terms.\n")
	for _, text := range texts {
		fmt.Fprintf(&out, "\n%s\n%s\n%s\n\n%s\n", line, strings.Join(holders[text], "\n"), line, text)
	}
	return out.Bytes()
}
