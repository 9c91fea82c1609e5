package output_test

import (
	"bytes"
	"encoding/csv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/cli/internal/output"
)

func TestCSV(t *testing.T) {
	t.Parallel()
	type row struct{ name, note string }
	view := output.View[row]{Columns: []output.Column[row]{
		{Head: "NAME", Cell: func(r row) string { return r.name }},
		{Head: "CHANGED BY", Wide: true, Cell: func(r row) string { return r.note }},
	}}
	options, err := output.Parse("csv", "")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := output.List(&b, options, []row{{"a,\"b\"", "=HYPERLINK(\"x\")"}, {"-3.5", "+cmd|' /C calc'!A0"}, {"@x", " =1+1"}}, view); err != nil {
		t.Fatal(err)
	}
	got, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{{"name", "changed_by"}, {"a,\"b\"", "'=HYPERLINK(\"x\")"}, {"-3.5", "'+cmd|' /C calc'!A0"}, {"'@x", "' =1+1"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
