package usage_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/cli/internal/usage"
)

func TestPairs(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		given []string
		want  *map[string]string
		wrong bool
	}{
		{"none", nil, nil, false},
		{"two, one without a value", []string{"a=b", "c="}, &map[string]string{"a": "b", "c": ""}, false},
		{"equal signs in the value", []string{"a=b=c"}, &map[string]string{"a": "b=c"}, false},
		{"the last one counts", []string{"a=b", "a=c"}, &map[string]string{"a": "c"}, false},
		{"no equal sign", []string{"a"}, nil, true},
		{"no name", []string{"=b"}, nil, true},
	} {
		got, err := usage.Pairs[map[string]string]("--input", tc.given)
		if diff := cmp.Diff(tc.want, got); diff != "" || (err != nil) != tc.wrong {
			t.Errorf("%s: %v (-want +got):\n%s", tc.name, err, diff)
		}
	}
}
