package sync_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/cli/internal/sync"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func TestOrigin(t *testing.T) {
	t.Parallel()
	repo := t.TempDir()
	folder := filepath.Join(repo, "app")
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", repo, "-c", "user.name=Ann", "-c", "user.email=ann@initech.example", "-c", "commit.gpgsign=false"}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	is := func(name, message string, want *ctlapi.Origin) {
		t.Helper()
		if diff := cmp.Diff(want, sync.Origin(t.Context(), folder, message)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	write(filepath.Join(folder, "metadata.toml"), "version = \"v2\"\n")
	is("no repository", "", nil)
	is("no repository, a message", "Try it", &ctlapi.Origin{Message: "Try it"})
	git("init", "-q")
	is("a repository without commits", "", nil)
	git("add", ".")
	git("commit", "-q", "-m", "Ask for the port\n\nSome say 80.")
	head := git("rev-parse", "HEAD")
	is("a commit", "", &ctlapi.Origin{Message: "Ask for the port", Commit: head, Author: "Ann"})
	is("a commit and a message", "For acme", &ctlapi.Origin{Message: "For acme", Commit: head, Author: "Ann"})
	write(filepath.Join(repo, "elsewhere"), "not in the folder\n")
	is("changes elsewhere", "", &ctlapi.Origin{Message: "Ask for the port", Commit: head, Author: "Ann"})
	// A program that the repository names is not run.
	git("config", "core.fsmonitor", "touch "+filepath.Join(repo, "ran"))
	write(filepath.Join(folder, "metadata.toml"), "version = \"v3\"\n")
	is("changes in the folder", "", &ctlapi.Origin{Commit: head, Author: "Ann", Modified: true})
	if _, err := os.Stat(filepath.Join(repo, "ran")); err == nil {
		t.Error("a program that the repository names was run")
	}
	long := sync.Origin(t.Context(), folder, strings.Repeat("ü", 3000))
	if got := len([]rune(long.Message)); got != 2000 {
		t.Errorf("a message of %d characters, want 2000", got)
	}
}
