package buildkit

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

const (
	// maxRead bounds what is unpacked of one layer, in bytes.
	maxRead = 32 << 30
	// maxDatabase bounds a file with a list of packages, maxProgram a program that is
	// asked for its modules, in bytes.
	maxDatabase = 64 << 20
	maxProgram  = 512 << 20
)

// pkg is one package of an image.
type pkg struct {
	kind, name, version, arch string
}

// purl is its package URL. A distribution's name is no part of it: it is the image's.
func (p pkg) purl() string {
	u := "pkg:" + p.kind + "/" + p.name + "@" + strings.ReplaceAll(p.version, "+", "%2B")
	if p.arch != "" {
		u += "?arch=" + p.arch
	}
	return u
}

// contents are the packages of an image, by the file that told of them.
type contents struct {
	files map[string][]pkg
	// foreign are lists of packages that this program cannot read.
	foreign map[string]bool
}

// packages reads the layers of an image, from the lowest to the highest.
func (l layout) packages(image ocispec.Descriptor) (contents, error) {
	c := contents{files: map[string][]pkg{}, foreign: map[string]bool{}}
	var manifest ocispec.Manifest
	if err := l.readJSON(l.blob(image.Digest), &manifest); err != nil {
		return c, err
	}
	for _, layer := range manifest.Layers {
		if err := l.layer(layer.Digest, c); err != nil {
			return c, fmt.Errorf("layer %s: %w", layer.Digest, err)
		}
	}
	return c, nil
}

func (l layout) layer(d digest.Digest, c contents) error {
	f, err := os.Open(filepath.Join(string(l), l.blob(d)))
	if err != nil {
		return err
	}
	defer f.Close()
	unpacked, err := gzip.NewReader(bufio.NewReader(f))
	if err != nil {
		return err
	}
	defer unpacked.Close()
	r := tar.NewReader(io.LimitReader(unpacked, maxRead))
	// What a layer removes is of those below it, wherever it stands in the layer.
	fresh := contents{files: map[string][]pkg{}, foreign: map[string]bool{}}
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		name := path.Clean("/" + h.Name)[1:]
		dir, base := path.Split(name)
		switch {
		case base == ".wh..wh..opq":
			c.remove(strings.TrimSuffix(dir, "/"), false)
		case strings.HasPrefix(base, ".wh."):
			c.remove(dir+strings.TrimPrefix(base, ".wh."), true)
		case h.Typeflag == tar.TypeReg:
			c.remove(name, true)
			if err := fresh.read(name, h, r); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		case h.Typeflag != tar.TypeDir:
			c.remove(name, true)
		}
	}
	for name, found := range fresh.files {
		c.files[name] = found
	}
	for name := range fresh.foreign {
		c.foreign[name] = true
	}
	return nil
}

// remove forgets a file, and all that is below it.
func (c contents) remove(name string, itself bool) {
	gone := func(file string) bool {
		return itself && file == name || name == "" || strings.HasPrefix(file, name+"/")
	}
	for file := range c.files {
		if gone(file) {
			delete(c.files, file)
		}
	}
	for file := range c.foreign {
		if gone(file) {
			delete(c.foreign, file)
		}
	}
}

// read looks into a file for packages.
func (c contents) read(name string, h *tar.Header, r io.Reader) error {
	switch {
	case name == "var/lib/dpkg/status", path.Dir(name) == "var/lib/dpkg/status.d" && path.Ext(name) == "":
		return c.database(name, r, fieldsOfDebian)
	case name == "lib/apk/db/installed", name == "usr/lib/apk/db/installed":
		return c.database(name, r, fieldsOfAlpine)
	case strings.HasPrefix(name, "var/lib/rpm/"), strings.HasPrefix(name, "usr/lib/sysimage/rpm/"):
		c.foreign["RPM"] = true
	case path.Base(name) == "package.json" && path.Base(path.Dir(path.Dir(name))) == "node_modules":
		c.foreign["npm"] = true
	case path.Base(name) == "METADATA" && strings.HasSuffix(path.Dir(name), ".dist-info"):
		c.foreign["Python"] = true
	case h.FileInfo().Mode()&0o111 != 0 && h.Size > 4 && h.Size <= maxProgram:
		return c.program(name, r)
	}
	return nil
}

// fields are the keys of a database of packages.
type fields struct{ kind, name, version, arch, sep string }

var (
	fieldsOfDebian = fields{kind: "deb", name: "Package", version: "Version", arch: "Architecture", sep: ": "}
	fieldsOfAlpine = fields{kind: "apk", name: "P", version: "V", arch: "A", sep: ":"}
)

// database reads paragraphs of "key: value".
func (c contents) database(name string, r io.Reader, f fields) error {
	lines := bufio.NewScanner(io.LimitReader(r, maxDatabase))
	lines.Buffer(nil, 1<<20)
	now, removed := pkg{kind: f.kind}, false
	end := func() {
		if now.name != "" && now.version != "" && !removed {
			c.files[name] = append(c.files[name], now)
		}
		now, removed = pkg{kind: f.kind}, false
	}
	for lines.Scan() {
		line := lines.Text()
		key, value, _ := strings.Cut(line, f.sep)
		switch {
		case strings.TrimSpace(line) == "":
			end()
		case key == f.name:
			now.name = value
		case key == f.version:
			now.version = value
		case key == f.arch:
			now.arch = value
		case key == "Status" && f.kind == "deb":
			removed = !strings.HasSuffix(value, " installed")
		}
	}
	end()
	return lines.Err()
}

// elf begins every program of Linux.
var elf = []byte("\x7fELF")

// program reads the modules of a program that Go built.
func (c contents) program(name string, r io.Reader) error {
	head := make([]byte, len(elf))
	if _, err := io.ReadFull(r, head); err != nil || !bytes.Equal(head, elf) {
		return nil // it is no program
	}
	tmp, err := os.CreateTemp("", "program-")
	if err != nil {
		return err
	}
	defer func() { _, _ = tmp.Close(), os.Remove(tmp.Name()) }()
	if _, err := io.Copy(tmp, io.MultiReader(bytes.NewReader(head), r)); err != nil {
		return err
	}
	info, err := buildinfo.Read(tmp)
	if err != nil {
		return nil // not one of Go's
	}
	found := []pkg{{kind: "golang", name: "stdlib", version: strings.TrimPrefix(info.GoVersion, "go")}}
	if info.Main.Path != "" {
		found = append(found, pkg{kind: "golang", name: info.Main.Path, version: info.Main.Version})
	}
	for _, dep := range info.Deps {
		if dep.Replace != nil {
			dep = dep.Replace
		}
		found = append(found, pkg{kind: "golang", name: dep.Path, version: dep.Version})
	}
	c.files[name] = found
	return nil
}

// sorted are the packages, each once.
func (c contents) sorted() (all []pkg) {
	for _, found := range c.files {
		all = append(all, found...)
	}
	slices.SortFunc(all, func(a, b pkg) int { return strings.Compare(a.purl(), b.purl()) })
	return slices.Compact(all)
}

// missing names the kinds of packages that are there and not listed.
func (c contents) missing() (kinds []string) {
	for kind := range c.foreign {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	return kinds
}

// note says how much the list is worth.
func (c contents) note(platform string) string {
	text := fmt.Sprintf("%s: %d packages of Debian, Alpine and Go are in its SBOM", platform, len(c.sorted()))
	if missing := c.missing(); len(missing) > 0 {
		text += "; WARNING: the packages of " + strings.Join(missing, ", ") + " in it are not listed"
	}
	return text
}
