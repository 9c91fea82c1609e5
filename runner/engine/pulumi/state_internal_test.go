package pulumi

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What a killed apply had begun is taken out; only a creation may have left
// something that nobody knows of.
func TestSettle(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, in, want string
		creating       []string
	}{
		{"nothing there", "", "null", nil},
		{"nothing begun", `{"resources":[]}`, `{"resources":[]}`, nil},
		{
			"three begun", `{"resources":[],"pending_operations":[{"type":"updating","resource":{"urn":"urn:pulumi:s::p::t::u"}},` +
				`{"type":"creating","resource":{"urn":"urn:pulumi:s::p::t::z"}},{"type":"creating","resource":{"urn":"urn:pulumi:s::p::t$v::a::b"}}]}`,
			`{"resources":[]}`, []string{"t$v::a::b", "t::z"},
		},
	} {
		clean, creating, err := settle([]byte(tc.in))
		if err != nil || string(clean) != tc.want {
			t.Errorf("%s: %s, %v", tc.name, clean, err)
		}
		if diff := cmp.Diff(tc.creating, creating); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
	if _, _, err := settle([]byte(`{"s3cret`)); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("error %v", err)
	}
}

// A state of another tool is refused, and not quoted.
func TestParse(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{"version":4,"serial":1,"lineage":"l","resources":[]}`, `s3cret`, `{"version":4,"pulumi":{"format":2}}`} {
		if _, err := parse([]byte(text)); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
