package main

import (
	"bytes"
	"compress/gzip"
	"crypto/ed25519"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/dev/image"
	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/releaselist"
)

// installer is the script that people install with. The release's public key is
// put in the place of keyMark.
//
//go:embed install.sh
var installer string

const keyMark = "@PUBLIC_KEY@"

// fromTree is what an archive has besides executables, the license first.
var fromTree = []string{"LICENSE", "CHANGELOG.md", "examples/hello"}

// options are what a release is made of.
type options struct {
	executables, tree, images string
	terms                     func(executables []string) ([]byte, error) // of what they link
	version, commit           string
	created                   time.Time
	key                       ed25519.PrivateKey
	out                       string
}

func (o options) make() error {
	if strings.Trim(o.version, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.+-") != "" {
		return fmt.Errorf("version %q: only letters, digits and . + - can be in the names of files", o.version)
	}
	if err := os.RemoveAll(o.out); err != nil {
		return err
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	platforms, err := os.ReadDir(o.executables)
	if err != nil {
		return err
	}
	for _, platform := range platforms {
		if err := o.archives(platform.Name()); err != nil {
			return fmt.Errorf("%s: %w", platform.Name(), err)
		}
	}
	public := o.key.Public().(ed25519.PublicKey)
	pem, err := capsule.MarshalPublicKey(public)
	if err != nil {
		return err
	}
	script := strings.Replace(installer, keyMark, strings.TrimSpace(string(pem)), 1)
	if err := o.write("install.sh", []byte(script), 0o755); err != nil {
		return err
	}
	return o.sign(public)
}

// ofRunners are the executables that a runner needs.
var ofRunners = []string{"berth-runner", "berth-engine", "berth-policy"}

// archives packs the executables of a platform: all of them, and those of a runner
// alone, which updates of runners bring.
func (o options) archives(platform string) error {
	executables, err := os.ReadDir(filepath.Join(o.executables, platform))
	if err != nil {
		return err
	}
	var all, ofRunner []string
	for _, e := range executables {
		file := filepath.Join(o.executables, platform, e.Name())
		all = append(all, file)
		if slices.Contains(ofRunners, e.Name()) {
			ofRunner = append(ofRunner, file)
		}
	}
	if err := o.archive("berth_"+o.version+"_"+platform+".tar.gz", all, fromTree); err != nil {
		return err
	}
	if len(ofRunner) != len(ofRunners) {
		return fmt.Errorf("a runner needs %s", strings.Join(ofRunners, " and "))
	}
	return o.archive(releaselist.RunnerArchive(o.version, platform), ofRunner, fromTree[:1])
}

// archive packs executables and what goes with them, in one folder with the archive's
// name.
func (o options) archive(file string, files, with []string) error {
	name := strings.TrimSuffix(file, ".tar.gz")
	tree := image.Tree{}
	for _, f := range files {
		tree.Executable(path.Join(name, "bin", filepath.Base(f)), f)
	}
	terms, err := o.terms(files)
	if err != nil {
		return err
	}
	tree.File(path.Join(name, image.LicensesFile), terms)
	for _, from := range with {
		if err := o.addTree(tree, name, from); err != nil {
			return err
		}
	}
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	if err := errors.Join(tree.Write(zipped, o.created), zipped.Close()); err != nil {
		return err
	}
	return o.write(file, packed.Bytes(), 0o644)
}

// addTree adds a file or folder of the source tree.
func (o options) addTree(tree image.Tree, below, from string) error {
	return filepath.WalkDir(filepath.Join(o.tree, from), func(at string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		inTree, err := filepath.Rel(o.tree, at)
		if err != nil {
			return err
		}
		to := path.Join(below, filepath.ToSlash(inTree))
		if info.Mode()&0o111 != 0 {
			tree.Executable(to, at)
			return nil
		}
		data, err := os.ReadFile(at)
		tree.File(to, data)
		return err
	})
}

// sign writes the list of all files that are there and of the images, and the
// checksums for those who have other tools.
func (o options) sign(public ed25519.PublicKey) error {
	list := releaselist.List{Version: o.version, Commit: o.commit, Created: o.created.Format(time.RFC3339)}
	files, err := os.ReadDir(o.out) // sorted
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, file := range files {
		sum, size, err := releaselist.SumOf(filepath.Join(o.out, file.Name()))
		if err != nil {
			return err
		}
		list.Files = append(list.Files, releaselist.File{Name: file.Name(), SHA256: sum, Size: size})
		fmt.Fprintf(&sums, "%s  %s\n", sum, file.Name())
	}
	if o.images != "" {
		text, err := os.ReadFile(o.images)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(text)) {
			name, digest, _ := strings.Cut(strings.TrimSpace(line), " ")
			list.Images = append(list.Images, releaselist.Image{Name: name, Digest: digest})
		}
		slices.SortFunc(list.Images, func(a, b releaselist.Image) int { return strings.Compare(a.Name, b.Name) })
	}
	envelope, err := capsule.Sign(o.key, capsule.KeyID(public), releaselist.PayloadType, list)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(envelope) // on one line: the install script reads it
	if err != nil {
		return err
	}
	return errors.Join(o.write("SHA256SUMS", []byte(sums.String()), 0o644), o.write(releaselist.FileName, append(raw, '\n'), 0o644))
}

func (o options) write(name string, data []byte, mode os.FileMode) error {
	return os.WriteFile(filepath.Join(o.out, name), data, mode)
}
