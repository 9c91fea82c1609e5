package table_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/cli/internal/table"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func TestOutputs(t *testing.T) {
	t.Parallel()
	got, err := table.Outputs([]ctlapi.Resource{
		{Name: "stack"}, {Name: "db", Outputs: json.RawMessage(`{"url":"postgres://db","ports":[5432]}`)}, {Name: "web", Outputs: json.RawMessage(`{}`)},
		{Name: "key", Outputs: json.RawMessage(`{"print":{"value":"ab12"},"key":{"value":"(sealed)","sensitive":true},"none":{"value":null}}`)},
	})
	want := []table.OutputValue{
		{Resource: "db", Name: "ports", Value: json.RawMessage(`[5432]`)}, {Resource: "db", Name: "url", Value: json.RawMessage(`"postgres://db"`)},
		{Resource: "key", Name: "key", Value: json.RawMessage(`"(sealed)"`), Sensitive: true}, {Resource: "key", Name: "none", Value: json.RawMessage(`null`)},
		{Resource: "key", Name: "print", Value: json.RawMessage(`"ab12"`)},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got := table.Output().Columns[2].Cell(got[1]); got != "postgres://db" {
		t.Errorf("a text is shown as %s", got)
	}
}
