package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// archive is what Tilt sends: files by their place in the container.
func archive(t *testing.T, files ...string) *bytes.Buffer {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for i := 0; i < len(files); i += 2 {
		if err := w.WriteHeader(&tar.Header{Name: files[i], Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(files[i+1]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(files[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &out
}

// script notes in a file that it began, and how it ended.
func script(name, log string) string {
	return "#!/bin/sh\ntrap 'echo " + name + " ends >>" + log + "; exit 0' TERM\necho " + name + " begins $* >>" + log + "\nwhile :; do sleep 0.05; done\n"
}

func TestNewerExecutableIsStarted(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	log := filepath.Join(root, "log")
	wrote := func(want string) {
		t.Helper()
		var got []byte
		for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			if got, _ = os.ReadFile(log); string(got) == want {
				return
			}
		}
		t.Fatalf("log = %q, want %q", got, want)
	}
	put := func(files ...string) {
		t.Helper()
		if err := unpack([]string{"-C", root, "-x", "-f", "-"}, archive(t, files...)); err != nil {
			t.Fatal(err)
		}
	}
	put("/image/berth-ctl-api", script("image", log), "/image/tar", "not ours")
	live := filepath.Join(root, "live")
	for range 2 { // the second time there is nothing to copy
		if err := fill(live, filepath.Join(root, "image/berth-*")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(live, "tar")); err == nil {
		t.Error("tar was copied, too")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, live, []string{"berth-ctl-api", "serve", "-v"}) }()
	want := "image begins serve -v\n"
	wrote(want)
	put("live/berth-ctl-api", script("first", log))
	want += "image ends\nfirst begins serve -v\n"
	wrote(want)
	put("live/berth-ctl-api", script("second", log))
	want += "first ends\nsecond begins serve -v\n"
	wrote(want)
	put("live/berth-runner", script("runner", log)) // what it starts itself
	want += "second ends\nsecond begins serve -v\n"
	wrote(want)
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("asked to stop: %v", err)
	}
	wrote(want + "second ends\n")
}

// What ends by itself ends the container: the kubelet counts that.
func TestEndIsPassedOn(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := unpack([]string{"-C", root}, archive(t, "x", "#!/bin/sh\nexit 3\n")); err != nil {
		t.Fatal(err)
	}
	var ended *exec.ExitError
	if err := run(t.Context(), root, []string{"x"}); !errors.As(err, &ended) || ended.ExitCode() != 3 {
		t.Errorf("run: %v, want exit status 3", err)
	}
	if err := run(t.Context(), root, []string{"none"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("run of what is not there: %v", err)
	}
}

func TestUnpackStaysInItsFolder(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	in := filepath.Join(root, "in")
	if err := unpack([]string{"-C", in}, archive(t, "a/../../out", "x")); err == nil || !strings.Contains(err.Error(), "leads out of") {
		t.Errorf("a name that leads out: %v", err)
	}
	if _, err := os.Stat(filepath.Join(root, "out")); err == nil {
		t.Error("a file was written outside")
	}
	if err := unpack([]string{"-C", in}, archive(t, "/a/b", "x")); err != nil {
		t.Fatal(err)
	}
	if err := remove([]string{"-rf", filepath.Join(in, "a/b"), filepath.Join(in, "none")}); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(filepath.Join(in, "a")); err != nil || len(entries) != 0 {
		t.Errorf("what is left: %v, %v", entries, err)
	}
}

// The folder of an image has each executable of Berth, live itself, and nothing
// else.
func TestOurs(t *testing.T) {
	t.Parallel()
	list, err := os.ReadFile("../scripts/executables.sh")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ = bytes.Cut(list, []byte("executables='\n"))
	list, _, _ = bytes.Cut(list, []byte("\n'"))
	names := 0
	for line := range strings.Lines(string(list)) {
		names++
		name, _, _ := strings.Cut(line, " ")
		if ok, err := filepath.Match(ours, name); err != nil || !ok {
			t.Errorf("%s is not one of %s (%v)", name, ours, err)
		}
	}
	if names < 8 {
		t.Errorf("%d executables", names)
	}
	if ok, _ := filepath.Match(ours, "live"); ok {
		t.Error("live is one of them")
	}
}
