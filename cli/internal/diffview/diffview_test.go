package diffview_test

import (
	"strings"
	"testing"

	"github.com/berth-dev/berth/cli/internal/diffview"
	"github.com/berth-dev/berth/cli/internal/goldentest"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// aDiff has one object of every way to differ.
func aDiff() *ctlapi.Diff {
	return &ctlapi.Diff{
		App:  ctlapi.Ref{ID: "app_1", Name: "hello"},
		From: ctlapi.NumberRef{ID: "cfg_3", Number: 3}, To: ctlapi.NumberRef{ID: "cfg_5", Number: 5},
		Changes: []ctlapi.DiffObject{
			{Kind: "metadata", Change: "changed", Fields: []ctlapi.FieldChange{{Path: "description", After: `"Says hello."`}}},
			{Kind: "input", Name: "api_key", Change: "changed", Fields: []ctlapi.FieldChange{{Path: "default", Before: "(sensitive)", After: "(sensitive)"}}},
			{Kind: "input_group", Name: "all", Change: "removed"},
			{Kind: "sandbox", Change: "changed", Build: true, Fields: []ctlapi.FieldChange{
				{Path: "source.digest", Before: `"sha256:60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752"`, After: `"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"`},
			}},
			{Kind: "component", Name: "api", Change: "changed", Build: true, Deploy: true, Fields: []ctlapi.FieldChange{
				{Path: "dependencies", Before: `["db"]`},
				{Path: "helm_chart.values.long", Before: `"` + strings.Repeat("x", 200) + `"`, After: `"short"`},
				{Path: "helm_chart.values_file[0].contents.contents", Before: `"a: 1\nb: 2\n"`, After: `"a: 1\nb: 3\nc: 4\n"`},
				{Path: "max_auto_retries", Before: "2", After: "3"},
			}},
			{Kind: "component", Name: "web", Change: "added", Build: true, Deploy: true},
		},
	}
}

func TestDiffText(t *testing.T) {
	t.Parallel()
	goldentest.File(t, "testdata/diff.txt", diffview.Text("config", aDiff(), false))
	none := aDiff()
	none.Changes = nil
	goldentest.File(t, "testdata/diff_none.txt", diffview.Text("release", none, false))
}
