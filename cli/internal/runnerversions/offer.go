// Package runnerversions offers versions of the runner to installs: it pushes a
// runner's archive with the signed list of its release to the org's registry.
package runnerversions

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/pkg/releaselist"
)

// kind of the artifacts that hold a list and an archive.
const kind oci.Kind = "runner_release"

// Files are what is offered.
type Files struct {
	Archive string // berth-runner_VERSION_OS_ARCH.tar.gz
	List    string // release.json; "" for the one next to the archive
	Key     string // file of the release's public key; "" checks no signature, which runners do
}

// offered is an archive that fits its list.
type offered struct {
	raw      []byte // the list as it was signed
	platform string
}

// read compares the archive with the list.
func (f Files) read() (o offered, err error) {
	if f.List == "" {
		f.List = filepath.Join(filepath.Dir(f.Archive), releaselist.FileName)
	}
	if o.raw, err = os.ReadFile(f.List); err != nil {
		return o, usage.Errorf("the signed list of the release cannot be read: %v; name it with --list", err)
	}
	list, _, err := releaselist.Claimed(o.raw)
	if err == nil && f.Key != "" {
		list, err = verify(o.raw, f.Key)
	}
	if err != nil {
		return o, fmt.Errorf("%s: %w", f.List, err)
	}
	name := filepath.Base(f.Archive)
	rest, isRunner := strings.CutPrefix(strings.TrimSuffix(name, ".tar.gz"), "berth-runner_"+list.Version+"_")
	listed, found := list.File(name)
	if !found || !isRunner {
		return o, usage.Errorf("%s is no runner's archive of that release: there is berth-runner_%s_OS_ARCH.tar.gz for each platform", name, list.Version)
	}
	sum, size, err := releaselist.SumOf(f.Archive)
	if err == nil && (sum != listed.SHA256 || size != listed.Size) {
		err = fmt.Errorf("%s: %w", name, releaselist.ErrChanged)
	}
	o.platform = rest
	return o, err
}

func verify(raw []byte, keyFile string) (releaselist.List, error) {
	text, err := os.ReadFile(keyFile)
	if err != nil {
		return releaselist.List{}, err
	}
	key, err := capsule.ParsePublicKey(string(text))
	if err != nil {
		return releaselist.List{}, fmt.Errorf("%s: %w", keyFile, err)
	}
	return releaselist.Verify(raw, map[string]ed25519.PublicKey{capsule.KeyID(key): key})
}

// Offer pushes the files and offers the version.
func Offer(ctx context.Context, client *api.Client, f Files) (*ctlapi.RunnerVersion, error) {
	o, err := f.read()
	if err != nil {
		return nil, err
	}
	resp, err := client.CreateRunnerVersionUploadWithResponse(ctx, &ctlapi.CreateRunnerVersionUploadParams{})
	if err != nil {
		return nil, err
	}
	token, err := api.Body(resp.JSON201)
	if err != nil {
		return nil, err
	}
	digest, size, err := f.push(ctx, o.raw, *token)
	if err != nil {
		return nil, err
	}
	added, err := client.AddRunnerVersionWithResponse(ctx, &ctlapi.AddRunnerVersionParams{},
		ctlapi.RunnerVersionRequest{Platform: o.platform, Digest: digest, SizeBytes: size, List: string(o.raw)})
	if err != nil {
		return nil, err
	}
	return api.Body(added.JSON201)
}

// push packs list and archive as one artifact and pushes it.
func (f Files) push(ctx context.Context, list []byte, to ctlapi.RegistryToken) (digest string, size int64, err error) {
	tmp, err := os.MkdirTemp("", "berth-runner-version-")
	if err != nil {
		return "", 0, err
	}
	defer os.RemoveAll(tmp)
	folder := filepath.Join(tmp, "files")
	err = errors.Join(os.Mkdir(folder, 0o700), os.WriteFile(filepath.Join(folder, releaselist.FileName), list, 0o600), copyFile(f.Archive, filepath.Join(folder, filepath.Base(f.Archive))))
	if err != nil {
		return "", 0, err
	}
	layout, err := oci.Open(filepath.Join(tmp, "layout"))
	if err != nil {
		return "", 0, err
	}
	packed, err := oci.Pack(ctx, layout, oci.PackInput{Kind: kind, Dir: folder, TempDir: tmp})
	if err != nil {
		return "", 0, err
	}
	artifact, err := oci.Inspect(ctx, layout, packed.Digest)
	if err != nil {
		return "", 0, err
	}
	remote := oci.Remote{
		Registry: to.Host, Repository: to.Repositories, PlainHTTP: to.PlainHTTP, Client: http.DefaultClient,
		Token: func(context.Context) (string, error) { return to.Secret, nil },
	}
	_, err = remote.Push(ctx, layout, packed.Digest.String(), oci.TransferOptions{})
	return packed.Digest.String(), artifact.Size, err
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, source)
	return errors.Join(err, out.Close())
}
