package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/releaselist"
)

func TestRelease(t *testing.T) {
	t.Parallel()
	pub, key, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	archive := write("berth.tar.gz", []byte("an archive"))
	sum := sha256.Sum256([]byte("an archive"))
	envelope, err := capsule.Sign(key, capsule.KeyID(pub), releaselist.PayloadType, releaselist.List{
		Version: "1.4.0",
		Files:   []releaselist.File{{Name: "berth.tar.gz", SHA256: hex.EncodeToString(sum[:]), Size: 10}, {Name: "other.tar.gz"}},
		Images:  []releaselist.Image{{Name: "runner", Digest: "sha256:1234"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(envelope)
	if err != nil {
		t.Fatal(err)
	}
	list, keyFile := write("release.json", raw), write("key.pub", []byte(capsule.EncodePublicKey(pub)))

	verify := func(args ...string) (int, string) {
		var stdout, stderr bytes.Buffer
		code := run(args, nil, &stdout, &stderr)
		return code, stdout.String() + stderr.String()
	}
	code, out := verify("release", list, "--key", keyFile)
	if want := "release 1.4.0 · 1 of 2 files are here and good\n  image runner sha256:1234\n"; code != exitOK || out != want {
		t.Errorf("a good release: exit %d\n%s\nwant\n%s", code, out, want)
	}
	if code, out := verify("release", list); code != exitUsage || !strings.Contains(out, "--key") {
		t.Errorf("without a key: exit %d\n%s", code, out)
	}
	if err := os.WriteFile(archive, []byte("an Archive"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out := verify("release", list, "--key", keyFile); code != exitBad || !strings.Contains(out, "berth.tar.gz: not the file") {
		t.Errorf("a changed archive: exit %d\n%s", code, out)
	}
}
