package exampletest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/cli/internal/exampletest"
)

func TestTyped(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][][]string{
		"berth status": {{"status"}},
		`berth deny acme/web --note "not 'before'"`: {{"deny", "acme/web", "--note", "not 'before'"}},
		`berth api /x --data '{"kind":"deploy"}'`:   {{"api", "/x", "--data", `{"kind":"deploy"}`}},
		"URL=https://x berth up -d":                 {{"up", "-d"}},
		"berth api /x > a.json && berth apps fmt":   {{"api", "/x"}, {"apps", "fmt"}},
		"berth apps graph -o dot | dot -Tsvg > a":   {{"apps", "graph", "-o", "dot"}},
		"berth context add prod <token --url x":     {{"context", "add", "prod", "--url", "x"}},
		`berth x ""`:                                {{"x", ""}},
		"man berth-deploy":                          nil,
		"echo berth status":                         nil,
	} {
		if diff := cmp.Diff(want, exampletest.Typed(line)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", line, diff)
		}
	}
}
