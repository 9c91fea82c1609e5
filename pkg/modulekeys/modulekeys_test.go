package modulekeys_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/modulekeys"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, file, says string }{
		{"both kinds", `{"https://git.example.com/team": {"username": "u", "password": "hidden-1"}, "https://r.example.com": {"token": "hidden-1"}}`, ""},
		{"this machine", `{"http://127.0.0.1:8080": {"token": "hidden-1"}}`, ""},
		{"no JSON", `hidden-1`, "it is no JSON object"},
		{"more than one", `{} {"a": "hidden-1"}`, "it is no JSON object"},
		{"an unknown key", `{"https://h": {"tokens": "hidden-1"}}`, "it is no JSON object"},
		{"in clear", `{"http://git.example.com": {"token": "hidden-1"}}`, "would send credentials in clear"},
		{"in the address", `{"https://u:hidden-1@h": {"token": "x"}}`, "has credentials in it"},
		{"another scheme", `{"ssh://git.example.com": {"token": "hidden-1"}}`, "is no https:// address"},
		{"a path that climbs", `{"https://h/a/../b": {"token": "hidden-1"}}`, "is no https:// address"},
		{"half of it", `{"https://h": {"username": "hidden-1"}}`, "needs username and password, or token"},
		{"two ways", `{"https://h": {"username": "u", "password": "hidden-1", "token": "hidden-1"}}`, "needs username and password, or token"},
		{"a header of its own", `{"https://h": {"token": "hidden-1\r\nX: y"}}`, "control character"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, err := modulekeys.Parse([]byte(tc.file))
			if (err == nil) != (tc.says == "") || err != nil && (!strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "hidden-1")) {
				t.Errorf("Parse: %v, want …%s without the credential", err, tc.says)
			}
		})
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	keys, err := modulekeys.Parse([]byte(`{
		"https://git.example.com": {"token": "all"},
		"https://git.example.com/team/": {"token": "team"},
		"http://127.0.0.1:8080": {"username": "u", "password": "p"}
	}`))
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]string{
		"https://git.example.com/other.git":              "https://git.example.com",
		"https://GIT.example.com:443/team/x.git":         "https://git.example.com/team/",
		"https://git.example.com/team":                   "https://git.example.com/team/",
		"https://git.example.com/teams/x.git":            "https://git.example.com",
		"https://git.example.com/team/../other":          "",
		"https://git.example.com/team/%2e%2e/other":      "",
		"http://git.example.com/team":                    "",
		"https://git.example.com:8443/team":              "",
		"https://git.example.com.evil.test/team":         "",
		"https://evil.test/https://git.example.com/team": "",
		"http://127.0.0.1:8080/x":                        "http://127.0.0.1:8080",
		"http://127.0.0.1:8081/x":                        "",
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if name, _, _ := keys.Find(u); name != want {
			t.Errorf("%s is opened by %q, want %q", address, name, want)
		}
	}
	if got, want := keys.Secrets(), []string{"p", "dTpw", "all", "team"}; !slices.Equal(got, want) {
		t.Errorf("secrets %q, want %q", got, want)
	}
}
