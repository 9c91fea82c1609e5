// Package container runs a plugin whose program is a container image. The image lies
// in the plugin's directory as an OCI layout, so it is signed, pinned, copied and
// accepted with it.
//
// Open checks the image, Image.Unpack makes its files, and Image.Command starts its
// entry point in them. The starting process re-executes itself for that (see Room), so
// every program that imports this package can be that process.
package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/pkg/plugin"
)

// limits bound what an image becomes. Programs and their libraries are less.
var limits = oci.Limits{MaxBytes: 2 << 30, MaxEntries: 200_000}

// searchPath is the PATH of an image that has none, as container runtimes have it.
const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Image is a plugin's image for one platform.
type Image struct {
	// Digest is what the plugin's layout lists: "sha256:…" of an index or a manifest.
	Digest string

	root  *os.Root
	image oci.ContainerImage
}

// Open finds the image of a plugin in dir for a platform such as "linux/amd64". Close
// has to follow. What is not verified by its digest here, Unpack verifies.
func Open(ctx context.Context, dir string, m plugin.Manifest, platform string) (Image, error) {
	root, err := os.OpenRoot(filepath.Join(dir, filepath.FromSlash(m.Image)))
	if err != nil {
		return Image{}, fmt.Errorf("image of plugin %s: %w", m.Type, err)
	}
	found, err := oci.FindImage(ctx, root, platform)
	if err == nil && len(found.Config.Entrypoint) == 0 {
		err = fmt.Errorf("image %s has no entry point, which is what Berth starts", found.Digest)
	}
	if err != nil {
		return Image{}, errors.Join(fmt.Errorf("image of plugin %s %s: %w", m.Type, m.Version, err), root.Close())
	}
	return Image{Digest: found.Digest.String(), root: root, image: found}, nil
}

// Close closes what Open opened.
func (i Image) Close() error { return i.root.Close() }

// Unpack makes the image's files in a directory that is not there yet.
func (i Image) Unpack(ctx context.Context, dir string) error {
	return i.image.Unpack(ctx, dir, limits)
}

// Command is the command `ENTRYPOINT run DIR` in a room, with an environment. The
// image's own environment counts for nothing but its PATH, which takes the place of the
// one in env.
func (i Image) Command(r Room, dir string, env []string) (*exec.Cmd, error) {
	cmd, err := r.Command(dir, append(slices.Clone(i.image.Config.Entrypoint), "run", dir)...)
	if err != nil {
		return nil, err
	}
	path := searchPath
	for _, assignment := range i.image.Config.Env {
		if value, is := strings.CutPrefix(assignment, "PATH="); is {
			path = value
		}
	}
	cmd.Env = append(slices.DeleteFunc(slices.Clone(env), func(assignment string) bool { return strings.HasPrefix(assignment, "PATH=") }), "PATH="+path)
	return cmd, nil
}
