package main

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"

	"github.com/berth-dev/berth/dev/image"
)

// anyUID is a user that no image knows: clusters give pods such.
const anyUID = 12345

// shells are the programs that give somebody in the container a command line.
var shells = []string{"sh", "bash", "dash", "zsh", "ash", "busybox", "fish", "ksh", "csh", "tcsh"}

// packagesDir has a file for each Debian package of an image.
const packagesDir = "var/lib/dpkg/status.d/"

// checkAll looks into the layouts DIR/NAME, and as root runs what is in them as
// a user that they do not know. With an emulator of arm64 it runs those images,
// too.
func checkAll(ctx context.Context, dir string, chosen []recipe, emulator string) error {
	runs := map[string]string{}
	if os.Geteuid() == 0 {
		runs[runtime.GOARCH] = ""
		if emulator != "" {
			runs["arm64"] = emulator
		}
	} else {
		fmt.Fprintln(os.Stderr, "images: NOT RUN as another user: that needs root")
	}
	var errs []error
	for _, r := range chosen {
		if err := checkOne(ctx, filepath.Join(dir, r.Name), r, runs); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", r.Name, err))
		}
	}
	return errors.Join(errs...)
}

// A checker looks into the images of one recipe.
type checker struct {
	store  content.ReadOnlyGraphStorage
	recipe recipe
	// runs has the architectures that can run here, each with the emulator that
	// does it, or "".
	runs map[string]string
}

func checkOne(ctx context.Context, layout string, r recipe, runs map[string]string) error {
	store, index, err := image.Open(ctx, layout)
	if err != nil {
		return err
	}
	images, err := image.Images(ctx, store, index)
	if err != nil {
		return err
	}
	c := checker{store: store, recipe: r, runs: runs}
	for _, one := range images {
		if err := errors.Join(c.about(ctx, one), c.image(ctx, one)); err != nil {
			return fmt.Errorf("%s: %w", one.Platform.Architecture, err)
		}
	}
	if !slices.ContainsFunc(images, func(d ocispec.Descriptor) bool { _, can := runs[d.Platform.Architecture]; return can }) {
		fmt.Fprintf(os.Stderr, "images: %s NOT RUN: it has no image for this machine\n", r.Name)
	}
	return nil
}

