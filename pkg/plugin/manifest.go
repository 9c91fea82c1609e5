// Package plugin is what a plugin is: a directory with a manifest, one executable
// per platform, and a signature over all of it. An app names the directory as the
// source of a component; the builder makes an artifact of it, and a runner starts
// it for the component's jobs (docs/reference/plugin-contract.md).
//
// The package reads, checks, signs and verifies. Starting a plugin is up to
// runner/engine/plugin, testing one to package conformance.
package plugin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
)

// Files of a plugin's directory.
const (
	ManifestFile  = "plugin.json"
	SignatureFile = "plugin.sig.json"
	// ConformanceFile says how the conformance kit tries the plugin. Runners do
	// not read it.
	ConformanceFile = "conformance.json"
)

// Contract is the version of the contract that this Berth speaks, OldestContract
// the oldest that it still accepts.
const (
	Contract       = 1
	OldestContract = 1
)

// AnyPlatform names an executable that runs wherever its interpreter is, such as a
// shell script. One for the exact platform wins over it.
const AnyPlatform = "any"

// maxFile bounds the manifest and the signature, in bytes.
const maxFile = 1 << 20

// Manifest is plugin.json.
type Manifest struct {
	// Contract is the version of the contract that the plugin keeps.
	Contract int `json:"contract"`
	// Type is the component type that it deploys.
	Type    string `json:"type"`
	Version string `json:"version"`
	// Executables are paths in the directory by platform, "linux/amd64" or
	// AnyPlatform.
	Executables map[string]string `json:"executables,omitempty"`
	// Image is a directory of the plugin, an OCI layout that lists one container image,
	// whose entry point is the plugin in place of Executables.
	Image string `json:"image,omitempty"`
	// Config describes the component's own keys.
	Config Schema `json:"config"`
	// Permissions are what the plugin cannot work without.
	Permissions Permissions `json:"permissions"`
}

var typeName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`)

// ReadManifest reads and checks the manifest of a plugin's directory. A key that
// it does not know is an error: it may be a permission of a later Berth.
func ReadManifest(dir fs.FS) (Manifest, error) {
	var m Manifest
	raw, err := readFile(dir, ManifestFile)
	if errors.Is(err, fs.ErrNotExist) {
		return m, fmt.Errorf("there is no %s, so it is no plugin", ManifestFile)
	}
	if err != nil {
		return m, err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return m, fmt.Errorf("%s: %w", ManifestFile, err)
	}
	if err := m.check(dir); err != nil {
		return m, fmt.Errorf("%s: %w", ManifestFile, err)
	}
	return m, nil
}

func (m Manifest) check(dir fs.FS) error {
	var errs []error
	if m.Contract < OldestContract || m.Contract > Contract {
		errs = append(errs, fmt.Errorf("contract is %d, this version knows %d to %d", m.Contract, OldestContract, Contract))
	}
	if !typeName.MatchString(m.Type) {
		errs = append(errs, fmt.Errorf("type %q is no name of a component type: lower-case letters, digits, - and _", m.Type))
	}
	if m.Version == "" {
		errs = append(errs, errors.New("version is missing"))
	}
	switch {
	case len(m.Executables) == 0 && m.Image == "":
		errs = append(errs, errors.New("executables are missing, or an image"))
	case len(m.Executables) > 0 && m.Image != "":
		errs = append(errs, errors.New("it has executables and an image: a plugin is one or the other"))
	case m.Image != "":
		errs = append(errs, m.checkImage(dir))
	}
	for platform, file := range m.Executables {
		info, err := fs.Stat(dir, path.Clean(file))
		switch {
		case !fs.ValidPath(file):
			errs = append(errs, fmt.Errorf("executable %q for %s is not inside of the plugin's directory", file, platform))
		case err != nil || !info.Mode().IsRegular():
			errs = append(errs, fmt.Errorf("executable %q for %s is not there: build the plugin first", file, platform))
		}
	}
	if err := m.Permissions.Check(); err != nil {
		errs = append(errs, fmt.Errorf("permissions: %w", err))
	}
	if err := m.Config.check(); err != nil {
		errs = append(errs, fmt.Errorf("config: %w", err))
	}
	if m.Config.Type != "" && m.Config.Type != typeObject {
		errs = append(errs, errors.New("config: type is not object"))
	}
	return errors.Join(errs...)
}

// checkImage says what keeps the directory of the image from being a layout. Whether
// it has an image for a platform is up to package container.
func (m Manifest) checkImage(dir fs.FS) error {
	if !fs.ValidPath(m.Image) || m.Image == "." {
		return fmt.Errorf("image %q is not a directory inside of the plugin's", m.Image)
	}
	if info, err := fs.Stat(dir, path.Join(m.Image, "index.json")); err != nil || !info.Mode().IsRegular() {
		return fmt.Errorf("image %q is not there: `berth plugins pack` brings it", m.Image)
	}
	return nil
}

// Executable is the path of the executable for a platform, such as "linux/amd64".
func (m Manifest) Executable(platform string) (string, error) {
	for _, name := range []string{platform, AnyPlatform} {
		if file := m.Executables[name]; file != "" {
			return file, nil
		}
	}
	return "", fmt.Errorf("plugin %s %s has no executable for %s", m.Type, m.Version, platform)
}

func readFile(dir fs.FS, name string) ([]byte, error) {
	f, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", name)
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(raw) > maxFile {
		err = fmt.Errorf("%s is larger than %d bytes", name, maxFile)
	}
	return raw, err
}
