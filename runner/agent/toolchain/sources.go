package toolchain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/Masterminds/semver/v3"

	"github.com/berth-dev/berth/pkg/tfprogram"
)

// programs lists what can be had without the network, in no order. An executable that
// does not tell its version is left out.
func (b *Box) programs(ctx context.Context) ([]program, error) {
	var all []program
	ask := func(path string, from origin) {
		if v, err := b.asked.version(ctx, path); err == nil {
			all = append(all, program{version: v, from: from, path: path})
		}
	}
	if b.cfg.Named != "" {
		ask(b.cfg.Named, named)
	}
	if b.cfg.Mirror != "" && !b.cfg.mirrorIsSite() {
		found, err := b.folder().programs()
		if err != nil {
			return nil, fmt.Errorf("mirror of %s: %w", b.cfg.Vendor.Title, err)
		}
		all = append(all, found...)
	}
	for _, dir := range filepath.SplitList(b.cfg.SearchPath) {
		if path := filepath.Join(dir, b.cfg.Vendor.Program); filepath.IsAbs(path) && isProgram(path) {
			ask(path, onPath)
		}
	}
	dirs, err := os.ReadDir(filepath.Dir(filepath.Dir(b.keptAt("x"))))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, dir := range dirs {
		v, err := semver.StrictNewVersion(dir.Name())
		if path := b.keptAt(dir.Name()); err == nil && isProgram(path) {
			all = append(all, program{version: v, from: kept, path: path})
		}
	}
	return all, nil
}

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// folder is a mirror: VERSION/terraform, or the vendor's files of a version, in
// VERSION/ or all in one directory, which may be called terraform as on the vendor's
// site, or opentofu.
type folder struct {
	vendor tfprogram.Vendor
	dir    string
}

func (f folder) programs() ([]program, error) {
	if _, err := os.ReadDir(f.dir); err != nil {
		return nil, err
	}
	var all []program
	for _, root := range f.roots() {
		entries, err := os.ReadDir(root)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			name := entry.Name()
			prefix, suffix, _ := strings.Cut(f.vendor.ArchiveName("*"), "*")
			text := strings.TrimSuffix(strings.TrimPrefix(name, prefix), suffix)
			if entry.IsDir() {
				text = strings.TrimPrefix(name, f.vendor.Folder(""))
			}
			v, err := semver.StrictNewVersion(text)
			if err != nil {
				continue
			}
			path := filepath.Join(root, name, f.vendor.Program)
			switch {
			case !entry.IsDir() && text != name: // an archive
				all = append(all, program{version: v, from: mirror})
			case isProgram(path):
				all = append(all, program{version: v, from: mirror, path: path})
			case f.hasArchive(text):
				all = append(all, program{version: v, from: mirror})
			}
		}
	}
	return all, nil
}

func (f folder) roots() []string {
	return []string{f.dir, filepath.Join(f.dir, f.vendor.Tool)}
}

func (f folder) hasArchive(version string) bool {
	file, err := f.Open(context.Background(), version, f.vendor.ArchiveName(version))
	if err == nil {
		_ = file.Close()
	}
	return err == nil
}

// Open opens one of the vendor's files. The list of checksums may also be called plainly
// SHA256SUMS.
func (f folder) Open(_ context.Context, version, name string) (io.ReadCloser, error) {
	plain := f.vendor.PlainName(version, name)
	for _, root := range f.roots() {
		own, asOnSite := filepath.Join(root, version), filepath.Join(root, f.vendor.Folder(version))
		for _, path := range []string{
			filepath.Join(own, name), filepath.Join(asOnSite, name), filepath.Join(root, name),
			filepath.Join(own, plain), filepath.Join(asOnSite, plain), filepath.Join(root, plain),
		} {
			file, err := os.Open(path)
			if !errors.Is(err, fs.ErrNotExist) {
				return file, err
			}
		}
	}
	return nil, fmt.Errorf("%s is not in the mirror %s", name, f.dir)
}

// site is the vendor's, or a copy of it with the same paths.
type site struct {
	vendor tfprogram.Vendor
	base   string
	client *http.Client
}

// Open opens one of the vendor's files.
func (s site) Open(ctx context.Context, version, name string) (io.ReadCloser, error) {
	url := s.base + "/" + s.vendor.Folder(version) + "/" + name
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	switch {
	case resp.StatusCode == http.StatusOK:
		return resp.Body, nil
	case resp.StatusCode == http.StatusNotFound && strings.Contains(name, "_SHA256SUMS"):
		err = fmt.Errorf("%w: %s has no release of this version (%s is not there)", ErrNone, s.base, name)
	default:
		err = fmt.Errorf("%s answered %s", url, resp.Status)
	}
	return nil, errors.Join(err, resp.Body.Close())
}

// askTimeout is for a program that has to be read from a slow disk first.
const askTimeout = 20 * time.Second

// asked remembers the versions that executables told, as long as they do not change.
type asked struct {
	mu    sync.Mutex
	known map[stamp]*semver.Version
}

type stamp struct {
	path  string
	size  int64
	mtime time.Time
}

// version asks an executable which Terraform or OpenTofu it is.
func (a *asked) version(ctx context.Context, path string) (*semver.Version, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	key := stamp{path, info.Size(), info.ModTime()}
	a.mu.Lock()
	defer a.mu.Unlock()
	if v, ok := a.known[key]; ok {
		return v, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "version", "-json")
	cmd.Dir, cmd.Env = "/", []string{"CHECKPOINT_DISABLE=1", "HOME=/", "TF_CLI_CONFIG_FILE=/dev/null"}
	raw, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s version: %w", path, err)
	}
	var answer struct {
		Version string `json:"terraform_version"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return nil, fmt.Errorf("%s version: not terraform: %w", path, err)
	}
	v, err := semver.StrictNewVersion(answer.Version)
	if err != nil {
		return nil, fmt.Errorf("%s version: %q: %w", path, answer.Version, err)
	}
	if a.known == nil {
		a.known = map[stamp]*semver.Version{}
	}
	a.known[key] = v
	return v, nil
}

func copyOf(from io.Reader) func(io.Writer) error {
	return func(to io.Writer) error {
		_, err := io.Copy(to, from)
		return err
	}
}
