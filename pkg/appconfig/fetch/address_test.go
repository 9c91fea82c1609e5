package fetch_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/appconfigtest"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/fetch"
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

func TestParseAddress(t *testing.T) {
	t.Parallel()
	type address = fetch.Address
	for written, want := range map[string]address{
		"https://example.com/a.yaml":                                {URL: "https://example.com/a.yaml"},
		"http://127.0.0.1:8080/a?b=c":                               {URL: "http://127.0.0.1:8080/a?b=c"},
		"https://[::1]:8443/a@v1/b":                                 {URL: "https://[::1]:8443/a@v1/b"},
		"git::https://example.com/a/b.git//c/d.yaml":                {Git: true, URL: "https://example.com/a/b.git", Path: "c/d.yaml"},
		"git::https://example.com/a/b//c.yaml?ref=v1.2":             {Git: true, URL: "https://example.com/a/b", Path: "c.yaml", Ref: "v1.2"},
		"git::https://example.com/a/b//c.yaml?ref=feat/x&depth=1":   {Git: true, URL: "https://example.com/a/b", Path: "c.yaml", Ref: "feat/x"},
		"git::ssh://git@example.com:22/a/b.git//c.yaml?ref=release": {Git: true, URL: "ssh://git@example.com:22/a/b.git", Path: "c.yaml", Ref: "release"},
		"git::git@example.com:a/b.git//c.yaml":                      {Git: true, URL: "ssh://git@example.com/a/b.git", Path: "c.yaml"},
		"git::file:///srv/b.git//c.yaml":                            {Git: true, URL: "file:///srv/b.git", Path: "c.yaml"},
	} {
		got, err := fetch.ParseAddress(written)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", written, err, diff)
		}
	}
	for _, tc := range []struct{ name, written, want string }{
		{"a password", "https://user:canary@example.com/a", "credentials"},
		{"a token for a name", "https://canary@example.com/a", "credentials"},
		{"a token in the query", "https://example.com/a?x=1&Token=canary", "credentials"},
		{"a signature", "https://example.com/a?X-Amz-Signature=canary", "credentials"},
		{"a password of git", "git::https://user:canary@example.com/a//b", "credentials"},
		{"a token of git", "git::https://canary@example.com/a//b", "credentials"},
		{"a password of ssh", "git::ssh://git:canary@example.com/a//b", "credentials"},
		{"a key of ssh", "git::ssh://git@example.com/a//b?sshkey=canary", "credentials"},
		{"a template", "https://example.com/{{ .nuon.install.id }}", "template"},
		{"a space", "https://example.com/a b", "space"},
		{"a newline", "git::https://example.com/a//b\nc", "control character"},
		{"text that is turned around", "https://example.com/\u202eb", "control character"},
		{"no host", "https:///a", "names no host"},
		{"an option for a host", "git::ssh://-oProxyCommand=x/a//b", "names no host"},
		{"an option for a user", "git::ssh://-oProxyCommand=x@example.com/a//b", "credentials"},
		{"an option for a repository", "git::--upload-pack=x//b", "names no repository"},
		{"an option for a ref", "git::https://example.com/a//b?ref=--upload-pack=x", "ref that cannot be"},
		{"a refspec for a ref", "git::https://example.com/a//b?ref=main:refs/heads/x", "ref that cannot be"},
		{"a range for a ref", "git::https://example.com/a//b?ref=a..b", "ref that cannot be"},
		{"a program", "git::ext::sh -c x//b", "space"},
		{"a program without a space", "git::ext::sh//b", "names no repository"},
		{"another transport", "git::ext://sh/a//b", "not fetched"},
		{"a path up", "git::https://example.com/a//../b", "plain path"},
		{"a path up further down", "git::https://example.com/a//b/../../c", "plain path"},
		{"an absolute path", "git::https://example.com/a///etc/passwd", "plain path"},
		{"no path", "git::https://example.com/a", "no file of the repository"},
		{"all of a repository", "git::https://example.com/a//", "no file of the repository"},
		{"no repository", "git::https://example.com//a", "names no repository"},
		{"a host of files", "git::file://example.com/a//b", "names a host"},
		{"another part of the query", "git::https://example.com/a//b?archive=zip", "other than ref"},
	} {
		got, err := fetch.ParseAddress(tc.written)
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %s is %+v (%v), want an error with %q", tc.name, tc.written, got, err, tc.want)
		}
	}
}

