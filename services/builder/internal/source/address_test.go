package source_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/services/builder/internal/source"
)

func TestAddress(t *testing.T) {
	t.Parallel()
	mirror := source.Map{
		"acme/app":                  "file:///mirror/app",
		"acme/":                     "file:///mirror/all",
		"https://git.example.com/":  "https://cache.example.com/git/",
		"https://github.com/big":    "file:///big",
		"ssh://git@example.com/one": "file:///one",
	}
	for _, tc := range []struct {
		name      string
		repo      string
		m         source.Map
		allowFile bool
		want      string // or
		refused   string
	}{
		{name: "shorthand", repo: "owner/name", want: "https://github.com/owner/name.git"},
		{name: "shorthand with .git", repo: "owner/name.git", want: "https://github.com/owner/name.git"},
		{name: "https", repo: "https://git.example.com/a/b.git", want: "https://git.example.com/a/b.git"},
		{name: "file is not allowed", repo: "file:///srv/repo", refused: "file:// sources are not allowed here: set BERTH_ALLOW_FILE_SOURCES=true at the builder if every vendor may read its disk"},
		{name: "file is allowed", repo: "file:///srv/repo", allowFile: true, want: "file:///srv/repo"},
		{name: "file of another host", repo: "file://host/repo", allowFile: true, refused: "a file:// source needs an absolute path: file:///…"},
		{name: "a bare path", repo: "/srv/repo", allowFile: true, refused: `"/srv/repo" is not an address of a repository: write "owner/name" or an https URL`},
		{name: "plain http", repo: "http://git.example.com/a", refused: `repositories are not read by "http": use https`},
		{name: "ssh", repo: "ssh://git@github.com/a/b", refused: "the repository's address has a user name or a password in it: remove it from the app folder"},
		{name: "ssh without a user", repo: "ssh://github.com/a/b", refused: `repositories are not read by "ssh": use https`},
		{name: "scp form", repo: "git@github.com:a/b.git", refused: `this is not an address of a repository that Berth can use: write "owner/name" or an https URL`},
		{name: "a remote helper", repo: "ext::sh -c whoami", refused: `repositories are not read by "ext": use https`},
		{name: "an option", repo: "--upload-pack=whoami", refused: `"--upload-pack=whoami" is not an address of a repository: write "owner/name" or an https URL`},
		{name: "credentials are not repeated", repo: "https://me:hunter2@git.example.com/a", refused: "the repository's address has a user name or a password in it: remove it from the app folder"},
		{name: "no host", repo: "https:///a", refused: `"https:///a" names no host`},
		{name: "a query", repo: "https://h.example.com/a?service=x", refused: `the repository's address "https://h.example.com/a?service=x" has a query or a fragment`},

		{name: "the longest key wins", repo: "acme/app", m: mirror, want: "file:///mirror/app"},
		{name: "a shorter one takes the rest", repo: "acme/other", m: mirror, want: "file:///mirror/all/other"},
		{name: ".git makes no difference", repo: "https://github.com/acme/app", m: source.Map{"https://github.com/acme/app.git": "file:///x"}, want: "file:///x"},
		{name: "shorthand is found by its URL", repo: "big/thing", m: mirror, want: "file:///big/thing.git"},
		{name: "a key ends at a slash", repo: "https://github.com/bigger/thing", m: mirror, want: "https://github.com/bigger/thing"},
		{name: "to another host", repo: "https://git.example.com/a/b", m: mirror, want: "https://cache.example.com/git/a/b"},
		{name: "the operator may map what is refused", repo: "ssh://git@example.com/one", m: mirror, want: "file:///one"},
		{name: "nothing climbs out of a mirror", repo: "https://git.example.com/../../etc", m: mirror, want: "https://git.example.com/../../etc"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := source.NewResolver(source.Config{Map: tc.m, AllowFile: tc.allowFile}).Address(tc.repo)
			refused := ""
			if err != nil {
				refused = err.Error()
			}
			if diff := cmp.Diff([]string{tc.want, tc.refused}, []string{got, refused}); diff != "" {
				t.Errorf("Address(%q) (-want +got):\n%s", tc.repo, diff)
			}
		})
	}
}

func TestReadMap(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, text string
		want       source.Map
	}{
		{"a path becomes a URL", `{"a/b": "/srv/git/b"}`, source.Map{"a/b": "file:///srv/git/b"}},
		{"a relative path does not", `{"a/b": "git/b"}`, nil},
		{"nor another scheme", `{"a/b": "ext::sh"}`, nil},
		{"it must be an object", `[]`, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "map.json")
			if err := os.WriteFile(file, []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := source.ReadMap(file)
			if (err != nil) != (tc.want == nil) {
				t.Fatalf("error = %v", err)
			}
			if err == nil {
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("map (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, raw, refused string }{
		{"local", `{"kind":"local","digest":"sha256:` + hex64 + `"}`, ""},
		{"local without a digest", `{"kind":"local","digest":"../../x"}`, `the source archive has no valid digest: "../../x"`},
		{"git", `{"kind":"git","repo":"a/b","ref":"feature/x","directory":"./m/"}`, ""},
		{"git without a repository", `{"kind":"git"}`, "the source names no repository"},
		{"a directory outside", `{"kind":"git","repo":"a/b","directory":"m/../../x"}`, `directory "../x" is not inside the repository`},
		{"an absolute directory", `{"kind":"git","repo":"a/b","directory":"/etc"}`, `directory "/etc" is not inside the repository`},
		{"a ref that is an option", `{"kind":"git","repo":"a/b","ref":"--x"}`, `"--x" cannot be a branch, a tag or a commit`},
		{"a ref that climbs", `{"kind":"git","repo":"a/b","ref":"refs/../config"}`, `"refs/../config" cannot be a branch, a tag or a commit`},
		{"another kind", `{"kind":"svn"}`, `a source of kind "svn" is not known`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, err := source.Parse([]byte(tc.raw))
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != tc.refused {
				t.Errorf("Parse: %q, want %q", got, tc.refused)
			}
		})
	}
}

const hex64 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
