package grant

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
)

// MaxPaths is how many paths a plugin may be given.
const MaxPaths = 20

// closedPaths are places that no plugin is shown, nor what is in them or around them:
// the kernel's own files, sockets and secrets of running services, boot files.
var closedPaths = []string{"/boot", "/dev", "/proc", "/run", "/sys", "/var/run"}

// wholePaths are places that are too much at once; what is in them may be given.
var wholePaths = []string{"/bin", "/etc", "/home", "/lib", "/lib64", "/mnt", "/opt", "/root", "/sbin", "/srv", "/tmp", "/usr", "/var", "/var/lib", "/var/tmp"}

// Path is a file or a directory of the runner's machine that a plugin sees at its own
// place.
type Path struct {
	Name string // absolute and clean
	// Write: it may also be changed.
	Write bool
}

// ParsePath reads "/etc/myapp:ro", "/var/lib/myapp" or "/var/lib/myapp:rw". Whether it is
// there, and whether a symlink leads to it, is up to who shows it.
func ParsePath(text string) (Path, error) {
	p := Path{Name: text, Write: true}
	if name, is := strings.CutSuffix(text, ":ro"); is {
		p = Path{Name: name}
	} else if name, is := strings.CutSuffix(text, ":rw"); is {
		p.Name = name
	}
	var err error
	switch {
	case strings.Contains(p.Name, ":"):
		err = errors.New("it ends with :ro, :rw or nothing, and has no other colon")
	case !strings.HasPrefix(p.Name, "/") || path.Clean(p.Name) != p.Name:
		err = errors.New("it is not absolute, or not written the shortest way")
	case len(p.Name) > 500 || strings.ContainsFunc(p.Name, func(r rune) bool { return !unicode.IsPrint(r) }):
		err = errors.New("it is no path that can be shown")
	case p.Name == "/" || slices.Contains(wholePaths, p.Name):
		err = errors.New("that is too much: name what the plugin needs of it")
	}
	for _, closed := range closedPaths {
		if err == nil && p.Meets(closed) {
			err = fmt.Errorf("no plugin is shown %s", closed)
		}
	}
	if err != nil {
		return Path{}, fmt.Errorf("path %q: %w", text, err)
	}
	return p, nil
}

// Meets says whether a place is p, in it or around it.
func (p Path) Meets(place string) bool {
	return p.Name == place || strings.HasPrefix(p.Name, place+"/") || strings.HasPrefix(place, p.Name+"/")
}

// String is the one text that every way to write the path means.
func (p Path) String() string {
	if p.Write {
		return p.Name
	}
	return p.Name + ":ro"
}

// Covers says whether who has p has other too.
func (p Path) Covers(other Path) bool {
	return p.Name == other.Name && (p.Write || !other.Write)
}

// ParsePaths reads a list, and names each entry that is none. None is inside of another.
func ParsePaths(texts []string) ([]Path, error) {
	var paths []Path
	var errs []error
	if len(texts) > MaxPaths {
		errs = append(errs, fmt.Errorf("there are %d paths, %d is the most", len(texts), MaxPaths))
	}
	for _, text := range texts {
		p, err := ParsePath(text)
		if err == nil {
			if i := slices.IndexFunc(paths, func(before Path) bool { return before.Meets(p.Name) }); i >= 0 {
				err = fmt.Errorf("path %q: it meets %s", text, paths[i])
			}
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		paths = append(paths, p)
	}
	return paths, errors.Join(errs...)
}
