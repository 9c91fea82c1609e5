package grant_test

import (
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/plugin/grant"
)

func TestParsePath(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ text, want, wrong string }{
		{text: "/etc/myapp:ro", want: "/etc/myapp:ro"},
		{text: "/var/lib/myapp", want: "/var/lib/myapp"},
		{text: "/var/lib/myapp:rw", want: "/var/lib/myapp"},
		{text: "/runner", want: "/runner"},
		{text: "/var/runner", want: "/var/runner"},
		{text: "", wrong: "not absolute"},
		{text: ":ro", wrong: "not absolute"},
		{text: "etc/myapp", wrong: "not absolute"},
		{text: "/etc/myapp/", wrong: "shortest"},
		{text: "/etc/../proc", wrong: "shortest"},
		{text: "//etc/myapp", wrong: "shortest"},
		{text: "/etc/myapp:x", wrong: "no other colon"},
		{text: "/etc/myapp:ro:ro", wrong: "no other colon"},
		{text: "/", wrong: "too much"},
		{text: "/etc:ro", wrong: "too much"},
		{text: "/var/lib", wrong: "too much"},
		{text: "/proc/self", wrong: "no plugin is shown /proc"},
		{text: "/sys", wrong: "no plugin is shown /sys"},
		{text: "/dev/sda", wrong: "no plugin is shown /dev"},
		{text: "/run/secrets/token:ro", wrong: "no plugin is shown /run"},
		{text: "/var/run/docker.sock", wrong: "no plugin is shown /var/run"},
		{text: "/etc/my\napp", wrong: "can be shown"},
		{text: "/" + strings.Repeat("x", 600), wrong: "can be shown"},
	} {
		p, err := grant.ParsePath(tc.text)
		switch {
		case tc.wrong != "" && (err == nil || !strings.Contains(err.Error(), tc.wrong)):
			t.Errorf("%q: %v, %v; want an error with %q", tc.text, p, err, tc.wrong)
		case tc.wrong == "" && (err != nil || p.String() != tc.want):
			t.Errorf("%q: %v, %v; want %s", tc.text, p, err, tc.want)
		case tc.wrong == "":
			if again, err := grant.ParsePath(p.String()); err != nil || again != p {
				t.Errorf("%q: %v reads as %v, %v", tc.text, p, again, err)
			}
		}
	}
	for _, list := range [][]string{{"/opt/a", "/opt/a:ro"}, {"/opt/a", "/opt/a/b"}, {"/opt/a/b", "/opt/a"}} {
		if _, err := grant.ParsePaths(list); err == nil || !strings.Contains(err.Error(), "it meets") {
			t.Errorf("%v: %v", list, err)
		}
	}
	if _, err := grant.ParsePaths([]string{"/opt/a", "/opt/ab"}); err != nil {
		t.Error(err)
	}
}

func TestPathCovers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		granted, asked string
		want           bool
	}{
		{"/opt/a", "/opt/a", true},
		{"/opt/a", "/opt/a:ro", true},
		{"/opt/a:ro", "/opt/a", false},
		{"/opt/a", "/opt/a/b", false},
	} {
		granted, noGrant := grant.ParsePath(tc.granted)
		asked, noAsk := grant.ParsePath(tc.asked)
		if noGrant != nil || noAsk != nil || granted.Covers(asked) != tc.want {
			t.Errorf("%s covers %s: want %v (%v, %v)", tc.granted, tc.asked, tc.want, noGrant, noAsk)
		}
	}
}
