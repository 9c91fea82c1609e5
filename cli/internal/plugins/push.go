package plugins

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/spf13/cobra"
	"oras.land/oras-go/v2/registry/remote/credentials"

	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/registry"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/pkg/plugin"
)

// kind is what a plugin is in a registry.
const kind oci.Kind = "plugin"

// limits of a plugin, those of the builder that fetches it.
var limits = oci.Limits{MaxBytes: 512 << 20, MaxEntries: 20_000}

var tagForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)

// pushed is what an app needs to use a plugin of a registry.
type pushed struct {
	Digest    string `json:"digest"`
	OCISource string `json:"oci_source"`
	Signer    string `json:"signer"`
	Type      string `json:"type"`
	Version   string `json:"version"`
	Component string `json:"component"`
}

// push is `berth plugins push`.
func push(d Doors) *cobra.Command {
	var key, signer, config string
	var force bool
	cmd := &cobra.Command{
		Use: "push DIR REGISTRY/REPOSITORY:TAG", Short: "Sign a plugin and push it to a registry", Args: d.Pushed,
		Long: `Signs the plugin in DIR with --key, as berth plugins sign does, packs it as an OCI artifact
and pushes it. One that is signed already, on another machine, is pushed with --signer, its
public key. What is pushed is unpacked and verified first, as a builder does it. A tag that
names something else is left alone; --force moves it. Apps that fetched the tag before keep
what they pinned until they are synced again.

Prints what a component needs to use the plugin. The credentials are those of Docker's
configuration, where docker, oras and berth registry login keep them.`,
		Example: `berth plugins push plugins/greeting registry.example.com/plugins/greeting:1.1.0 --key ~/keys/plugins.pem
berth plugins push plugins/greeting registry.example.com/plugins/greeting:1.1.0 --signer VdRIj9GdgUSDOigCGwdzn6osrrnmadROj89Lurap2aY=`,
		RunE: func(cmd *cobra.Command, args []string) error {
			format, err := d.Format()
			if err != nil {
				return err
			}
			if (key == "") == (signer == "") {
				return usage.Errorf("berth plugins push needs --key, the file of your signing key, or --signer, the public key of a plugin that is signed already")
			}
			to, tag, err := target(args[1])
			if err != nil {
				return err
			}
			if err := isPlugin(args[0]); err != nil {
				return err
			}
			stored, err := registry.Stored(config, d.Getenv)
			if err != nil {
				return err
			}
			to.Login = func(ctx context.Context) (oci.Login, error) {
				l, err := stored.Get(ctx, credentials.ServerAddressFromRegistry(to.Registry))
				return oci.Login{Username: l.Username, Password: l.Password, AccessToken: l.AccessToken, IdentityToken: l.RefreshToken}, err
			}
			if key != "" {
				if signer, err = signWith(d, args[0], key); err != nil {
					return err
				}
			}
			made, err := upload(cmd.Context(), uploading{dir: args[0], signer: signer, to: to, tag: tag, force: force})
			if err != nil {
				return err
			}
			if format.Format != output.Table {
				return output.One(d.Out, format, made, output.View[pushed]{
					Name: func(p pushed) string { return p.Digest },
					Columns: []output.Column[pushed]{
						{Head: "OCI_SOURCE", Cell: func(p pushed) string { return p.OCISource }},
						{Head: "DIGEST", Cell: func(p pushed) string { return p.Digest }},
						{Head: "SIGNER", Cell: func(p pushed) string { return p.Signer }},
					},
				})
			}
			output.Printf(d.Err, "pushed %s %s as %s; put this into a component of the app:\n\n", made.Type, made.Version, made.Digest)
			_, err = output.Printf(d.Out, "%s", made.Component)
			return err
		},
	}
	cmd.Flags().StringVar(&key, "key", "", "file of the signing key, made if it is not there")
	cmd.Flags().StringVar(&signer, "signer", "", "public key of a plugin that is signed already")
	cmd.Flags().StringVar(&config, "config", "", "file of Docker's configuration (default: config.json in DOCKER_CONFIG or ~/.docker)")
	cmd.Flags().BoolVar(&force, "force", false, "move a tag that names something else")
	return cmd
}

