package datadir_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/runner/agent/datadir"
)

func open(t *testing.T) datadir.Dir {
	t.Helper()
	d, err := datadir.At(filepath.Join(t.TempDir(), "data"))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Make(0); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestKeysAreMadeOnce(t *testing.T) {
	t.Parallel()
	d := open(t)
	first, err := d.Keys()
	if err != nil {
		t.Fatal(err)
	}
	again, err := d.Keys()
	if err != nil {
		t.Fatal(err)
	}
	if !first.Sign.Equal(again.Sign) || first.Seal.Recipient() != again.Seal.Recipient() || !cmp.Equal(first.Salt, again.Salt) {
		t.Error("a second look found other keys")
	}
	for _, name := range []string{"identity", "seal-identity", "salt"} {
		info, err := os.Stat(filepath.Join(d.Path(), name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v; want mode 0600", name, info, err)
		}
	}
	if info, err := os.Stat(d.Path()); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("data directory: %v, %v; want mode 0700", info, err)
	}
	// Replacing a damaged key would make another runner: it stays.
	if err := os.WriteFile(filepath.Join(d.Path(), "identity"), []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Keys(); err == nil {
		t.Error("a damaged identity was taken or replaced")
	}
}

func TestLockIsForOne(t *testing.T) {
	t.Parallel()
	d := open(t)
	if d.Locked() {
		t.Error("locked before anybody came")
	}
	lock, err := d.Lock()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Lock(); !errors.Is(err, datadir.ErrBusy) || !d.Locked() {
		t.Errorf("second lock: %v, want ErrBusy", err)
	}
	lock.Close()
	if again, err := d.Lock(); err != nil {
		t.Errorf("after the first is gone: %v", err)
	} else {
		again.Close()
	}
}

func TestTrust(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, text string
		ok         bool
	}{
		{"no file", "", false},
		{"no url", `{"dispatch_keys":[]}`, false},
		{"a key that is none", `{"runner_api_url":"http://127.0.0.1","dispatch_keys":[{"key_id":"k","public_key":"eA=="}]}`, false},
		{"half a file", `{"runner_api_url":`, false},
		{"complete", `{"runner_api_url":"http://127.0.0.1","dispatch_keys":[{"key_id":"k","public_key":"6kQ2m3m8xk3cI2w6tVJ2bq0m9C0yqk3zq6m8n1f4s2Y="}]}`, true},
	} {
		d := open(t)
		if tc.text != "" {
			if err := datadir.Write(d.Trust(), []byte(tc.text)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := d.LoadTrust(); (err == nil) != tc.ok {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

func TestWriteLeavesNothingElse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, text := range []string{"one", "two"} {
		if err := datadir.Write(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != "two" {
		t.Errorf("file = %q, %v", got, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("directory = %v, %v; want one file", entries, err)
	}
	if err := datadir.Remove(path); err != nil {
		t.Error(err)
	}
	if err := datadir.Remove(path); err != nil {
		t.Errorf("a second removal: %v", err)
	}
}
