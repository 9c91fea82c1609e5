package container_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/pkg/plugin"
	"github.com/berth-dev/berth/pkg/plugin/container"
	"github.com/berth-dev/berth/pkg/plugin/container/imagetest"
	"github.com/berth-dev/berth/pkg/plugin/grant"
)

const platform = "linux/" + runtime.GOARCH

// build compiles the program in testdata, static.
func build(t *testing.T) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "look")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", to, ".")
	cmd.Dir, cmd.Env = filepath.Join("testdata", "look"), append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	raw, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// start runs an image in a room, whose directory it returns, and what it said.
func start(t *testing.T, layout string, paths []grant.Path, env ...string) (dir, said string) {
	t.Helper()
	at := t.TempDir()
	i, err := container.Open(t.Context(), filepath.Dir(layout), plugin.Manifest{Type: "look", Image: filepath.Base(layout)}, platform)
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	room := container.Room{Root: filepath.Join(at, "root"), Open: []string{filepath.Join(at, "job")}, Paths: paths}
	if err := os.Mkdir(room.Open[0], 0o700); err != nil {
		t.Fatal(err)
	}
	if err := i.Unpack(t.Context(), room.Root); err != nil {
		t.Fatal(err)
	}
	cmd, err := i.Command(room, room.Open[0], env)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	if errors.Is(container.Why(err), container.ErrNotHere) {
		t.Skip("no namespaces: the kernel gives none to this user")
	}
	if err != nil {
		t.Errorf("%v: %s", err, out.String())
	}
	return room.Open[0], out.String()
}

// A program of an image sees the image and its job, may write to its job alone, and has
// no rights to get out by.
func TestAttackRoom(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("of the machine"), 0o644); err != nil {
		t.Fatal(err)
	}
	layout := filepath.Join(t.TempDir(), "image")
	imagetest.Layout(t, layout, ocispec.ImageConfig{
		Entrypoint: []string{"look", "--"}, Cmd: []string{"ignored"}, User: "0", WorkingDir: "/", Env: []string{"PATH=/tools", "LEAKED=1"},
	}, []imagetest.Entry{
		imagetest.File("tools/look", build(t)), imagetest.File("of-image", "x"),
		imagetest.Link("etc", "/"), imagetest.Link("climb", strings.Repeat("../", 40)+secret),
	})
	dir, said := start(t, layout, nil, "PATH=/bin", "SECRET="+secret, "BERTH_X=y")
	for _, want := range []string{
		"args -- run " + dir, "env BERTH_X=y", "env PATH=/tools", "cwd " + dir, "caps 0000000000000000", "bounds 0000000000000000", "nnp 1",
		"read /of-image: ok", "write " + dir + "/x: ok", "write /tmp/x: ok", "read /dev/null: ok", "read /proc/self/status: ok",
		"write /x: refused", "write /tools/look: refused", "write /dev/x: refused", "write /proc/self/oom_score_adj: refused",
		"read " + secret + ": refused", "read /climb: refused", "read /proc/1/root/etc/passwd: refused", "read /proc/PARENT/root" + secret + ": refused", "read /proc/PARENT/environ: refused",
		"mount: refused", "mknod: refused", "chroot: refused", "namespace: refused", "remount: refused",
	} {
		if !strings.Contains(said, want+"\n") {
			t.Errorf("it does not say %q", want)
		}
	}
	for _, not := range []string{"LEAKED", "uid 0\n", "ignored"} {
		if strings.Contains(said, not) {
			t.Errorf("it says %q", not)
		}
	}
	if t.Failed() {
		t.Log(said)
	}
}

// What of the machine is granted is at its own place, to read or to write, and nothing
// else of where it lies.
func TestRoomShowsPaths(t *testing.T) {
	t.Parallel()
	machine := t.TempDir()
	for _, name := range []string{"conf", "other"} {
		if err := os.WriteFile(filepath.Join(machine, name), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"read", "write"} {
		if err := os.Mkdir(filepath.Join(machine, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	layout := filepath.Join(t.TempDir(), "image")
	imagetest.Layout(t, layout, ocispec.ImageConfig{Entrypoint: []string{"/look"}}, []imagetest.Entry{imagetest.File("look", build(t))})
	at := func(name string) string { return filepath.Join(machine, name) }
	_, said := start(t, layout, []grant.Path{{Name: at("conf")}, {Name: at("read")}, {Name: at("write"), Write: true}},
		"TRY="+strings.Join([]string{at("conf"), at("other"), at("read/x"), at("write/x")}, " "))
	for _, want := range []string{
		"read " + at("conf") + ": ok", "write " + at("conf") + ": refused", "read " + at("other") + ": refused",
		"write " + at("read/x") + ": refused", "write " + at("write/x") + ": ok",
	} {
		if !strings.Contains(said, want+"\n") {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
	}
	if _, err := os.Stat(at("write/x")); err != nil {
		t.Error(err)
	}
	if raw, err := os.ReadFile(at("other")); err != nil || string(raw) != "x" { // it wrote one in its own /tmp
		t.Errorf("what was not granted is %q, %v", raw, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	layout := filepath.Join(t.TempDir(), "image")
	imagetest.Layout(t, layout, ocispec.ImageConfig{Cmd: []string{"/x"}}, []imagetest.Entry{imagetest.File("x", "x")})
	m := plugin.Manifest{Type: "look", Version: "1", Image: "image"}
	if _, err := container.Open(t.Context(), filepath.Dir(layout), m, platform); err == nil || !strings.Contains(err.Error(), "has no entry point") {
		t.Errorf("no entry point: %v", err)
	}
	if _, err := container.Open(t.Context(), filepath.Dir(layout), m, "linux/s390x"); err == nil || !strings.Contains(err.Error(), "not for linux/s390x") {
		t.Errorf("another platform: %v", err)
	}
	if _, err := container.Open(t.Context(), t.TempDir(), m, platform); err == nil {
		t.Error("no image")
	}
}
