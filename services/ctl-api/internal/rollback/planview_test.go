package rollback_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/rollback"
)

func TestPlanView(t *testing.T) {
	t.Parallel()
	const objects = `"no_change": false, "create": 1, "update": 0, "replace": 0, "delete": 0, "objects": [{"address": "ConfigMap a/b", "action": "update", "fields": [{"path": "data.x", "before": "1", "after": "2"}]}]`
	for _, tt := range []struct {
		name, plan string
		want       []apigen.ObjectChange
	}{
		{"a chart", `{` + objects + `, "reversal": {"class": "reversible", "backwards": true}}`, []apigen.ObjectChange{
			{Address: "ConfigMap a/b", Action: "update", Fields: []apigen.FieldChange{{Path: "data.x", Before: "2", After: "1"}}},
		}},
		{"a module", `{` + objects + `, "reversal": {"class": "reversible"}}`, nil},
		{"of an older runner", `{` + objects + `}`, nil},
	} {
		got, err := rollback.PlanView(json.RawMessage(tt.plan))
		if err != nil {
			t.Fatal(err)
		}
		var reverse []apigen.ObjectChange
		if got.Reversal != nil {
			reverse = got.Reversal.Reverse
		}
		if diff := cmp.Diff(tt.want, reverse); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}
