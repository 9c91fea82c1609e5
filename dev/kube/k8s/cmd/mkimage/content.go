package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// searchPath is the PATH in an image: the usual one, and / for images that
// consist of one executable.
const searchPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/"

// A content is what an image is made of.
type content struct {
	Base  string // tar file of a root file system, or empty
	Files []file // laid over it
	Entry string // what it runs; empty: the first of Files
	Args  []string
	User  string
	Arch  string
}

// A file goes into the image.
type file struct {
	From string // on this machine: a file, or a directory with all in it
	To   string // in the image; empty: the same name in /
}

// path is where the file is in the image.
func (f file) path() string {
	if f.To == "" {
		return "/" + filepath.Base(f.From)
	}
	return path.Clean("/" + f.To)
}

// image makes an image of the OCI kind.
func (c content) image() (v1.Image, error) {
	entry := c.Entry
	if entry == "" && len(c.Files) > 0 {
		entry = c.Files[0].path()
	}
	if entry == "" {
		return nil, errors.New("nothing to run: give --entry or a file")
	}
	layers, err := c.layers()
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.ConfigFile(image, &v1.ConfigFile{
		Architecture: c.Arch,
		OS:           "linux",
		RootFS:       v1.RootFS{Type: "layers"},
		Config: v1.Config{
			Entrypoint: []string{entry}, Cmd: c.Args, User: c.User, Env: []string{searchPath}, WorkingDir: "/",
		},
	})
	if err != nil {
		return nil, err
	}
	return mutate.AppendLayers(image, layers...)
}

func (c content) layers() ([]v1.Layer, error) {
	var layers []v1.Layer
	if c.Base != "" {
		base, err := tarball.LayerFromFile(c.Base, tarball.WithMediaType(types.OCILayer))
		if err != nil {
			return nil, fmt.Errorf("base %s: %w", c.Base, err)
		}
		layers = append(layers, base)
	}
	archive, err := c.archive()
	if err != nil {
		return nil, err
	}
	reopen := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive)), nil }
	files, err := tarball.LayerFromOpener(reopen, tarball.WithMediaType(types.OCILayer))
	return append(layers, files), err
}

// archive packs the files into a tar that depends on nothing but their names,
// contents and modes. It begins with a /tmp that everybody can write to.
func (c content) archive() ([]byte, error) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777}); err != nil {
		return nil, err
	}
	for _, f := range c.Files {
		from, err := filepath.EvalSymlinks(f.From)
		if err != nil {
			return nil, err
		}
		err = filepath.WalkDir(from, func(at string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			below, err := filepath.Rel(from, at)
			if err != nil {
				return err
			}
			return add(w, at, path.Join(f.path(), filepath.ToSlash(below))[1:])
		})
		if err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return archive.Bytes(), nil
}

// add writes one file, directory or link under a name. Everybody may read
// it: the image seldom runs as the user who made it.
func add(w *tar.Writer, from, name string) error {
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: info.Size()}
	if info.Mode()&0o111 != 0 {
		header.Mode = 0o755
	}
	switch {
	case info.Mode().IsRegular():
	case info.IsDir():
		header.Typeflag, header.Name, header.Size = tar.TypeDir, name+"/", 0
	case info.Mode()&fs.ModeSymlink != 0:
		header.Typeflag, header.Size = tar.TypeSymlink, 0
		if header.Linkname, err = os.Readlink(from); err != nil {
			return err
		}
	default:
		return fmt.Errorf("%s is neither file, directory nor link", from)
	}
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	if header.Typeflag != tar.TypeReg {
		return nil
	}
	data, err := os.Open(from)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, data)
	return errors.Join(err, data.Close())
}
