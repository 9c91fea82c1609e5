package driftrule_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/driftrule"
	"github.com/berth-dev/berth/pkg/jobspec"
)

const one = `[[accept]]
kind = "Deployment"
name = "web"
path = "spec.replicas"
reason = "scaled for the sale"
by = "ops@shop.test"
until = 2026-12-31T00:00:00Z
`

func TestParse(t *testing.T) {
	t.Parallel()
	got, err := driftrule.Parse([]byte(one))
	if err != nil {
		t.Fatal(err)
	}
	want := []jobspec.DriftRule{{
		Kind: "Deployment", Name: "web", Path: "spec.replicas", Reason: "scaled for the sale", By: "ops@shop.test",
		Until: time.Date(2026, 12, 31, 0, 0, 0, 0, time.UTC),
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got, err := driftrule.Parse(nil); err != nil || len(got) != 0 {
		t.Errorf("an empty file: %v, %v", got, err)
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ text, want string }{
		"no end":           {strings.Replace(one, "until = 2026-12-31T00:00:00Z\n", "", 1), "until is missing"},
		"no reason":        {strings.Replace(one, "scaled for the sale", " ", 1), "reason is missing"},
		"nobody":           {strings.Replace(one, "ops@shop.test", "", 1), "by is missing"},
		"an unknown key":   {one + "forever = true\n", "keys that nobody knows"},
		"no TOML":          {"[[accept", "expected"},
		"too many rules":   {strings.Repeat(one, driftrule.MaxRules+1), "more than 200"},
		"too long":         {strings.Repeat("#", driftrule.MaxBytes+1), "bytes"},
		"all but the last": {one + strings.Replace(one, `kind = "Deployment"`, "", 1), "rule 2: kind is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rules, err := driftrule.Parse([]byte(tc.text))
			if err == nil || !strings.Contains(err.Error(), tc.want) || rules != nil {
				t.Errorf("got %v, %v", rules, err)
			}
		})
	}
}
