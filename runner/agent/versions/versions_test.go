package versions_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/releaselist"
	"github.com/berth-dev/berth/runner/agent/versions"
)

func TestDecide(t *testing.T) {
	t.Parallel()
	current := &versions.Version{Version: "1.4.0", Runner: "sha256:r", Engine: "sha256:e"}
	trial := func(boots int) *versions.Trial {
		return &versions.Trial{Version: versions.Version{Version: "1.5.0"}, Job: "job_1", Boots: boots}
	}
	for _, tc := range []struct {
		name      string
		state     versions.State
		installed string
		want      versions.Run
	}{
		{"no update ever was", versions.State{}, "1.3.0", versions.RunInstalled},
		{"a version that was confirmed", versions.State{Current: current}, "1.3.0", versions.RunCurrent},
		{"a package of the same version", versions.State{Current: current}, "1.4.0", versions.RunCurrent},
		{"a newer package wins", versions.State{Current: current}, "1.4.1", versions.RunInstalled},
		{"a package between releases does not", versions.State{Current: current}, "c88e3489", versions.RunCurrent},
		{"a new version", versions.State{Trial: trial(0)}, "1.3.0", versions.RunTrial},
		{"a new version over a current one", versions.State{Current: current, Trial: trial(0)}, "1.3.0", versions.RunTrial},
		{"it ended once", versions.State{Current: current, Trial: trial(1)}, "1.3.0", versions.RunTrial},
		{"it ended twice", versions.State{Current: current, Trial: trial(2)}, "1.3.0", versions.GiveUp},
		{"a package that is newer than the trial", versions.State{Trial: trial(0)}, "1.6.0", versions.GiveUp},
		{"after a trial that failed", versions.State{Current: current, Failed: &versions.Failure{Job: "job_1"}}, "1.3.0", versions.RunCurrent},
		{"after a first trial that failed", versions.State{Failed: &versions.Failure{Job: "job_1"}}, "1.3.0", versions.RunInstalled},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := versions.Decide(tc.state, tc.installed)
			if got.Run != tc.want || (got.Run == versions.GiveUp) != (got.Reason != "") {
				t.Errorf("got %+v, want %s", got, tc.want)
			}
		})
	}
}

func TestWish(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		wish versions.Wish
		want string
	}{
		{"newer", versions.Wish{To: "1.4.1", Running: "1.4.0", Installed: "1.4.0", ControlPlane: "1.4.0"}, ""},
		{"the same again", versions.Wish{To: "1.4.0", Running: "1.4.0", Installed: "1.3.0", ControlPlane: "1.4.0"}, ""},
		{"a downgrade", versions.Wish{To: "1.3.9", Running: "1.4.0", Installed: "1.3.0", ControlPlane: "1.4.0"}, "never accepted here"},
		{"back to one that ran here", versions.Wish{To: "1.3.9", Running: "1.4.0", Installed: "1.3.0", ControlPlane: "1.4.0", Accepted: []string{"1.3.9"}}, ""},
		{"back before the package", versions.Wish{To: "1.3.9", Running: "1.4.0", Installed: "1.4.0", ControlPlane: "1.4.0", Accepted: []string{"1.3.9"}}, "older than the package"},
		{"ahead of the control plane", versions.Wish{To: "1.5.0", Running: "1.4.0", Installed: "1.4.0", ControlPlane: "1.4.0"}, "update the control plane first"},
		{"three behind the control plane", versions.Wish{To: "1.4.1", Running: "1.4.0", Installed: "1.4.0", ControlPlane: "1.7.0"}, "more than 2 minor versions behind"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			why, remedy := tc.wish.Refusal()
			if (why == "") != (tc.want == "") || !strings.Contains(why, tc.want) || (why == "") != (remedy == "") {
				t.Errorf("got %q (%q), want %q", why, remedy, tc.want)
			}
		})
	}
}

