package bulk_test

import (
	"testing"

	"github.com/berth-dev/berth/services/ctl-api/internal/bulk"
)

func TestVersion(t *testing.T) {
	t.Parallel()
	base := bulk.Version(bulk.Request{Release: "rel_1"}, []string{"a", "b"})
	for _, tt := range []struct {
		name     string
		request  bulk.Request
		installs []string
		same     bool
	}{
		{"another order of the installs", bulk.Request{Release: "rel_1"}, []string{"b", "a"}, true},
		{"one install more", bulk.Request{Release: "rel_1"}, []string{"a", "b", "c"}, false},
		{"other installs whose names join to the same", bulk.Request{Release: "rel_1"}, []string{"ab"}, false},
		{"another release", bulk.Request{Release: "rel_2"}, []string{"a", "b"}, false},
		{"only a plan", bulk.Request{Release: "rel_1", PlanOnly: true}, []string{"a", "b"}, false},
		{"one component", bulk.Request{Release: "rel_1", Components: []string{"web"}}, []string{"a", "b"}, false},
	} {
		if got := bulk.Version(tt.request, tt.installs) == base; got != tt.same {
			t.Errorf("%s: the same version: %v, want %v", tt.name, got, tt.same)
		}
	}
}
