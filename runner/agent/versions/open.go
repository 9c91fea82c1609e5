package versions

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/pkg/releaselist"
	"github.com/berth-dev/berth/pkg/version"
)

// Limits of what an update may bring, far above what releases have.
const (
	maxList     = 4 << 20
	maxArchive  = 1 << 30
	maxUnpacked = 2 << 30
	maxEntries  = 100
)

// Offer is what came from the control plane: a folder with the signed list of a release
// and the archive of one platform, as bytes that nobody has looked at yet.
type Offer struct {
	Folder   string
	Version  string // that was asked for
	Platform string // linux_amd64
	// Keys are the release keys that the customer trusts, by their ids.
	Keys map[string]ed25519.PublicKey
}

// Opened is an offer that was verified.
type Opened struct {
	Version
	SignedBy string // the release key
	Archive  string // digest of the archive in the list
	Folder   string // with the executables
}

// ErrNoKey says that the customer has pinned no release key.
var ErrNoKey = errors.New("this runner trusts no release key")

// Open verifies an offer and unpacks its executables below dir, which must be missing:
// the list is signed by a trusted key and is of the version that was asked for, and the
// archive is the file of that list. Nothing of it is run.
func Open(ctx context.Context, o Offer, dir string) (Opened, error) {
	if len(o.Keys) == 0 {
		return Opened{}, ErrNoKey
	}
	raw, err := readUpTo(filepath.Join(o.Folder, releaselist.FileName), maxList)
	if err != nil {
		return Opened{}, fmt.Errorf("signed list: %w", err)
	}
	list, signer, err := releaselist.Signed(raw, o.Keys)
	if err != nil {
		return Opened{}, fmt.Errorf("signed list: %w", err)
	}
	if list.Version != o.Version {
		return Opened{}, fmt.Errorf("the signed list is of version %q, not of %q", list.Version, o.Version)
	}
	if !version.Released(list.Version) {
		return Opened{}, fmt.Errorf("version %q is none of a release, such as 1.4.0", list.Version)
	}
	name := releaselist.RunnerArchive(list.Version, o.Platform)
	listed, found := list.File(name)
	if !found {
		return Opened{}, fmt.Errorf("the release has no runner for this platform: %s is not in its list", name)
	}
	archive := filepath.Join(o.Folder, name)
	if info, err := os.Lstat(archive); err != nil || !info.Mode().IsRegular() || info.Size() != listed.Size || info.Size() > maxArchive {
		return Opened{}, fmt.Errorf("%s: %w", name, releaselist.ErrChanged)
	}
	if sum, _, err := releaselist.SumOf(archive); err != nil || sum != listed.SHA256 {
		return Opened{}, errors.Join(fmt.Errorf("%s: %w", name, releaselist.ErrChanged), err)
	}
	opened := Opened{SignedBy: signer, Archive: "sha256:" + listed.SHA256}
	opened.Version.Version = list.Version
	return opened, opened.unpack(ctx, archive, dir)
}

// unpack puts what the archive has below dir, as strictly as any artifact, and finds
// the executables.
func (o *Opened) unpack(ctx context.Context, archive, dir string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	limits := oci.Limits{MaxBytes: maxUnpacked, MaxFileBytes: maxUnpacked, MaxEntries: maxEntries}
	if err := oci.UnpackArchive(ctx, f, dir, limits); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(archive), err)
	}
	name := releaseFolder(filepath.Base(archive))
	o.Folder = filepath.Join(dir, name, "bin")
	for file, digest := range map[string]*string{RunnerName: &o.Runner, EngineName: &o.Engine, PolicyName: &o.Policy} {
		path := filepath.Join(o.Folder, file)
		if _, err := os.Lstat(path); file == PolicyName && errors.Is(err, fs.ErrNotExist) {
			continue // a version before it
		}
		if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
			return fmt.Errorf("%s has no executable %s/bin/%s", filepath.Base(archive), name, file)
		}
		if *digest, err = DigestOf(path); err != nil {
			return err
		}
	}
	return nil
}

// releaseFolder is the one folder of an archive.
func releaseFolder(archive string) string { return archive[:len(archive)-len(".tar.gz")] }

func readUpTo(path string, limit int64) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > limit {
		return nil, fmt.Errorf("%s is not a file of at most %d bytes", filepath.Base(path), limit)
	}
	return os.ReadFile(path)
}

// Wish is an update as it is asked for, and what runs now.
type Wish struct {
	To           string
	Running      string   // version of this agent
	Installed    string   // version of the package, which wins when it is newer
	ControlPlane string   // version of the control plane, as its order says
	Accepted     []string // versions that ran here
}

// Refusal says why an update may not be, "" when it may, and what can be done.
func (w Wish) Refusal() (why, remedy string) {
	back := version.Newer(w.Running, w.To)
	switch err := version.Skew(w.ControlPlane, w.To); {
	case err != nil:
		return err.Error(), "choose a version that fits the control plane: berth runners versions list"
	case version.Newer(w.Installed, w.To):
		return fmt.Sprintf("version %s is older than the package that is installed here, %s, which starts it", w.To, w.Installed),
			"ask the customer to install an older package, or choose a newer version"
	case back && !slices.Contains(w.Accepted, w.To):
		return fmt.Sprintf("version %s is older than %s, which runs, and was never accepted here", w.To, w.Running),
			"choose a newer version; an update goes back only to versions that ran on this machine"
	}
	return "", ""
}
