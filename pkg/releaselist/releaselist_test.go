package releaselist_test

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/releaselist"
)

func TestVerify(t *testing.T) {
	t.Parallel()
	pub, key, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	list := releaselist.List{Version: "1.4.0", Files: []releaselist.File{{Name: "a", SHA256: "0", Size: 1}}}
	sign := func(payloadType string) []byte {
		env, err := capsule.Sign(key, capsule.KeyID(pub), payloadType, list)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(env)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	trusted := map[string]ed25519.PublicKey{capsule.KeyID(pub): pub}
	got, err := releaselist.Verify(sign(releaselist.PayloadType), trusted)
	if diff := cmp.Diff(list, got); err != nil || diff != "" {
		t.Errorf("a good list: %v (-want +got):\n%s", err, diff)
	}
	_, err = releaselist.Verify(sign(releaselist.PayloadType), map[string]ed25519.PublicKey{capsule.KeyID(other): other})
	if !errors.Is(err, capsule.ErrSignature) {
		t.Errorf("another key: got %v, want ErrSignature", err)
	}
	if _, err = releaselist.Verify(sign("application/vnd.berth.order.v1+json"), trusted); !errors.Is(err, capsule.ErrSignature) {
		t.Errorf("another kind of payload: got %v, want ErrSignature", err)
	}
	changed := strings.Replace(string(sign(releaselist.PayloadType)), `"payload":"e`, `"payload":"f`, 1)
	if _, err = releaselist.Verify([]byte(changed), trusted); !errors.Is(err, capsule.ErrSignature) {
		t.Errorf("a changed list: got %v, want ErrSignature", err)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.tar.gz"), []byte("an archive"), 0o600); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte("an archive"))
	good := releaselist.File{Name: "a.tar.gz", SHA256: hex.EncodeToString(sum[:]), Size: 10}
	with := func(change func(*releaselist.File)) releaselist.List {
		file := good
		change(&file)
		return releaselist.List{Files: []releaselist.File{file}}
	}
	for _, tc := range []struct {
		name string
		list releaselist.List
		want []string
		err  string
	}{
		{name: "as it was signed", list: with(func(*releaselist.File) {}), want: []string{"a.tar.gz"}},
		{name: "not downloaded", list: with(func(f *releaselist.File) { f.Name = "b.tar.gz" })},
		{name: "other bytes", list: with(func(f *releaselist.File) { f.SHA256 = strings.Repeat("0", 64) }), err: "not the file"},
		{name: "another size", list: with(func(f *releaselist.File) { f.Size = 11 }), err: "not the file"},
		{name: "out of the folder", list: with(func(f *releaselist.File) { f.Name = "../a.tar.gz" }), err: "plain file name"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := tc.list.Check(dir)
			if (err == nil) != (tc.err == "") || (err != nil && !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("got %v, want an error with %q", err, tc.err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("good files (-want +got):\n%s", diff)
			}
		})
	}
}