// What has credentials is refused where it stands, and they are not repeated.
func TestCredentialsInAddresses(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"https://user:canary@example.com/a", "https://canary@example.com/a", "https://user:can/canary@example.com/a", "https://example.com/a?token=canary",
		"git::https://user:canary@example.com/a//b", "git::user:canary@example.com:a//b", "git::ssh://git@example.com/a//b?sshkey=canary",
	} {
		_, diags := check.Folder(appconfigtest.Folder(map[string]string{
			"components/a.toml": appconfigtest.Module("a", "[[var_file]]\ncontents = \""+address+"\""), "components/b.toml": appconfigtest.Module("b", "source = \""+address+"\""),
		}), appconfig.LoadOptions{})
		if got := appconfigtest.Render(diags); len(diags) != 2 || !strings.Contains(got, "components/a.toml:5:1 error contents: ") || !strings.Contains(got, "components/b.toml:4:1 error source: ") ||
			strings.Contains(got, "canary") {
			t.Errorf("%s: got\n%s", address, got)
		}
	}
}

func TestHasCredentials(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"":                                     false,
		"owner/name":                           false,
		"https://example.com/a.git":            false,
		"https://example.com/a@v1/b":           false,
		"https://example.com/?q=a@b":           false,
		"git@github.com:owner/name.git":        false,
		"ssh://git@example.com/a":              false,
		"registry.example.com:5000/team/api":   false,
		"registry.example.com/api@sha256:0123": false,
		"registry:5000/api@sha256:0123":        false,
		"{{.nuon.install.inputs.repo}}":        false,
		"https://example.com/?tokens=3":        false,
		"https://example.com/?token=":          false,

		"https://me:hunter2@example.com/a":               true,
		"https://ghp_0123456789@github.com/a/b":          true,
		"HTTPS://me@example.com/a":                       true,
		"git::https://me:hunter2@example.com/a//b":       true,
		"ssh://git:hunter2@example.com/a":                true,
		"oci://me:hunter2@registry.example.com/chart":    true,
		"me:hunter2@registry.example.com/team/api":       true,
		"me:hunter2@git.example.com:owner/name":          true,
		"https://me:{{.nuon.secret}}@example.com/a":      true,
		"https://me:p@ss@example.com/a":                  true,
		"https://example.com/a?private_token=hunter2":    true,
		"https://example.com/a?x=1&TOKEN=hunter2":        true,
		"https://example.com/a?%74oken=hunter2":          true,
		"https://b.s3.amazonaws.com/k?X-Amz-Signature=1": true,
	} {
		if got := fetch.HasCredentials(address); got != want {
			t.Errorf("HasCredentials(%q) = %t, want %t", address, got, want)
		}
	}
}

// Wherever a folder names a place, credentials in it are refused, and not shown.
func TestAttackCredentialsInStoredAddresses(t *testing.T) {
	t.Parallel()
	const secret = "hunter2hunter2"
	for name, files := range map[string]map[string]string{
		"a repository":   {"components/a.toml": "name = \"a\"\ntype = \"helm_chart\"\nchart_name = \"a\"\n[public_repo]\nrepo = \"https://me:" + secret + "@example.com/a.git\"\n"},
		"a chart":        {"components/a.toml": "name = \"a\"\ntype = \"helm_chart\"\nchart_name = \"a\"\n[helm_repo]\nrepo_url = \"oci://me:" + secret + "@example.com/charts\"\nchart = \"a\"\n"},
		"an image":       {"components/a.toml": "name = \"a\"\ntype = \"container_image\"\n[public]\nimage_url = \"me:" + secret + "@example.com/api\"\ntag = \"1\"\n"},
		"a sandbox":      {"sandbox.toml": "terraform_version = \"1.9.0\"\n[connected_repo]\nrepo = \"https://" + secret + "@example.com/a.git\"\n"},
		"an action":      {"actions/a.toml": "name = \"a\"\n[[steps]]\nname = \"s\"\ncommand = \"true\"\n[steps.public_repo]\nrepo = \"https://me:" + secret + "@example.com/a.git\"\n"},
		"a webhook":      {"metadata.toml": "version = \"v2\"\nslack_webhook_url = \"https://me:" + secret + "@example.com/hook\"\n"},
		"a stack's file": {"stack.toml": "type = \"aws-cloudformation\"\nname = \"s\"\ndescription = \"d\"\nvpc_nested_template_url = \"https://example.com/x?token=" + secret + "\"\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, diags := appconfig.Load(appconfigtest.Folder(files), appconfig.LoadOptions{})
			found := false
			for _, d := range diags {
				found = found || (d.Severity == place.Error && strings.Contains(d.Message, "has credentials in it"))
				if strings.Contains(d.Message+d.Remedy, secret) {
					t.Errorf("a diagnostic shows them: %s", d.Message)
				}
			}
			if !found {
				t.Errorf("not refused: %v", diags)
			}
		})
	}
}
