package check_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/appconfigtest"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/graph"
)

// BenchmarkValidate reads, checks and orders an app of 300 components, 500
// actions and 2,000 files that they name, from the disk.
func BenchmarkValidate(b *testing.B) {
	dir := b.TempDir()
	for name, file := range appconfigtest.Large() {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(path, file.Data, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	before := cpuTime(b)
	for b.Loop() {
		app, diags := check.Format(os.DirFS(dir), appconfig.LoadOptions{})
		if len(diags) > 0 {
			b.Fatalf("the app has problems:\n%s", appconfigtest.Render(diags))
		}
		g, cycles := graph.New(app)
		if len(cycles) > 0 || len(g.Order()) != appconfigtest.LargeComponents || len(app.Actions) != appconfigtest.LargeActions {
			b.Fatalf("got %d components and %d actions in order", len(g.Order()), len(app.Actions))
		}
	}
	b.ReportMetric(float64((cpuTime(b)-before).Milliseconds())/float64(b.N), "cpu-ms/op")
}

// cpuTime is what the process has used of all cores: unlike the time on the
// clock it says the same on a busy machine.
func cpuTime(t testing.TB) time.Duration {
	t.Helper()
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
