package steptool_test

import (
	"testing"

	"github.com/berth-dev/berth/pkg/steptool"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]steptool.Tool{
		"jq":             {Name: "jq"},
		"jq>=1.6":        {Name: "jq", AtLeast: "1.6"},
		"kubectl >= v1":  {Name: "kubectl", AtLeast: "1"},
		"g++":            {Name: "g++"},
		"python3.12":     {Name: "python3.12"},
		"":               {},
		"/usr/bin/jq":    {},
		"../jq":          {},
		"jq; rm -rf /":   {},
		"jq>1.6":         {},
		"jq>=latest":     {},
		"--version":      {},
		"jq>=1.6\nother": {},
	} {
		got, err := steptool.Parse(text)
		if got != want || (err != nil) != (want == steptool.Tool{}) {
			t.Errorf("Parse(%q) = %+v, %v; want %+v", text, got, err, want)
		}
	}
}

func TestEnough(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		want, got string
		enough    bool
	}{
		{"1.6", "1.6", true},
		{"1.6", "1.7.1", true},
		{"1.6", "1.5.9", false},
		{"1.6", "1.10", true}, // numbers, not letters
		{"1.6.1", "1.6", false},
		{"2", "1.99", false},
		{"1", "1.0", true},
	} {
		if got := (steptool.Tool{AtLeast: tc.want}).Enough(tc.got); got != tc.enough {
			t.Errorf("%s enough for %s: %t", tc.got, tc.want, got)
		}
	}
}

func TestVersionIn(t *testing.T) {
	t.Parallel()
	for output, want := range map[string]string{
		"jq-1.7.1\n":                  "1.7.1",
		"jq-1.6":                      "1.6",
		"Client Version: v1.34.2\n":   "1.34.2",
		"curl 8.5.0 (x86_64-pc) …":    "8.5.0",
		"GNU bash, version 5.2.21(1)": "5.2.21",
		"git version 2.43.0":          "2.43.0",
		"some tool":                   "",
		"since 2024":                  "",
	} {
		if got := steptool.VersionIn(output); got != want {
			t.Errorf("VersionIn(%q) = %q, want %q", output, got, want)
		}
	}
}
