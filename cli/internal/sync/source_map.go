package sync

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/bundle"
	"github.com/berth-dev/berth/pkg/appconfig/fetch"
)

// SourceMap sends git repositories and chart repositories to directories of this
// machine, so that a sync takes their content from there. The path in a chart
// repository is the chart's name.
type SourceMap []mapping

// mapping is one entry: REPO[//DIR]=PATH.
type mapping struct {
	written string
	repo    string // as repositoryOf has it
	dir     string // of the repository; "." is all of it
	local   string
	asked   bool // on the command line, not in a file that others share
	used    bool
}

// ReadSourceMap reads the entries of the command line and of a file. Paths of a
// file are relative to it.
func ReadSourceMap(entries []string, file string) (SourceMap, error) {
	var all SourceMap
	add := func(entry, where string, asked bool) error {
		m, err := parseMapping(entry)
		if err != nil {
			return err
		}
		if m.asked = asked; !filepath.IsAbs(m.local) {
			m.local = filepath.Join(where, m.local)
		}
		for _, other := range all {
			if other.repo == m.repo && other.dir == m.dir && other.asked == asked {
				return usage.Errorf("the source map has two entries for the same source: %q and %q", other.written, entry)
			}
		}
		all = append(all, m)
		return nil
	}
	for _, entry := range entries {
		if err := add(entry, "", true); err != nil {
			return nil, err
		}
	}
	if file == "" {
		return all, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, usage.Errorf("source map: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := add(line, filepath.Dir(file), false); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n, err)
		}
	}
	return all, lines.Err()
}

func parseMapping(entry string) (mapping, error) {
	from, to, ok := strings.Cut(entry, "=")
	if !ok || strings.TrimSpace(from) == "" || strings.TrimSpace(to) == "" {
		return mapping{}, usage.Errorf("%q is not a source map entry: write REPO[//DIR]=PATH", entry)
	}
	repo, dir := strings.TrimSpace(from), "."
	// The "//" of a scheme is not what divides.
	if i := strings.LastIndex(repo, "//"); i > 0 && repo[i-1] != ':' {
		repo, dir = repo[:i], path.Clean(strings.Trim(repo[i:], "/"))
	}
	if dir == ".." || strings.HasPrefix(dir, "../") {
		return mapping{}, usage.Errorf("%q points outside of the repository", entry)
	}
	return mapping{written: entry, repo: repositoryOf(repo), dir: dir, local: strings.TrimSpace(to)}, nil
}

// shorthandRepository is how app folders name repositories: "owner/name".
var shorthandRepository = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9_.-]+$`)

// repositoryOf makes the spellings of one repository comparable: "owner/name",
// its https URL and its SSH address, with and without ".git".
func repositoryOf(written string) string {
	name := strings.TrimSuffix(strings.TrimSuffix(written, "/"), ".git")
	if shorthandRepository.MatchString(name) {
		return "github.com/" + name
	}
	if _, after, ok := strings.Cut(name, "://"); ok {
		name = after
	} else if host, rest, ok := strings.Cut(name, ":"); ok && !strings.Contains(host, "/") {
		name = host + "/" + rest // git@host:owner/name
	}
	host, rest, _ := strings.Cut(name, "/")
	if _, after, ok := strings.Cut(host, "@"); ok {
		host = after
	}
	return strings.ToLower(host) + "/" + rest
}

// find finds the entry for a path of a repository, nil when there is none, and
// the rest of the path below its directory. The entry of the longest directory
// wins, and one of the command line before one of a file.
func (s SourceMap) find(repository, name string) (best *mapping, rest string) {
	repo := repositoryOf(repository)
	for i := range s {
		m := &s[i]
		inside := m.dir == "." || name == m.dir || strings.HasPrefix(name, m.dir+"/")
		if m.repo == repo && inside && (best == nil || len(m.dir) > len(best.dir) || len(m.dir) == len(best.dir) && m.asked && !best.asked) {
			best = m
		}
	}
	if best == nil {
		return nil, ""
	}
	best.used = true
	if rest = name; best.dir != "." {
		rest = strings.TrimPrefix(strings.TrimPrefix(name, best.dir), "/")
	}
	return best, rest
}

// directory is where a git source stands on this machine.
func (s SourceMap) directory(src appconfig.Source) (root fs.FS, dir string, ok bool) {
	if src.Kind != appconfig.SourceGit {
		return nil, "", false
	}
	m, rest := s.find(src.Repo, src.Directory)
	if m == nil {
		return nil, "", false
	}
	return os.DirFS(m.local), path.Clean(rest), true
}

// Has tells whether the map has a source.
func (s SourceMap) Has(src appconfig.Source) bool {
	_, _, ok := s.directory(src)
	return ok
}

// archive packs what stands in for a git source or a chart; false when nothing
// does.
func (s SourceMap) archive(src appconfig.Source) (data []byte, digest, from string, ok bool, err error) {
	if !src.Mappable() {
		return nil, "", "", false, nil
	}
	m, rest := s.find(src.Repo, src.Directory)
	if m == nil {
		return nil, "", "", false, nil
	}
	from = filepath.Join(m.local, filepath.FromSlash(rest))
	if info, statErr := os.Stat(from); statErr != nil || !info.IsDir() {
		return nil, "", from, false, fmt.Errorf("the source map points %s to %s, which is not a directory", SourceName(src), from)
	}
	data, digest, err = bundle.ArchiveDirectory(os.DirFS(m.local), rest)
	return data, digest, from, err == nil, err
}

// file reads what stands in for a file of a git repository; from is "" when
// nothing does. As in the repository, a symlink may not lead out of it.
func (s SourceMap) file(address fetch.Address) (result fetch.Result, from string) {
	best, rest := s.find(address.URL, address.Path)
	if best == nil {
		return result, ""
	}
	from = filepath.Join(best.local, filepath.FromSlash(rest))
	data, err := readBelow(best.local, rest)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		result.Problem, result.Remedy = "is sent to "+from+" by the source map, where no such file is", "put it there, or leave the entry out"
	case err != nil:
		result.Problem = fmt.Sprintf("is pointed to %s by the source map, but berth cannot read that: %v", from, err)
	}
	result.Contents = data
	return result, from
}

// readBelow reads a file of a directory, one byte more of it than may be
// fetched.
func readBelow(dir, name string) ([]byte, error) {
	if name == "" { // the entry names the file itself
		dir, name = filepath.Split(filepath.Clean(dir))
	}
	root, err := os.OpenRoot(filepath.Clean(dir))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	file, err := root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(errors.New("it is not a file"), err)
	}
	return io.ReadAll(io.LimitReader(file, fetch.MaxBytes+1))
}

// unused are the entries of the command line that no source needed.
func (s SourceMap) unused() []string {
	var all []string
	for _, m := range s {
		if m.asked && !m.used {
			all = append(all, m.written)
		}
	}
	return all
}

// SourceName is a git source or a chart for people: "acme/app//infra".
func SourceName(src appconfig.Source) string {
	if src.Directory == "." {
		return src.Repo
	}
	return src.Repo + "//" + src.Directory
}
