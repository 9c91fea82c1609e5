package appconfig

import (
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
)

// FuzzCron holds that no expression makes the check panic or hang, and that
// what it accepts is accepted by those who fire it, and fires.
func FuzzCron(f *testing.F) {
	for _, seed := range []string{"* * * * *", "*/5 0-6 1,15 * MON", "61 * * * *", "0 0 31 2 *", "0 0 29 2 *", "@daily", "@every 1h", "@every -1h", "TZ=UTC", "CRON_TZ=UTC * * * * *",
		"*/0 * * * *", "0/99999999999 * * * *", "5-1 * * * *", "? ? ? ? ?", " * * * * *", "* * * * *\n", ", * * * *"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, expr string) {
		if len(expr) > 1<<10 || cronProblem(expr) != "" {
			return
		}
		schedule, err := cron.ParseStandard("CRON_TZ=UTC " + expr)
		if err != nil {
			t.Fatalf("%q is accepted, and refused with its time zone: %v", expr, err)
		}
		if schedule.Next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
			t.Fatalf("%q is accepted and never fires", expr)
		}
	})
}

// FuzzSetPath holds that the check of `helm --set` paths ends, and that it
// refuses whatever would be more than one assignment.
func FuzzSetPath(f *testing.F) {
	for _, seed := range []string{"a", "a.b", "a[0].b", "a[0][1]", "a[-1]", "a[99999999999999999999]", "a[", "a]", "a=b", "a,b", "{a}", "", "a\\.b", "[0]", "a[]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		if setPathProblem(path) == "" && (path == "" || strings.ContainsAny(path, "=,{}")) {
			t.Fatalf("%q is accepted", path)
		}
	})
}