// image looks into the image for one architecture, and runs it where that is
// this machine's.
func (c checker) image(ctx context.Context, one ocispec.Descriptor) (err error) {
	dir, err := os.MkdirTemp("", "berth-image-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()

	var headers []tar.Header
	if err := image.Contents(ctx, c.store, one, func(h *tar.Header, data io.Reader) error {
		headers = append(headers, *h)
		return unpack(root, h, data)
	}); err != nil {
		return err
	}
	if err := errors.Join(problems(c.recipe, headers)...); err != nil {
		return err
	}
	ran := ""
	if emulator, can := c.runs[one.Platform.Architecture]; can {
		if err := runAll(ctx, dir, c.recipe, emulator); err != nil {
			return err
		}
		ran = fmt.Sprintf(", runs as user %d", anyUID)
		if emulator != "" {
			ran += " under " + filepath.Base(emulator)
		}
	}
	fmt.Printf("%s %s: %d files and directories%s%s\n", c.recipe.Name, one.Platform.Architecture, len(headers), shellsIn(headers), ran)
	return nil
}

// expected are the files that an image must have: what its recipe names, and the
// license of each package.
func expected(r recipe, headers []tar.Header) map[string]bool {
	want := map[string]bool{"etc/ssl/certs/ca-certificates.crt": true, docDir + "/LICENSE": true, docDir + "/" + image.LicensesFile: true}
	for _, name := range r.Executables {
		want[binDir+"/"+name] = true
	}
	links := map[string]string{}
	for _, h := range headers {
		if h.Typeflag == tar.TypeSymlink {
			links[h.Name] = path.Join(path.Dir(h.Name), h.Linkname)
		}
	}
	for _, h := range headers {
		if dir, pkg := path.Split(h.Name); dir == packagesDir {
			doc := path.Join("usr/share/doc", pkg)
			want[path.Join(cmp.Or(links[doc], doc), "copyright")] = true
		}
	}
	return want
}

// problems says what an image holds that it should not, and the other way
// round. An image without packages has exactly what its recipe names.
func problems(r recipe, headers []tar.Header) (found []error) {
	want := expected(r, headers)
	for _, h := range headers {
		mode := h.FileInfo().Mode()
		switch {
		case mode&(os.ModeSetuid|os.ModeSetgid) != 0:
			found = append(found, fmt.Errorf("%s has setuid or setgid", h.Name))
		case h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Gname != "":
			found = append(found, fmt.Errorf("%s belongs to %d:%d", h.Name, h.Uid, h.Gid))
		case h.Typeflag != tar.TypeSymlink && mode.Perm()&0o022 != 0 && (h.Typeflag != tar.TypeDir || mode&os.ModeSticky == 0):
			found = append(found, fmt.Errorf("%s can be written by everybody", h.Name))
		case h.Name == "tmp" && mode&os.ModeSticky == 0:
			found = append(found, errors.New("tmp cannot be written by everybody"))
		case h.Typeflag == tar.TypeDir:
		case want[h.Name]:
			delete(want, h.Name)
		case !r.Packages:
			found = append(found, fmt.Errorf("%s is not expected", h.Name))
		case path.Base(h.Name) == "terraform":
			found = append(found, fmt.Errorf("%s: its license forbids shipping it", h.Name))
		}
	}
	for name := range want {
		found = append(found, fmt.Errorf("%s is missing", name))
	}
	return found
}

// shellsIn says which shells there are, for the report.
func shellsIn(headers []tar.Header) string {
	var found []string
	for _, h := range headers {
		dir, name := path.Split(h.Name)
		if (strings.HasSuffix(dir, "bin/")) && slices.Contains(shells, name) {
			found = append(found, h.Name)
		}
	}
	if found == nil {
		return ", no shell"
	}
	return ", shells for scripts: " + strings.Join(found, " ")
}

// unpack writes one file of an image into a folder that is thrown away, and
// nowhere else, whatever names and links say.
func unpack(root *os.Root, h *tar.Header, data io.Reader) error {
	mode := h.FileInfo().Mode()
	switch h.Typeflag {
	case tar.TypeDir:
		return errors.Join(root.MkdirAll(h.Name, 0o755), root.Chmod(h.Name, mode))
	case tar.TypeSymlink:
		_ = root.Remove(h.Name) // of a lower layer
		return root.Symlink(h.Linkname, h.Name)
	}
	file, err := root.OpenFile(h.Name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, data)
	return errors.Join(err, file.Chmod(mode), file.Close()) // whatever the umask
}

// runAll runs every executable of an image in it, as a user that it does not
// know, with no home and nothing that it may write to. An emulator is put into
// it for that; what a program starts itself is not emulated, so scripts are not
// tried.
func runAll(ctx context.Context, root string, r recipe, emulator string) error {
	if err := os.Chmod(root, 0o755); err != nil { // a temporary folder is its owner's alone
		return err
	}
	commands := [][]string{}
	for _, name := range r.Executables {
		commands = append(commands, append([]string{"/" + binDir + "/" + name}, versionOf(name)...))
	}
	switch {
	case r.Packages && emulator != "":
		for _, program := range []string{"/bin/bash", "/usr/bin/curl", "/usr/bin/jq"} {
			commands = append(commands, []string{program, "--version"})
		}
	case r.Packages:
		commands = append(commands, []string{"/bin/bash", "-euc", `
			for program in curl jq grep sed awk tar gzip ls sh; do type "$program"; done
			curl --version
			echo text >/tmp/file
			test "$(echo '{"a":[1,2]}' | jq -c .a | sed 's/1/3/' | awk '{print $1}')" = '[3,2]'
			tar -C / -czf - etc/passwd | gzip -dc | grep -q nonroot`})
	}
	if emulator != "" {
		program, err := os.ReadFile(emulator)
		if err != nil {
			return err
		}
		if err := errors.Join(os.WriteFile(filepath.Join(root, "emulator"), program, 0o700), os.Chmod(filepath.Join(root, "emulator"), 0o755)); err != nil {
			return err
		}
		for i := range commands {
			commands[i] = append([]string{"/emulator"}, commands[i]...)
		}
	}
	for _, command := range commands {
		cmd := exec.CommandContext(ctx, command[0], command[1:]...)
		cmd.Env, cmd.Dir = []string{image.SearchPath}, "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: anyUID, Gid: anyUID}}
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s as user %d: %w: %s", strings.Join(command[:min(2, len(command))], " "), anyUID, err, out)
		}
	}
	return nil
}

func versionOf(name string) []string {
	switch name {
	case "kubectl":
		return []string{"version", "--client"}
	case "buildctl":
		return []string{"--version"}
	}
	return []string{"version"}
}
