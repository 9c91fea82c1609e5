package process_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/runner/agent/launcher"
	"github.com/berth-dev/berth/runner/agent/process"
)

// pathOwner owns what a test shows of the machine.
const pathOwner = 85002

// withPaths adds to a place a directory that may be written and one that may be read.
func withPaths(t *testing.T) (base string, s process.Spec) {
	t.Helper()
	data, s := place(t, 0)
	base = filepath.Dir(data)
	for _, dir := range []string{"app", "conf"} {
		if err := os.MkdirAll(filepath.Join(base, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(base, dir, "there"), []byte("of "+dir), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s.Sight.Paths = []launcher.Path{{Name: base + "/conf"}, {Name: base + "/app", Write: true}}
	if os.Geteuid() != 0 {
		return base, s
	}
	for _, path := range []string{base + "/app", base + "/app/there"} {
		if err := os.Chown(path, pathOwner, pathOwner); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	maps := process.NewUserMaps(self(t), pathOwner)
	t.Cleanup(func() { _ = maps.Close() })
	shown, err := maps.For(engineUser)
	if err != nil {
		t.Skip(err)
	}
	s.PathMaps = []*os.File{nil, shown}
	return base, s
}

// What is granted is seen at its own place, to read or to write; what is written is its
// owner's on disk; and nothing else of where it lies is there.
func TestPaths(t *testing.T) {
	t.Parallel()
	base, s := withPaths(t)
	if err := os.WriteFile(base+"/other", []byte("of nobody"), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(filepath.Join(base, "said"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	s.Stdout, s.Stderr = out, out
	s.Env = append(s.Env, "BASE="+base)
	s.Args = []string{"-c", `exec 2>&1
cat $BASE/conf/there && echo
cat $BASE/app/there && echo
{ echo x >$BASE/conf/there; } 2>/dev/null || echo conf is closed
{ echo x >$BASE/conf/new; } 2>/dev/null || echo conf takes nothing
echo changed >$BASE/app/there && mkdir $BASE/app/new && echo app is open
[ -e $BASE/other ] || echo the rest is not there
{ mount -o remount,rw,bind $BASE/conf; } 2>/dev/null || echo it stays so`}
	p, err := process.Start(s)
	if err != nil {
		t.Fatal(err)
	}
	ended(t, p)
	raw, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	want := "of conf\nof app\nconf is closed\nconf takes nothing\napp is open\nthe rest is not there\nit stays so\n"
	if string(raw) != want {
		t.Errorf("it said\n%s\nwant\n%s", raw, want)
	}
	if os.Geteuid() == 0 {
		if got, err := exec.CommandContext(t.Context(), "stat", "-c", "%u", base+"/app/new").Output(); err != nil || strings.TrimSpace(string(got)) != "85002" {
			t.Errorf("on disk it belongs to %s (%v), want %d", got, err, pathOwner)
		}
	}
}

// Whatever stands where a path was granted, no engine is shown the runner's data, the
// kernel's files, devices or sockets, and no symlink leads it on.
func TestAttackPaths(t *testing.T) {
	t.Parallel()
	base, s := withPaths(t)
	data := base + "/data"
	link := func(name, to string) string {
		if err := os.Symlink(to, base+"/"+name); err != nil {
			t.Fatal(err)
		}
		return base + "/" + name
	}
	socket, err := net.Listen("unix", base+"/socket")
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	for name, tc := range map[string]struct{ path, want string }{
		"absent":                       {base + "/none", "no such file"},
		"a symlink to the data":        {link("to-data", data), "is a symlink"},
		"a symlink to /proc":           {link("to-proc", "/proc/1"), "is a symlink"},
		"a symlink to a good place":    {link("to-app", base+"/app"), "is a symlink"},
		"a symlink in the middle":      {link("above", base) + "/app", "is a symlink"},
		"a symlink to the data, above": {base + "/above/data/install", "is a symlink"},
		"the data":                     {data, "leads to the runner's data"},
		"a part of the data":           {data + "/install", "leads to the runner's data"},
		"the identity":                 {data + "/identity", "leads to the runner's data"},
		"what the data is in":          {base, "the runner's data is in it"},
		"the kernel's":                 {"/proc/version", "of the kernel's own (proc)"},
		"its switches":                 {"/proc/sys/kernel", "of the kernel's own (proc)"},
		"a device":                     {"/dev/null", "neither a file nor a directory"},
		"a socket":                     {base + "/socket", "neither a file nor a directory"},
		"the way back":                 {base + "/app/../data", "shortest way"},
		"relative":                     {"app", "not absolute"},
	} {
		for _, write := range []bool{false, true} {
			spec, sight := s, *s.Sight
			sight.Paths, spec.PathMaps = []launcher.Path{{Name: tc.path, Write: write}}, nil
			spec.Sight, spec.Args = &sight, []string{"-c", "exit 0"}
			if p, err := process.Start(spec); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s, write %v: %+v, %v, want an error with %q", name, write, p, err, tc.want)
			}
		}
	}
}
