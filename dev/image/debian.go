package image

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// A Package is a Debian package that an image is made of.
type Package struct {
	Name, Version, Arch string
}

// left out of an image: what nobody reads in a container, and caches. The
// licenses of packages, usr/share/doc/NAME/copyright, stay.
var withoutPrefixes = []string{
	"usr/share/man/", "usr/share/locale/", "usr/share/info/", "usr/share/lintian/", "usr/share/bug/",
	"usr/share/doc-base/", "usr/share/bash-completion/", "usr/lib/systemd/", "lib/systemd/", "var/cache/",
	"var/lib/dpkg/", "var/backups/", "etc/cron", "etc/logrotate.d/", "etc/update-motd.d/", "home/", "root/", "boot/", "media/", "mnt/",
}

// wanted says whether a path of a package goes into an image.
func wanted(at string) bool {
	for _, prefix := range withoutPrefixes {
		if strings.HasPrefix(at+"/", prefix) {
			return false
		}
	}
	// Packages of one source share a folder, by links.
	if inDoc, ok := strings.CutPrefix(at, "usr/share/doc/"); ok {
		return strings.HasSuffix(inDoc, "/copyright") || !strings.Contains(inDoc, "/")
	}
	return true
}

// Debian unpacks all packages of a folder, which are the whole of what they
// need. No script of a package is run: the caller adds what theirs would make.
// It needs dpkg-deb.
func Debian(ctx context.Context, dir string) (Tree, []Package, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.deb")) // sorted
	if err != nil {
		return nil, nil, err
	}
	if len(files) == 0 {
		return nil, nil, fmt.Errorf("there are no packages in %s", dir)
	}
	tree := Tree{}
	var packages []Package
	for _, file := range files {
		pkg, control, err := describe(ctx, file)
		if err != nil {
			return nil, nil, err
		}
		if err := unpackDeb(ctx, tree, file); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", filepath.Base(file), err)
		}
		// Scanners look here for what is installed when there is no dpkg.
		tree.File("var/lib/dpkg/status.d/"+pkg.Name, control)
		packages = append(packages, pkg)
	}
	return tree, packages, nil
}

func unpackDeb(ctx context.Context, tree Tree, file string) error {
	cmd := exec.CommandContext(ctx, "dpkg-deb", "--fsys-tarfile", file)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	err = tree.Unpack(out, wanted)
	if err != nil { // it writes to nobody now
		_ = cmd.Process.Kill()
	}
	if ended := cmd.Wait(); err == nil && ended != nil {
		err = fmt.Errorf("dpkg-deb: %w: %s", ended, strings.TrimSpace(stderr.String()))
	}
	return err
}

// describe reads a package's control file.
func describe(ctx context.Context, file string) (Package, []byte, error) {
	control, err := exec.CommandContext(ctx, "dpkg-deb", "--field", file).Output()
	if err != nil {
		return Package{}, nil, fmt.Errorf("%s: dpkg-deb: %w", filepath.Base(file), err)
	}
	var p Package
	for line := range strings.Lines(string(control)) {
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch field {
		case "Package":
			p.Name = value
		case "Version":
			p.Version = value
		case "Architecture":
			p.Arch = value
		}
	}
	if p.Name == "" || p.Version == "" || p.Arch == "" {
		return Package{}, nil, errors.New(filepath.Base(file) + ": its control file lacks name, version or architecture")
	}
	return p, control, nil
}
