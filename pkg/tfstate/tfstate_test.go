package tfstate_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/tfstate"
)

func TestFit(t *testing.T) {
	t.Parallel()
	whole := tfstate.Summary{
		Resources: map[string]int{"terraform_data": 1}, Bytes: 7, Terraform: "1.11.4",
		Objects: []tfstate.Object{{Address: "terraform_data.a", Attributes: map[string]any{"input": "x"}}}, Outputs: map[string]any{"o": "x"},
	}
	counts, addresses, attributes := whole, whole, whole
	counts.Level, counts.Objects, counts.Outputs = tfstate.Counts, nil, nil
	addresses.Level, addresses.Objects, addresses.Outputs = tfstate.Addresses, []tfstate.Object{{Address: "terraform_data.a"}}, nil
	attributes.Level = tfstate.Attributes
	for _, tc := range []struct {
		level tfstate.Level
		want  tfstate.Summary
	}{{tfstate.Counts, counts}, {tfstate.Addresses, addresses}, {tfstate.Attributes, attributes}} {
		got := whole.Fit(tc.level)
		if diff := cmp.Diff(tc.want, got); diff != "" && !(len(got.Objects) == 0 && len(tc.want.Objects) == 0) {
			t.Errorf("%s (-want +got):\n%s", tc.level, diff)
		}
	}
	if whole.Objects[0].Attributes == nil {
		t.Error("what was given was changed")
	}
}

// A state of any size leaves a summary of a bounded one.
func TestFitIsBounded(t *testing.T) {
	t.Parallel()
	var s tfstate.Summary
	for i := range 2000 {
		s.Objects = append(s.Objects, tfstate.Object{Address: fmt.Sprintf("a.b[%d]", i), Attributes: map[string]any{"x": strings.Repeat("x", 500)}})
	}
	got := s.Fit(tfstate.Attributes)
	if got.Level != tfstate.Addresses || len(got.Objects) != 2000 || got.LeftOut != 0 {
		t.Errorf("attributes without room: level %s, %d objects, %d left out", got.Level, len(got.Objects), got.LeftOut)
	}
	for i := range s.Objects {
		s.Objects[i].Address += strings.Repeat("y", 500)
	}
	got = s.Fit(tfstate.Attributes)
	raw, err := json.Marshal(got)
	if err != nil || len(raw) > tfstate.MaxBytes || len(got.Objects) == 0 || len(got.Objects)+got.LeftOut != 2000 {
		t.Errorf("%d bytes, %d objects, %d left out, %v", len(raw), len(got.Objects), got.LeftOut, err)
	}
}

func TestParseLevel(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]tfstate.Level{"": tfstate.Addresses, "counts": tfstate.Counts, "attributes": tfstate.Attributes} {
		if got, err := tfstate.ParseLevel(text); err != nil || got != want {
			t.Errorf("%q is %q, %v", text, got, err)
		}
	}
	if _, err := tfstate.ParseLevel("all"); err == nil {
		t.Error("an unknown level was taken")
	}
}
