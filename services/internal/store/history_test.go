package store

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/services/internal/fault"
)

func TestWhichDatabasesCanBeBroughtUpToDate(t *testing.T) {
	t.Parallel()
	build := []int64{1, 2, 40, 50, 55, 60, 70}
	for _, tt := range []struct {
		name  string
		h     history
		newer bool
		code  string // of the refusal
	}{
		{name: "a new database"},
		{name: "all but the last", h: history{applied: []int64{0, 1, 2, 40, 50, 55, 60}}},
		{name: "up to date", h: history{applied: []int64{0, 1, 2, 40, 50, 55, 60, 70}, oldest: 60}},
		{name: "of 288b913: 50 landed later", h: history{applied: []int64{0, 1, 2, 40, 55}}},
		{name: "50 is missing where it cannot be", h: history{applied: []int64{0, 1, 2, 40, 55, 60}}, code: "schema_history"},
		{name: "another one is missing", h: history{applied: []int64{0, 1, 2, 50, 55}}, code: "schema_history"},
		{name: "one is of another branch", h: history{applied: []int64{0, 1, 2, 40, 41}}, code: "schema_history"},
		{name: "edited after it ran", h: history{applied: []int64{0, 1, 2, 40}, edited: true}, code: "schema_history"},
		{name: "newer, and serves this build", h: history{applied: []int64{0, 1, 2, 40, 50, 55, 60, 70, 80}, oldest: 70}, newer: true},
		{name: "newer, and does not", h: history{applied: []int64{0, 1, 2, 40, 50, 55, 60, 70, 80}, oldest: 80}, code: "schema_newer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			newer, err := tt.h.check(build)
			if newer != tt.newer || (err == nil) != (tt.code == "") {
				t.Fatalf("got newer %t, error %v; want newer %t, code %q", newer, err, tt.newer, tt.code)
			}
			if err == nil {
				return
			}
			p := fault.From(err)
			if diff := cmp.Diff(tt.code, p.Code); diff != "" || p.Remedy == "" {
				t.Errorf("%v, remedy %q: code (-want +got):\n%s", err, p.Remedy, diff)
			}
		})
	}
}
