package plugins

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/pkg/plugin"
	"github.com/berth-dev/berth/pkg/plugin/container"
)

// pack is `berth plugins pack`.
func pack(d Doors) *cobra.Command {
	return &cobra.Command{
		Use: "pack DIR IMAGE", Short: "Bring a container image into a plugin", Args: d.Packed,
		Long: `Copies a container image, all of its platforms, into the directory that "image" of
DIR/plugin.json names, in place of the one that is there. IMAGE is a directory with an OCI
layout, as "docker buildx build --output type=oci,tar=false,dest=OUT" writes it, or a name in
a registry that is read without credentials: HOST/NAME@sha256:..., or HOST/NAME:TAG, which is
resolved now and never again. Prints the image's digest. Sign the plugin after that: the
signature covers the image.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			to, err := imageOf(args[0])
			if err != nil {
				return err
			}
			dgst, err := bring(cmd.Context(), args[1], to)
			if err != nil {
				return err
			}
			platforms, err := platformsOf(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			output.Printf(d.Err, "the image is in %s, for %s; sign the plugin now\n", to, strings.Join(platforms, " and "))
			_, err = output.Println(d.Out, dgst)
			return err
		},
	}
}

// imageOf is the directory of a plugin's image, which need not be there yet.
func imageOf(dir string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(dir, plugin.ManifestFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", usage.Errorf("there is no %s in %s, so it is no plugin", plugin.ManifestFile, dir)
	}
	if err != nil {
		return "", err
	}
	var m struct {
		Image string `json:"image"`
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return "", fmt.Errorf("%s: %w", plugin.ManifestFile, err)
	}
	if m.Image == "" || m.Image == "." || !fs.ValidPath(m.Image) {
		return "", usage.Errorf(`%s names no directory for the image: write "image": "image" in place of "executables"`, plugin.ManifestFile)
	}
	return filepath.Join(dir, filepath.FromSlash(m.Image)), nil
}

// bring copies an image into a directory, in place of what is there.
func bring(ctx context.Context, image, to string) (digest.Digest, error) {
	from := image
	var dgst digest.Digest
	if info, err := os.Stat(image); err != nil || !info.IsDir() {
		at, err := os.MkdirTemp("", "berth-pack-")
		if err != nil {
			return "", err
		}
		defer func() { _ = os.RemoveAll(at) }()
		if dgst, err = pull(ctx, image, at); err != nil {
			return "", err
		}
		from = at
	}
	root, err := os.OpenRoot(from)
	if err != nil {
		return "", err
	}
	defer root.Close()
	if dgst == "" {
		listed, err := oci.Listed(root)
		if err != nil {
			return "", fmt.Errorf("%s is no OCI layout: %w", image, err)
		}
		if len(listed) != 1 {
			return "", fmt.Errorf("%s lists %d images, it has to be one", image, len(listed))
		}
		dgst = listed[0]
	}
	fresh := to + ".new"
	if err := os.RemoveAll(fresh); err != nil { // of one that was cut short
		return "", err
	}
	if err := oci.CopyImage(ctx, root, dgst, fresh); err != nil {
		return "", fmt.Errorf("%s: %w", image, err)
	}
	return dgst, errors.Join(os.RemoveAll(to), os.Rename(fresh, to))
}

// pull brings an image of a registry into a layout.
func pull(ctx context.Context, image, to string) (digest.Digest, error) {
	name, is, byDigest := strings.Cut(image, "@")
	tag := ""
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		name, tag = name[:i], name[i+1:]
	}
	remote, err := oci.ImageRemote(name)
	dgst := digest.Digest(is)
	switch {
	case err != nil, !byDigest && tag == "", byDigest && dgst.Validate() != nil:
		return "", usage.Errorf("%s is neither a directory with an OCI layout nor the name of an image: HOST/NAME@sha256:… or HOST/NAME:TAG", image)
	case !byDigest:
		if dgst, err = oci.ResolveTag(ctx, remote, tag); err != nil {
			return "", denied(image, err)
		}
	}
	layout, err := oci.Open(to)
	if err != nil {
		return "", err
	}
	return dgst, denied(image, remote.Pull(ctx, dgst, layout, oci.TransferOptions{}))
}

func denied(image string, err error) error {
	if err != nil && oci.Denied(err) {
		return fmt.Errorf("%s: the registry gives it to nobody without credentials: copy it to an OCI layout with a tool that has them, and pack that: %w", image, err)
	}
	return err
}

// platformsOf lists those for which runners can run the plugin, at least one.
func platformsOf(ctx context.Context, dir string) ([]string, error) {
	m, err := plugin.ReadManifest(os.DirFS(dir))
	if err != nil {
		return nil, err
	}
	var found []string
	var errs []error
	for _, platform := range []string{"linux/amd64", "linux/arm64"} {
		image, err := container.Open(ctx, dir, m, platform)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		found = append(found, platform)
		_ = image.Close() // read only
	}
	if len(found) == 0 {
		return nil, errors.Join(errs...)
	}
	return found, nil
}
