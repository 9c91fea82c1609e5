package oidclogin

import (
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/services/internal/auth"
)

func TestRoleOf(t *testing.T) {
	t.Parallel()
	roles, err := ParseRoles("platform-admins=admin, devs=operator,a=b=viewer")
	if err != nil {
		t.Fatal(err)
	}
	everybody, err := ParseRoles("devs=operator,*=viewer")
	if err != nil {
		t.Fatal(err)
	}
	rules, open := Rules{Roles: roles, FirstAdmin: "Ada@example.com"}, Rules{Roles: everybody}
	for _, tt := range []struct {
		name   string
		rules  Rules
		who    Person
		admins int
		want   auth.Role
	}{
		{"no group", rules, Person{Name: "x"}, 1, ""},
		{"another group", rules, Person{Groups: []string{"sales", "Devs"}}, 1, ""},
		{"one group", rules, Person{Groups: []string{"sales", "devs"}}, 1, auth.RoleOperator},
		{"the higher of two", rules, Person{Groups: []string{"devs", "platform-admins"}}, 1, auth.RoleAdmin},
		{"a group with a sign in it", rules, Person{Groups: []string{"a=b"}}, 1, auth.RoleViewer},
		{"the first admin", rules, Person{Email: "ada@example.com"}, 0, auth.RoleAdmin},
		{"the first admin, once there is another", rules, Person{Email: "ada@example.com"}, 1, ""},
		{"an address that is not verified is none", rules, Person{Name: "ada@example.com", Subject: "ada@example.com"}, 0, ""},
		{"no first admin", Rules{Roles: roles}, Person{}, 0, ""},
		{"everybody", open, Person{}, 1, auth.RoleViewer},
		{"everybody, and a group", open, Person{Groups: []string{"devs"}}, 1, auth.RoleOperator},
	} {
		if got := tt.rules.RoleOf(tt.who, tt.admins); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	for _, bad := range []string{"devs", "=admin", "devs=owner", "devs=platform", "devs=customer", "devs=", "devs=admin,devs=viewer"} {
		if _, err := ParseRoles(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestAccountName(t *testing.T) {
	t.Parallel()
	for want, who := range map[string]Person{
		"ada@example.com": {Email: "ada@example.com", Name: "ada", Subject: "1"},
		"ada":             {Name: " a\nda ", Subject: "1"},
		"1":               {Subject: "1"},
		"somebody":        {Name: " "},
	} {
		if got := who.AccountName(); got != want {
			t.Errorf("%+v is called %q, want %q", who, got, want)
		}
	}
	if got := (Person{Name: strings.Repeat("ö", 200)}).AccountName(); len(got) > maxName-8 || strings.ContainsRune(got, '\uFFFD') {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}

func TestPageOf(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"/ui/", "/ui/installs/acme", "/ui/installs?app=shop&x=%2F%2Fevil.example", "/ui/a%20b"} {
		if got := pageOf(good); got != good {
			t.Errorf("%s leads to %s", good, got)
		}
	}
	for _, bad := range []string{
		"", "https://evil.example/ui/", "//evil.example/ui/", "/\\evil.example/ui/", "\\\\evil.example", "/ui/../reference", "/ui/..//evil.example", "/ui/%2e%2e/me",
		"/ui//evil.example", "/ui/\\evil.example", "/ui/%5cevil.example", "/ui/%2f%2fevil.example", "javascript:alert(1)", "/ui", "/uix/", "/reference", "ui/installs",
		"/ui/\r\nSet-Cookie: a=b", "/ui/%0d%0aSet-Cookie:a=b", "http:/ui/", "http:ui/", "https:///ui/", "/%75i/x", "\t//evil.example", "@evil.example/ui/",
	} {
		if got := pageOf(bad); got != home {
			t.Errorf("%q leads to %s", bad, got)
		}
	}
	if u, err := url.Parse(pageOf("/ui/x?a=b#c")); err != nil || u.Host != "" || !strings.HasPrefix(u.Path, home) {
		t.Errorf("a fragment: %v %v", u, err)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	good := Config{Issuer: "https://login.example.com/realms/x", ClientID: "berth", Org: "initech", Roles: "*=viewer"}
	for _, tt := range []struct {
		name   string
		change func(*Config)
		want   string
	}{
		{"all that is needed", func(*Config) {}, ""},
		{"on this machine", func(c *Config) { c.Issuer = "http://127.0.0.1:8080/x" }, ""},
		{"only a first admin", func(c *Config) { c.Roles, c.FirstAdmin = "", "ada@example.com" }, ""},
		{"nothing", func(c *Config) { *c = Config{Name: "n", GroupsClaim: "groups"} }, ""},
		{"http", func(c *Config) { c.Issuer = "http://login.example.com" }, "BERTH_OIDC_ISSUER"},
		{"no address", func(c *Config) { c.Issuer = "login.example.com" }, "BERTH_OIDC_ISSUER"},
		{"no client", func(c *Config) { c.ClientID = "" }, "BERTH_OIDC_CLIENT_ID"},
		{"no org", func(c *Config) { c.Org = "" }, "BERTH_OIDC_ORG"},
		{"nobody gets in", func(c *Config) { c.Roles = "" }, "BERTH_OIDC_ROLES"},
		{"a role that is none", func(c *Config) { c.Roles = "x=root" }, "BERTH_OIDC_ROLES"},
		{"no secret in the file", func(c *Config) { c.ClientSecretFile = filepath.Join(t.TempDir(), "none") }, "BERTH_OIDC_CLIENT_SECRET_FILE"},
		{"no issuer", func(c *Config) { c.Issuer = "" }, "BERTH_OIDC_ISSUER"},
	} {
		c := good
		tt.change(&c)
		err := c.Validate()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}