// release is one that a test publishes, and what it changes of it.
type release struct {
	version string
	key     ed25519.PrivateKey
	entries []tar.Header // besides the two executables
	without string       // an executable that is left out
	spoil   func(folder, archive string)
}

const platform = "linux_amd64"

// offer writes the files of a release and returns the folder.
func offer(t *testing.T, r release) string {
	t.Helper()
	folder := t.TempDir()
	name := releaselist.RunnerArchive(r.version, platform)
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zipped)
	write := func(h tar.Header, content string) {
		h.Size = int64(len(content))
		if err := archive.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	below := strings.TrimSuffix(name, ".tar.gz")
	for _, dir := range []string{below, below + "/bin"} {
		write(tar.Header{Name: dir + "/", Typeflag: tar.TypeDir, Mode: 0o755}, "")
	}
	for _, file := range []string{versions.RunnerName, versions.EngineName, versions.PolicyName} {
		if file != r.without {
			write(tar.Header{Name: below + "/bin/" + file, Typeflag: tar.TypeReg, Mode: 0o755}, file+" "+r.version)
		}
	}
	for _, h := range r.entries {
		content := ""
		if h.Typeflag == tar.TypeReg {
			content = "mine"
		}
		write(h, content)
	}
	if err := errors.Join(archive.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(packed.Bytes())
	list := releaselist.List{Version: r.version, Files: []releaselist.File{{Name: name, SHA256: hex.EncodeToString(sum[:]), Size: int64(packed.Len())}}}
	envelope, err := capsule.Sign(r.key, capsule.KeyID(r.key.Public().(ed25519.PublicKey)), releaselist.PayloadType, list)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(envelope)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(filepath.Join(folder, releaselist.FileName), raw, 0o600), os.WriteFile(filepath.Join(folder, name), packed.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	if r.spoil != nil {
		r.spoil(folder, filepath.Join(folder, name))
	}
	return folder
}

// Whoever gives the order and keeps the bytes cannot make the runner take any that the
// release key of the customer's choice did not sign for this version.
func TestAttackPackages(t *testing.T) {
	t.Parallel()
	trusted, key, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	_, dispatch, err := capsule.GenerateKey() // of the control plane
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]ed25519.PublicKey{capsule.KeyID(trusted): trusted}
	below := "berth-runner_1.4.0_" + platform
	rewrite := func(t *testing.T, path string, content []byte) {
		t.Helper()
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Error(err)
		}
	}
	for _, tc := range []struct {
		name    string
		release release
		keys    map[string]ed25519.PublicKey
		want    string
	}{
		{name: "as it was published", release: release{version: "1.4.0", key: key}, keys: keys},
		{name: "no key is pinned", release: release{version: "1.4.0", key: key}, want: "trusts no release key"},
		{name: "signed by the control plane", release: release{version: "1.4.0", key: dispatch}, keys: keys, want: "signature"},
		{name: "not signed", keys: keys, want: "signature", release: release{version: "1.4.0", key: key, spoil: func(folder, _ string) {
			payload, _ := json.Marshal(capsule.Envelope{PayloadType: releaselist.PayloadType, Payload: "e30="})
			rewrite(t, filepath.Join(folder, releaselist.FileName), payload)
		}}},
		{name: "no list", keys: keys, want: "signed list", release: release{version: "1.4.0", key: key, spoil: func(folder, _ string) {
			_ = os.Remove(filepath.Join(folder, releaselist.FileName))
		}}},
		{name: "another version, signed", release: release{version: "1.3.0", key: key}, keys: keys, want: `of version "1.3.0"`},
		{name: "a swapped archive of the same size", keys: keys, want: "not the file that was signed", release: release{version: "1.4.0", key: key, spoil: func(_, archive string) {
			raw, _ := os.ReadFile(archive)
			raw[len(raw)/2] ^= 1
			rewrite(t, archive, raw)
		}}},
		{name: "an archive that goes on", keys: keys, want: "not the file that was signed", release: release{version: "1.4.0", key: key, spoil: func(_, archive string) {
			raw, _ := os.ReadFile(archive)
			rewrite(t, archive, append(raw, 0))
		}}},
		{name: "a link in the place of the archive", keys: keys, want: "not the file that was signed", release: release{version: "1.4.0", key: key, spoil: func(folder, archive string) {
			_ = os.Rename(archive, filepath.Join(folder, "elsewhere"))
			_ = os.Symlink("elsewhere", archive)
		}}},
		{name: "a path out of the folder", keys: keys, want: "unsafe archive", release: release{version: "1.4.0", key: key, entries: []tar.Header{
			{Name: "../escaped", Typeflag: tar.TypeReg, Mode: 0o644},
		}}},
		{name: "a link out of the folder", keys: keys, want: "unsafe archive", release: release{version: "1.4.0", key: key, entries: []tar.Header{
			{Name: below + "/out", Typeflag: tar.TypeSymlink, Linkname: "../../../etc"},
		}}},
		{name: "a device", keys: keys, want: "unsafe archive", release: release{version: "1.4.0", key: key, entries: []tar.Header{
			{Name: below + "/null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3},
		}}},
		{name: "a link in the place of an executable", keys: keys, want: "has no executable", release: release{version: "1.4.0", key: key, without: versions.RunnerName, entries: []tar.Header{
			{Name: below + "/bin/" + versions.RunnerName, Typeflag: tar.TypeSymlink, Linkname: versions.EngineName},
		}}},
		{name: "no engine", keys: keys, want: "has no executable", release: release{version: "1.4.0", key: key, without: versions.EngineName}},
		{name: "more files than a runner has", keys: keys, want: "unsafe archive", release: release{version: "1.4.0", key: key, entries: many(200)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "release")
			folder := offer(t, tc.release)
			opened, err := versions.Open(t.Context(), versions.Offer{Folder: folder, Version: "1.4.0", Platform: platform, Keys: tc.keys}, dir)
			if tc.want == "" {
				if err != nil || opened.SignedBy != capsule.KeyID(trusted) || opened.Version.Version != "1.4.0" {
					t.Fatalf("got %+v, %v", opened, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want %q", err, tc.want)
			}
			if _, err := os.Lstat(filepath.Join(filepath.Dir(dir), "escaped")); err == nil {
				t.Error("it wrote out of its folder")
			}
		})
	}
}

func many(n int) []tar.Header {
	var out []tar.Header
	for i := range n {
		out = append(out, tar.Header{Name: "f" + string(rune('a'+i%26)) + string(rune('a'+i/26)), Typeflag: tar.TypeReg, Mode: 0o644})
	}
	return out
}

// opened is a verified version in a folder.
func opened(t *testing.T, v string) versions.Opened {
	t.Helper()
	public, key, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	o, err := versions.Open(t.Context(), versions.Offer{
		Folder: offer(t, release{version: v, key: key}), Version: v, Platform: platform, Keys: map[string]ed25519.PublicKey{capsule.KeyID(public): public},
	}, filepath.Join(t.TempDir(), "release"))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestTrial(t *testing.T) {
	t.Parallel()
	store := versions.In(t.TempDir())
	next := opened(t, "1.5.0")
	if err := errors.Join(store.Install(next.Version, next.Folder), store.Begin(next.Version, "job_1", "1.4.0"), store.Boot()); err != nil {
		t.Fatal(err)
	}
	is := func(want versions.State) {
		t.Helper()
		got, err := store.Read()
		if err != nil {
			t.Fatal(err)
		}
		if got.Failed != nil {
			got.Failed.At = time.Time{}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("state (-want +got):\n%s", diff)
		}
	}
	is(versions.State{Serial: 1, Trial: &versions.Trial{Version: next.Version, Job: "job_1", Boots: 1}, Accepted: []string{"1.4.0"}})
	if err := store.Confirm("another"); !errors.Is(err, versions.ErrNotOnTrial) {
		t.Errorf("another version confirmed itself: %v", err)
	}
	if err := store.Fail(next.Digest(), "it hangs", time.Now()); err != nil {
		t.Fatal(err)
	}
	is(versions.State{Serial: 2, Failed: &versions.Failure{Version: next.Version, Job: "job_1", Reason: "it hangs"}, Accepted: []string{"1.4.0"}})
	if err := store.Confirm(next.Digest()); !errors.Is(err, versions.ErrNotOnTrial) {
		t.Errorf("a version that came too late confirmed itself: %v", err)
	}

	if err := errors.Join(store.Begin(next.Version, "job_2", "1.4.0"), store.Confirm(next.Digest())); err != nil {
		t.Fatal(err)
	}
	confirmed := versions.State{Serial: 4, Current: &next.Version, ConfirmedBy: "job_2", Accepted: []string{"1.4.0", "1.5.0"}}
	is(confirmed)
	if err := store.Fail(next.Digest(), "too late", time.Now()); !errors.Is(err, versions.ErrNotOnTrial) {
		t.Errorf("a version that passed its trial failed it: %v", err)
	}
	is(confirmed)
	for job, want := range map[string]versions.Outcome{"job_1": versions.Unknown, "job_2": versions.Confirmed, "job_3": versions.Unknown} {
		state, _ := store.Read()
		if got, _ := versions.OutcomeOf(state, job); got != want {
			t.Errorf("outcome of %s: %s, want %s", job, got, want)
		}
	}
}

func TestInstall(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	store := versions.In(data)
	first, second := opened(t, "1.5.0"), opened(t, "1.6.0")
	if err := errors.Join(store.Install(first.Version, first.Folder), store.Install(first.Version, first.Folder), store.Install(second.Version, second.Folder)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{versions.RunnerName, versions.EngineName, versions.PolicyName} {
		info, err := os.Stat(filepath.Join(store.Folder(first.Version), name))
		if err != nil || info.Mode().Perm() != 0o555 {
			t.Errorf("%s: %v, %v: nobody may write it", name, info.Mode(), err)
		}
	}
	if info, err := os.Stat(filepath.Dir(store.Folder(first.Version))); err != nil || info.Mode().Perm() != 0o711 {
		t.Errorf("folder of the versions: %v, %v", info.Mode(), err)
	}

	engine := filepath.Join(store.Folder(first.Version), versions.EngineName)
	if err := errors.Join(os.Chmod(engine, 0o700), os.WriteFile(engine, []byte("another"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := store.Verify(first.Version); !errors.Is(err, versions.ErrDamaged) {
		t.Errorf("a changed engine: %v", err)
	}
	if err := errors.Join(store.Install(first.Version, first.Folder), store.Verify(first.Version)); err != nil {
		t.Errorf("installed again: %v", err)
	}
	wrong := first.Version
	wrong.Engine = "sha256:of-something-else"
	if err := store.Install(wrong, first.Folder); !errors.Is(err, versions.ErrDamaged) {
		t.Errorf("another engine than was verified: %v", err)
	}

	if err := errors.Join(store.Begin(second.Version, "job_1", "1.4.0"), store.Confirm(second.Digest()), store.Tidy()); err != nil {
		t.Fatal(err)
	}
	if store.Verify(first.Version) == nil || store.Verify(second.Version) != nil {
		t.Error("it keeps what nothing runs, or removed what does")
	}
	third := opened(t, "1.7.0")
	if err := errors.Join(store.Install(third.Version, third.Folder), store.Begin(third.Version, "job_2", "1.6.0"), store.Confirm(third.Digest()), store.Tidy()); err != nil {
		t.Fatal(err)
	}
	if store.Verify(second.Version) != nil || store.Verify(third.Version) != nil {
		t.Error("the version before is gone, whose engines may still work")
	}
	if entries, _ := filepath.Glob(filepath.Join(data, "versions", ".new-*")); len(entries) > 0 {
		t.Errorf("left behind: %v", entries)
	}
}