// target reads REGISTRY/REPOSITORY:TAG, with or without oci:// in front.
func target(text string) (to oci.Remote, tag string, err error) {
	name := strings.TrimPrefix(text, "oci://")
	i := strings.LastIndexByte(name, ':')
	if i < 0 || i < strings.LastIndexByte(name, '/') || strings.Contains(name, "@") || !tagForm.MatchString(name[i+1:]) {
		return to, "", usage.Errorf("%s does not name a tag: write REGISTRY/REPOSITORY:TAG", text)
	}
	if to, err = oci.ImageRemote(name[:i]); err != nil {
		return to, "", usage.Errorf("%s does not name a repository: write REGISTRY/REPOSITORY:TAG", text)
	}
	return to, name[i+1:], nil
}

type uploading struct {
	dir, signer string
	to          oci.Remote
	tag         string
	force       bool
}

// upload packs, verifies and pushes. Pushing the same files again changes nothing.
func upload(ctx context.Context, u uploading) (pushed, error) {
	temp, err := os.MkdirTemp("", "berth-push-")
	if err != nil {
		return pushed{}, err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	layout, err := oci.Open(filepath.Join(temp, "layout"))
	if err != nil {
		return pushed{}, err
	}
	desc, err := oci.Pack(ctx, layout, oci.PackInput{Kind: kind, Dir: u.dir, TempDir: temp})
	if err != nil {
		return pushed{}, err
	}
	unpacked := filepath.Join(temp, "unpacked")
	if err := layout.Unpack(ctx, desc.Digest, unpacked, limits); err != nil {
		return pushed{}, err
	}
	signed, err := plugin.Verify(u.signer, os.DirFS(unpacked))
	if err != nil {
		return pushed{}, fmt.Errorf("%w (a .git directory is not packed: keep it out of the plugin's)", err)
	}
	m, err := plugin.ReadManifest(os.DirFS(unpacked))
	if err != nil {
		return pushed{}, err
	}
	if err := free(ctx, u, desc.Digest); err != nil {
		return pushed{}, err
	}
	if _, err := u.to.Push(ctx, layout, desc.Digest.String(), oci.TransferOptions{}); err != nil {
		return pushed{}, refusedBy(u.to, err)
	}
	if err := oci.Tag(ctx, u.to, desc.Digest, u.tag); err != nil {
		return pushed{}, refusedBy(u.to, err)
	}
	made := pushed{
		Digest: desc.Digest.String(), OCISource: "oci://" + u.to.String() + ":" + u.tag, Signer: u.signer, Type: signed.Type, Version: signed.Version,
	}
	made.Component = component(made, m.Permissions)
	return made, nil
}

// free says what keeps a tag from being given: it names something else.
func free(ctx context.Context, u uploading, dgst digest.Digest) error {
	is, err := oci.ResolveTag(ctx, u.to, u.tag)
	switch {
	case errors.Is(err, oci.ErrNotFound), err == nil && (is == dgst || u.force):
		return nil
	case err != nil:
		return refusedBy(u.to, err)
	}
	return fmt.Errorf("%s:%s is %s already, and this plugin is %s: raise its version and push it under another tag, or move the tag with --force", u.to, u.tag, is, dgst)
}

func refusedBy(to oci.Remote, err error) error {
	if oci.Denied(err) {
		return fmt.Errorf("%s refuses these credentials, or there are none: log in with `docker login %[1]s`, `oras login %[1]s` or `berth registry login`: %[2]w", to.Registry, err)
	}
	return err
}

// component is the TOML of a component that uses the plugin, with the permissions that it
// cannot work without.
func component(p pushed, permissions plugin.Permissions) string {
	var b strings.Builder
	fmt.Fprintf(&b, "type = %q\n\n[berth]\noci_source = %q\n\n[berth.plugin]\nsigner = %q\n", p.Type, p.OCISource, p.Signer)
	lists := map[string][]string{}
	for _, wish := range permissions.Without(plugin.Permissions{}) {
		if wish.Item == "" {
			fmt.Fprintln(&b, wish.Remedy())
			continue
		}
		lists[wish.Key] = append(lists[wish.Key], strconv.Quote(wish.Item))
	}
	for _, key := range slices.Sorted(maps.Keys(lists)) {
		fmt.Fprintf(&b, "%s = [%s]\n", key, strings.Join(lists[key], ", "))
	}
	return b.String()
}
