package providers

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// noWait keeps an open from waiting for the other end of a pipe.
const noWait = syscall.O_NONBLOCK

// hashOf is the hash "h1:" of lock files, in hex: the SHA-256 of a list of the files'
// SHA-256 and names, sorted by name (golang.org/x/mod/sumdb/dirhash, Hash1).
func hashOf(dir string) (string, error) {
	files, err := filesOf(dir)
	if err != nil {
		return "", err
	}
	slices.Sort(files)
	list := sha256.New()
	for _, name := range files {
		if strings.Contains(name, "\n") {
			return "", fmt.Errorf("%q is no name of a file", name)
		}
		sum := sha256.New()
		if err := read(filepath.Join(dir, name), sum); err != nil {
			return "", err
		}
		fmt.Fprintf(list, "%x  %s\n", sum.Sum(nil), filepath.ToSlash(name))
	}
	return hex.EncodeToString(list.Sum(nil)), nil
}

func read(path string, to io.Writer) error {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	_, err = io.Copy(to, f)
	return err
}

// filesOf lists the files below a directory, which has nothing else.
func filesOf(dir string) (files []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if !d.Type().IsRegular() {
			return fmt.Errorf("%s is no file", path)
		}
		name, err := filepath.Rel(dir, path)
		files = append(files, name)
		return err
	})
	return files, err
}

// stampOf changes with each change of a file: its change time is the kernel's.
func stampOf(dir string) (string, error) {
	files, err := filesOf(dir)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, name := range files {
		info, err := os.Lstat(filepath.Join(dir, name))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&text, "%s %d %s %s\n", name, info.Size(), info.Mode(), changed(info))
	}
	return text.String(), nil
}

// size is how many bytes the files below a directory have.
func size(dir string) (total int64, err error) {
	files, err := filesOf(dir)
	if err != nil {
		return 0, err
	}
	for _, name := range files {
		info, err := os.Lstat(filepath.Join(dir, name))
		if err != nil {
			return 0, err
		}
		total += info.Size()
	}
	return total, nil
}
