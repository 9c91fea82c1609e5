package users_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/berth-dev/berth/runner/agent/users"
)

func TestParseRange(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		text string
		want users.Range
		ok   bool
	}{
		{users.DefaultRange, users.Range{First: 70000, Size: 4096}, true},
		{"off", users.Range{}, true},
		{"1000:2", users.Range{First: 1000, Size: 2}, true},
		{"0:10", users.Range{}, false},
		{"999:10", users.Range{}, false},
		{"70000", users.Range{}, false},
		{"70000:1", users.Range{}, false},
		{"2147483647:5", users.Range{}, false},
		{"a:b", users.Range{}, false},
	} {
		got, err := users.ParseRange(tc.text)
		if got != tc.want || (err == nil) != tc.ok {
			t.Errorf("ParseRange(%q) = %+v, %v", tc.text, got, err)
		}
	}
}

// owner is the directory of a job.
func owner(t *testing.T) string {
	t.Helper()
	return t.TempDir()
}

func take(t *testing.T, p *users.Pool, owner string) int {
	t.Helper()
	uid, err := p.Take(owner)
	if err != nil {
		t.Fatal(err)
	}
	return uid
}

func TestPool(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "users")
	r := users.Range{First: 81000, Size: 4}
	// Two runners of one machine.
	one, err := users.Open(dir, r, 0)
	if err != nil {
		t.Fatal(err)
	}
	two, err := users.Open(dir, r, 0)
	if err != nil {
		t.Fatal(err)
	}
	a, b, c := owner(t), owner(t), owner(t)
	ua, ub, uc := take(t, one, a), take(t, two, b), take(t, one, c)
	if ua == ub || ub == uc || ua == uc || ua == r.Owner() || ub == r.Owner() || uc == r.Owner() {
		t.Errorf("users %d %d %d, want three that are not %d", ua, ub, uc, r.Owner())
	}
	if again := take(t, two, a); again != ua {
		t.Errorf("the same owner got %d and then %d", ua, again)
	}
	if uid, err := two.Take(owner(t)); !errors.Is(err, users.ErrNone) {
		t.Errorf("a fourth of three: %d, %v", uid, err)
	}
	two.Give(ua, b) // not its
	if uid, err := two.Take(owner(t)); !errors.Is(err, users.ErrNone) {
		t.Errorf("after a stranger gave it back: %d, %v", uid, err)
	}
	one.Give(ua, a)
	d := owner(t)
	if ud := take(t, two, d); ud != ua {
		t.Errorf("the one that was given back is %d, got %d", ua, ud)
	}
	// The directory of a job is gone, nothing runs: a killed runner left it.
	if err := os.Remove(b); err != nil {
		t.Fatal(err)
	}
	if ue := take(t, one, owner(t)); ue != ub {
		t.Errorf("the one that was left behind is %d, got %d", ub, ue)
	}
}

// A user is not given away while something runs as it, whatever the files say.
func TestPoolSeesProcesses(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	p, err := users.Open(t.TempDir(), users.Range{First: 82000, Size: 2}, 0)
	if err != nil {
		t.Fatal(err)
	}
	gone := owner(t)
	uid := take(t, p, gone)
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "/bin/sleep", "100")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if got, err := p.Take(owner(t)); !errors.Is(err, users.ErrNone) {
		t.Errorf("took %d, %v, while a process has it", got, err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if got := take(t, p, owner(t)); got != uid {
		t.Errorf("took %d, want %d", got, uid)
	}
}

func TestPoolConcurrently(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var mu sync.Mutex
	seen := map[int]bool{}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			p, err := users.Open(dir, users.Range{First: 83000, Size: 64}, 83005)
			if err != nil {
				t.Error(err)
				return
			}
			for range 8 {
				uid, err := p.Take(owner(t))
				mu.Lock()
				if err != nil || seen[uid] || uid == 83005 {
					t.Errorf("took %d, %v", uid, err)
				}
				seen[uid] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}
