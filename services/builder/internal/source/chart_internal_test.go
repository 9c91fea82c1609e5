package source

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNewest(t *testing.T) {
	t.Parallel()
	versions := []string{"1.2.0", "1.10.0", "1.9.9", "2.0.0-rc.1", "v0.9.0", "not-a-version", "1.10.0+build.2"}
	for _, tc := range []struct{ name, want, got string }{
		{"nothing is the newest that is no prerelease", "", "1.10.0+build.2"},
		{"exactly as written", "1.10.0", "1.10.0"},
		{"written without its v", "0.9.0", "v0.9.0"},
		{"a range", "~1.2", "1.2.0"},
		{"a range takes the highest, not the last", ">=1.0, <1.10", "1.9.9"},
		{"a prerelease only when asked for", "2.x", ""},
		{"a prerelease asked for", ">=2.0.0-0", "2.0.0-rc.1"},
		{"what is no version is matched as written", "not-a-version", "not-a-version"},
		{"not there", "3.0.0", ""},
	} {
		if got, ok := newest(versions, tc.want); got != tc.got || ok != (tc.got != "") {
			t.Errorf("%s: newest(%q) = %q, %v, want %q", tc.name, tc.want, got, ok, tc.got)
		}
	}
}

func TestReadIndex(t *testing.T) {
	t.Parallel()
	web := []chartVersion{{Version: "1.0.0", Digest: "ab", URLs: []string{"web-1.0.0.tgz"}}}
	for _, tc := range []struct {
		name, index string
		want        []chartVersion
		err         error
	}{
		{name: "as Helm writes it", want: web, index: "apiVersion: v1\nentries:\n  api:\n  - version: 9.9.9\n    description: |-\n      web:\n      - version: 0\n" +
			"  web:\n  - annotations: {a: b}\n    digest: ab\n    urls:\n    - web-1.0.0.tgz\n    version: 1.0.0\n  webs:\n  - version: 8.8.8\ngenerated: \"2026\"\n"},
		{name: "quoted, indented more, with a comment", want: web, index: "entries: \n    # charts\n    \"web\":\n        - version: '1.0.0'\n          digest: ab\n          urls: [web-1.0.0.tgz]\napiVersion: v1\n"},
		{name: "JSON", want: web, index: ` {"apiVersion":"v1","x":[1,{"web":2}],"entries":{"api":[{"version":"9"}],"web":[{"version":"1.0.0","digest":"ab","urls":["web-1.0.0.tgz"]}]}}`},
		{name: "no such chart", index: "apiVersion: v1\nentries:\n  api:\n  - version: 1.0.0\n"},
		{name: "empty", index: "apiVersion: v1\nentries: {}\n"},
		{name: "a page", index: "<html><body>not here</body></html>\n", err: errIndex},
		{name: "nothing", index: "", err: errIndex},
		{name: "JSON that ends early", index: `{"entries":{"web":[`, err: io.ErrUnexpectedEOF},
		{name: "JSON of something else", index: `{"web":[]}`, err: errIndex},
		{name: "an alias out of it", index: "a: &a [1]\nentries:\n  web: *a\n", err: errIndex},
		{name: "one chart without end", index: "entries:\n  web:\n" + strings.Repeat("  - version: 1.0.0\n", 300_000), err: errTooLarge},
		{name: "one line without end", index: "entries:\n  web: " + strings.Repeat("x", 5<<20), err: errTooLarge},
	} {
		got, err := readIndex(strings.NewReader(tc.index), "web")
		if diff := cmp.Diff(tc.want, got); diff != "" || !errors.Is(err, tc.err) || tc.err == nil && err != nil {
			t.Errorf("%s: %v, want %v (-want +got):\n%s", tc.name, err, tc.err, diff)
		}
	}
}
