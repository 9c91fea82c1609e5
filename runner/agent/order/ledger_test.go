package order_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/runner/agent/order"
)

func openLedger(t *testing.T, path string) *order.Ledger {
	t.Helper()
	l, err := order.OpenLedger(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func reading(job string) capsule.Order {
	return capsule.Order{JobID: job, Starts: capsule.StartsOfReading, ExpiresAt: now.Add(time.Hour)}
}

func mutation(job, origin, effect string) capsule.Order {
	return capsule.Order{JobID: job, OriginID: origin, EffectDigest: effect, Starts: capsule.StartsOfMutation, ExpiresAt: now.Add(time.Hour)}
}

// What was begun is known to every later agent: after each step the ledger is
// read again from its file.
func TestLedgerCountsOverRestarts(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "orders")
	begin := func(o capsule.Order, attempt int, want error) {
		t.Helper()
		if err := openLedger(t, path).Begin(o, attempt, now); !errors.Is(err, want) {
			t.Errorf("Begin(%s, %d) = %v, want %v", o.JobID, attempt, err, want)
		}
	}
	end := func(job string, applied bool) {
		t.Helper()
		if err := openLedger(t, path).End(job, applied); err != nil {
			t.Error(err)
		}
	}
	begin(reading("job_1"), 1, nil)
	begin(reading("job_1"), 1, order.ErrUsedUp) // the same attempt
	begin(reading("job_1"), 2, nil)
	begin(reading("job_1"), 4, nil)
	begin(reading("job_1"), 5, order.ErrUsedUp)
	if diff := cmp.Diff(order.Past{Starts: 3, Attempt: 4}, openLedger(t, path).Past("job_1")); diff != "" {
		t.Errorf("past (-want +got):\n%s", diff)
	}
	begin(reading("job_2"), 1, nil)
	end("job_2", false)
	begin(reading("job_2"), 2, order.ErrUsedUp) // it has ended
	end("job_3", true)                          // never begun: nothing to end

	// One effect under one origin: three tries, and none once it is there.
	for _, job := range []string{"job_a", "job_b"} {
		begin(mutation(job, "chg_1", "sha256:e"), 1, nil)
		end(job, false)
	}
	if diff := cmp.Diff(order.Spent{Tries: 2}, openLedger(t, path).Spent("chg_1", "sha256:e")); diff != "" {
		t.Errorf("spent (-want +got):\n%s", diff)
	}
	begin(mutation("job_c", "chg_1", "sha256:e"), 1, nil) // its agent dies here
	begin(mutation("job_d", "chg_1", "sha256:e"), 1, order.ErrUsedUp)
	begin(mutation("job_e", "chg_2", "sha256:e"), 1, nil) // another origin
	end("job_e", true)
	begin(mutation("job_f", "chg_2", "sha256:e"), 1, order.ErrUsedUp)
	begin(mutation("job_f", "chg_2", "sha256:other"), 1, nil)

	// What was summed up says the same; what has expired stays refused.
	l := openLedger(t, path)
	if err := l.Prune(now.Add(30 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	begin(reading("job_1"), 5, order.ErrUsedUp)
	begin(mutation("job_d", "chg_1", "sha256:e"), 1, order.ErrUsedUp)
	begin(mutation("job_g", "chg_2", "sha256:e"), 1, order.ErrUsedUp)
	if err := l.Prune(now.Add(2 * time.Hour)); err != nil {
		t.Fatal(err)
	}
	if past := openLedger(t, path).Past("job_2"); past != (order.Past{}) {
		t.Errorf("an expired and ended order is still there: %+v", past)
	}
	begin(reading("job_2"), 2, order.ErrExpired) // by a clock that went back
	late := mutation("job_h", "chg_2", "sha256:e")
	late.ExpiresAt = now.Add(24 * time.Hour)
	begin(late, 1, order.ErrUsedUp) // effects are remembered longer
}

func TestLedgerSurvivesACrashAndNoDamage(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "orders")
	if err := openLedger(t, path).Begin(reading("job_1"), 1, now); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// The last line was not finished: its start did not happen.
	if err := os.WriteFile(path, append(whole, `{"is":"begin","job":"jo`...), 0o600); err != nil {
		t.Fatal(err)
	}
	l := openLedger(t, path)
	if past := l.Past("job_1"); past.Starts != 1 {
		t.Errorf("past = %+v", past)
	}
	if err := l.Begin(reading("job_2"), 1, now); err != nil {
		t.Fatal(err)
	}
	if past := openLedger(t, path).Past("job_2"); past.Starts != 1 {
		t.Errorf("what came after the crash is lost: %+v", past)
	}
	for _, damage := range []string{
		strings.Replace(string(whole), "begin", "began", 1), "{}\n" + string(whole), "\n" + string(whole), "x\n", `{"is":"end","job":"job_9"}` + "\n",
	} {
		if err := os.WriteFile(path, []byte(damage), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := order.OpenLedger(path); err == nil {
			t.Errorf("a damaged ledger was opened: %q", damage)
		}
	}
}

func TestLedgerLetsOneOfManyBegin(t *testing.T) {
	t.Parallel()
	l := openLedger(t, filepath.Join(t.TempDir(), "orders"))
	var group sync.WaitGroup
	var mu sync.Mutex
	begun := 0
	for range 8 {
		group.Go(func() {
			if l.Begin(mutation("job_1", "chg_1", "sha256:e"), 1, now) == nil {
				mu.Lock()
				begun++
				mu.Unlock()
			}
		})
	}
	group.Wait()
	if begun != 1 {
		t.Errorf("%d began, want 1", begun)
	}
}

// What a full disk did not take is not counted, also by the agents that come
// later; and with room again the ledger goes on.
func TestLedgerOnAFullDisk(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can make a disk that is small enough to be filled")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k,mode=700"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	path, filler := filepath.Join(dir, "orders"), filepath.Join(dir, "filler")
	l := openLedger(t, path)
	begun := 0
	begin := func() error {
		err := l.Begin(reading("job_"+strconv.Itoa(begun+1)), 1, now)
		if err == nil {
			begun++
		}
		return err
	}
	if err := begin(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filler, make([]byte, 64<<10), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	var err error
	for range 4096 / 10 { // to the end of the page that the file has already
		if err = begin(); err != nil {
			break
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("err = %v, want a full disk", err)
	}
	refused := "job_" + strconv.Itoa(begun+1)
	if err := l.Prune(now); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("prune: %v, want a full disk", err)
	}
	later := openLedger(t, path) // opening needs no room
	for name, l := range map[string]*order.Ledger{"the same": l, "a later one": later} {
		if past := l.Past(refused); past.Starts != 0 {
			t.Errorf("%s counts what was not begun: %+v", name, past)
		}
		if past := l.Past("job_1"); past.Starts != 1 {
			t.Errorf("%s does not know what was begun: %+v", name, past)
		}
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if err := begin(); err != nil {
		t.Fatal(err)
	}
	if past := openLedger(t, path).Past(refused); past.Starts != 1 {
		t.Errorf("with room again it is not counted: %+v", past)
	}
}

// BenchmarkBegin is what one start costs on the way to its engine: a line and one
// sync of the disk.
func BenchmarkBegin(b *testing.B) {
	ledger, err := order.OpenLedger(filepath.Join(b.TempDir(), "orders"))
	if err != nil {
		b.Fatal(err)
	}
	defer ledger.Close()
	now := time.Now()
	for n := 0; b.Loop(); n++ {
		o := capsule.Order{JobID: "job_" + strconv.Itoa(n), Starts: 3, ExpiresAt: now.Add(time.Hour)}
		if err := ledger.Begin(o, 1, now); err != nil {
			b.Fatal(err)
		}
	}
}
