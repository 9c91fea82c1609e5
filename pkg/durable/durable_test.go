package durable_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/durable"
)

// With this set the test binary replaces the file that it names, until killed.
const replaceForever = "BERTH_TEST_REPLACE"

func TestMain(m *testing.M) {
	if path := os.Getenv(replaceForever); path != "" {
		for n := byte(0); ; n++ {
			if err := durable.WriteFile(path, contents(n), 0o600); err != nil {
				panic(err)
			}
		}
	}
	os.Exit(m.Run())
}

func contents(n byte) []byte { return bytes.Repeat([]byte{n}, 100_000) }

func TestReplace(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, tc := range []struct {
		name string
		old  string // "" for none
		fill func(io.Writer) error
		want string
		err  error
	}{
		{name: "a new file", fill: writes("new"), want: "new"},
		{name: "another in its place", old: "the old one, longer", fill: writes("new"), want: "new"},
		{
			name: "the old one stays when the new one fails half-way", old: "old", want: "old", err: broken,
			fill: func(w io.Writer) error { return errors.Join(writes("n")(w), broken) },
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "file")
			if tc.old != "" {
				if err := os.WriteFile(path, []byte(tc.old), 0o777); err != nil {
					t.Fatal(err)
				}
			}
			if err := durable.Replace(path, 0o640, tc.fill); !errors.Is(err, tc.err) {
				t.Errorf("got error %v, want %v", err, tc.err)
			}
			if got, err := os.ReadFile(path); err != nil || string(got) != tc.want {
				t.Errorf("got %q, %v; want %q", got, err, tc.want)
			}
			if info, err := os.Stat(path); tc.err == nil && (err != nil || info.Mode() != 0o640) {
				t.Errorf("got %v, %v; want mode 0640", info.Mode(), err)
			}
			alone(t, path)
		})
	}
}

func TestALinkIsReplacedNotFollowed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(target, []byte("kept"), 0o600), os.Symlink(target, link)); err != nil {
		t.Fatal(err)
	}
	if err := durable.WriteFile(link, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(target); err != nil || string(got) != "kept" {
		t.Errorf("behind the link: %q, %v", got, err)
	}
	if info, err := os.Lstat(link); err != nil || !info.Mode().IsRegular() {
		t.Errorf("the link: %v, %v", info.Mode(), err)
	}
}

func TestReplaceWithoutADirectory(t *testing.T) {
	t.Parallel()
	if err := durable.WriteFile(filepath.Join(t.TempDir(), "none", "file"), nil, 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestKilledWhileReplacing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	if err := durable.WriteFile(path, contents(0), 0o600); err != nil {
		t.Fatal(err)
	}
	for round := range 20 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), replaceForever+"="+path)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for range 50 { // while it runs, too
			whole(t, path)
			time.Sleep(time.Duration(round) * 20 * time.Microsecond)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		whole(t, path)
	}
}

func whole(t *testing.T, path string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || len(got) == 0 || !bytes.Equal(got, contents(got[0])) {
		t.Fatalf("%d bytes, %v; want the old or the new contents", len(got), err)
	}
}

func writes(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}
}

// alone checks that nothing is left next to the file.
func alone(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("in the folder: %v, %v", entries, err)
	}
}
