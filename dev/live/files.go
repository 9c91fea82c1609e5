package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// fill copies the files of a pattern to dir that it does not have.
func fill(dir, pattern string) error {
	files, err := filepath.Glob(pattern)
	if err != nil {
		return err
	}
	for _, from := range files {
		to := filepath.Join(dir, filepath.Base(from))
		if _, err := os.Stat(to); err == nil {
			continue
		}
		in, err := os.Open(from)
		if err != nil {
			return err
		}
		if err := errors.Join(write(to, in, 0o755), in.Close()); err != nil {
			return err
		}
	}
	return nil
}

// unpack is `tar -C DIR -x -f -`; other flags are not looked at. Each file appears
// whole, under another inode than a running one.
func unpack(args []string, in io.Reader) error {
	dir := "."
	if i := slices.Index(args, "-C"); i >= 0 && i+1 < len(args) {
		dir = args[i+1]
	}
	for archive := tar.NewReader(in); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := filepath.Clean(strings.TrimLeft(header.Name, "/"))
		if !filepath.IsLocal(name) {
			return fmt.Errorf("%q leads out of %s", header.Name, dir)
		}
		path := filepath.Join(dir, name)
		switch header.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(path, 0o755)
		case tar.TypeReg:
			err = write(path, archive, header.FileInfo().Mode().Perm())
		default:
			err = fmt.Errorf("%q is no file and no folder", header.Name)
		}
		if err != nil {
			return err
		}
	}
}

// write makes a file in one step.
func write(path string, in io.Reader, mode os.FileMode) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	next, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(next.Name())
		}
	}()
	_, err = io.Copy(next, in)
	if err := errors.Join(err, next.Chmod(mode), next.Close()); err != nil {
		return err
	}
	return os.Rename(next.Name(), path)
}

// remove is `rm -rf FILE...`.
func remove(args []string) (err error) {
	for _, arg := range args {
		if !strings.HasPrefix(arg, "-") {
			err = errors.Join(err, os.RemoveAll(arg))
		}
	}
	return err
}
