package step

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// What control groups do not limit, each process carries.
func TestPerProcess(t *testing.T) {
	t.Parallel()
	l := Limits{Memory: 1 << 30, PIDs: 100, FileBytes: 5}
	for _, tt := range []struct {
		name   string
		groups []Group
		want   map[int]uint64
	}{
		{"without groups", nil, map[int]uint64{unix.RLIMIT_CORE: 0, unix.RLIMIT_FSIZE: 5, unix.RLIMIT_DATA: 1 << 30, unix.RLIMIT_NPROC: 100}},
		{"with one for both", []Group{{Memory: "a", PIDs: "b"}}, map[int]uint64{unix.RLIMIT_CORE: 0, unix.RLIMIT_FSIZE: 5}},
		{"with one for memory", []Group{{Memory: "a"}}, map[int]uint64{unix.RLIMIT_CORE: 0, unix.RLIMIT_FSIZE: 5, unix.RLIMIT_NPROC: 100}},
	} {
		l.Groups = tt.groups
		if diff := cmp.Diff(tt.want, l.perProcess()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestReason(t *testing.T) {
	t.Parallel()
	groups := Limits{Memory: 256 << 20, PIDs: 100, Groups: []Group{{Memory: "a"}, {PIDs: "b"}}}
	alone := Limits{Memory: 256 << 20, PIDs: 100}
	for _, tt := range []struct {
		name string
		l    Limits
		code int
		used Usage
		want string
	}{
		{"a step that did its work, just so", groups, 0, Usage{MemoryHits: 5, PeakPIDs: 100}, ""},
		{"one that failed for itself", groups, 1, Usage{PeakPIDs: 99}, ""},
		{"too much memory", groups, 137, Usage{MemoryHits: 1}, "limit of 256 MiB of memory (BERTH_BUILD_MEMORY"},
		{"too many processes", groups, 2, Usage{PeakPIDs: 100}, "limit of 100 processes and threads (BERTH_BUILD_PIDS"},
		{"where nobody counts", alone, 1, Usage{}, "under the limits of this builder: memory 256 MiB for each process, 100 processes over all steps"},
	} {
		got := tt.l.Reason(tt.code, tt.used)
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
