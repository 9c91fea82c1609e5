// Package scaffold owns the first files of an app folder: a small app that
// works as it is, or one around a chart or a Terraform module that is there
// already. It never replaces a file.
package scaffold

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Options say what the app is made around; with neither path it gets a small
// Terraform module of its own. At most one is given.
type Options struct {
	Chart     string // the folder of a Helm chart
	Terraform string // the folder of a Terraform module
}

// File is one file to write, its path relative to the app folder.
type File struct {
	Path string
	Data []byte
	Mode fs.FileMode
}

// Files makes the files of a new app in a folder, which need not be there yet.
// A chart or module outside of it is copied below src.
func Files(dir string, o Options) ([]File, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	files := baseFiles(title(filepath.Base(abs)))
	var more []File
	switch {
	case o.Chart != "":
		more, err = chartFiles(abs, o.Chart)
	case o.Terraform != "":
		more, err = moduleFiles(abs, o.Terraform)
	default:
		more = ownModule()
	}
	return append(files, more...), err
}

// Write writes files below a folder. When one of them is there already, nothing
// is written.
func Write(dir string, files []File) error {
	var there []string
	for _, f := range files {
		if _, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(f.Path))); err == nil {
			there = append(there, f.Path)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if len(there) > 0 {
		return fmt.Errorf("nothing written to %s, because these files already exist: %s", dir, strings.Join(there, ", "))
	}
	for _, f := range files {
		name := filepath.Join(dir, filepath.FromSlash(f.Path))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := writeNew(name, f); err != nil {
			return err
		}
	}
	return nil
}

// writeNew fails when the file has come in the meantime.
func writeNew(name string, f File) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, f.Mode)
	if err != nil {
		return err
	}
	_, err = file.Write(f.Data)
	return errors.Join(err, file.Close())
}

func text(name string, lines ...string) File {
	return File{Path: name, Data: []byte(strings.Join(lines, "\n") + "\n"), Mode: 0o644}
}

// source is a folder of somebody's files that a component is made of.
type source struct {
	name  string // of the component
	local string // where it is in the app folder
	files []File // to copy; none when it is there already
}

// Limits on what is copied; a wrong folder is reported before it fills the
// disk.
const (
	maxFiles = 10_000
	maxBytes = 64 << 20
)

// sourceAt reads a folder that is to be part of the app in abs. skip tells what
// is left out, by name.
func sourceAt(abs, from, name string, skip func(name string) bool) (source, error) {
	from, err := filepath.Abs(from)
	if err != nil {
		return source{}, err
	}
	if inside, err := filepath.Rel(abs, from); err == nil && inside != "." && filepath.IsLocal(inside) {
		return source{name: name, local: filepath.ToSlash(inside)}, nil
	}
	if inside, err := filepath.Rel(from, abs); err == nil && filepath.IsLocal(inside) {
		return source{}, fmt.Errorf("the app folder %s is inside its own source %s: choose a folder outside of it", abs, from)
	}
	s := source{name: name, local: path.Join("src", name)}
	total := 0
	err = filepath.WalkDir(from, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case file != from && skip(entry.Name()):
			if entry.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case entry.IsDir():
			return nil
		case !entry.Type().IsRegular():
			return fmt.Errorf("%s is not a regular file", file)
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if total += int(info.Size()); total > maxBytes || len(s.files) == maxFiles {
			return fmt.Errorf("%s has more than %d files or %d MiB", from, maxFiles, maxBytes>>20)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, file)
		if err != nil {
			return err
		}
		s.files = append(s.files, File{Path: path.Join(s.local, filepath.ToSlash(relative)), Data: data, Mode: info.Mode().Perm()})
		return nil
	})
	return s, err
}

// leftOut are the folders that belong to a machine, not to a source.
var leftOut = []string{".git", ".terraform", ".terragrunt-cache", ".DS_Store"}

// isLeftOut also tells files of one deployment, which may hold its secrets.
func isLeftOut(name string) bool {
	return slices.Contains(leftOut, name) || strings.Contains(name, ".tfstate") || name == "terraform.tfvars" || strings.HasSuffix(name, ".auto.tfvars")
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// componentName makes a name that components and releases may have.
func componentName(from string) string {
	name := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(from), "-"), "-")
	const longest = 53 // what Helm accepts as the name of a release
	if name = strings.Trim(name[:min(len(name), longest)], "-"); name == "" || name == "base" {
		return "app" // src/base is the sandbox's
	}
	return name
}

// title is a folder's name as people would write it.
func title(folder string) string {
	words := strings.FieldsFunc(folder, func(r rune) bool { return r == '-' || r == '_' || r == '.' || r == ' ' })
	for i, w := range words {
		first := []rune(w)
		words[i] = strings.ToUpper(string(first[:1])) + string(first[1:])
	}
	if len(words) == 0 {
		return "App"
	}
	return strings.Join(words, " ")
}

// quoted writes a string of TOML: its escapes are those of JSON, and one more.
func quoted(s string) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(s) // a string always can be
	return strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\x7f", `\u007f`)
}
