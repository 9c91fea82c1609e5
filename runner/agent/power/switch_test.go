package power_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/power"
)

// Of the two switches the one that allows less counts, and one that cannot be
// understood stops everything.
func TestTwoSwitches(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name           string
		local, cluster power.Mode
		want           power.Mode
	}{
		{"neither was set", "", "", power.Run},
		{"the local one only", power.Pause, "", power.Pause},
		{"the cluster's only", "", power.ReadOnly, power.ReadOnly},
		{"the local one allows less", power.Sever, power.Pause, power.Sever},
		{"the cluster's allows less", power.Run, power.StopNow, power.StopNow},
		{"an unknown word in the cluster", power.Run, "halt", power.StopNow},
		{"an unknown word in the cluster, and less here", power.Sever, "halt", power.Sever},
	} {
		d, err := datadir.At(filepath.Join(t.TempDir(), "data"))
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Make(0); err != nil {
			t.Fatal(err)
		}
		if tc.local != "" {
			if err := power.Set(d, power.State{Mode: tc.local}); err != nil {
				t.Fatal(err)
			}
		}
		if err := power.SetInCluster(d, power.State{Mode: tc.cluster}); err != nil {
			t.Fatal(err)
		}
		if got, _ := power.Load(d); got.Mode != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got.Mode, tc.want)
		}
		// When the cluster has no opinion any more, the local switch is left.
		if err := power.SetInCluster(d, power.State{}); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(d.ClusterSwitch()); !os.IsNotExist(err) {
			t.Errorf("%s: the cluster's switch is still there: %v", tc.name, err)
		}
	}
}
