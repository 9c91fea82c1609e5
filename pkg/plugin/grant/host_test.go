package grant_test

import (
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/plugin/grant"
)

func TestParseHost(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ text, want, wrong string }{
		{text: "api.example.com", want: "api.example.com:443"},
		{text: "API.Example.com:8443", want: "api.example.com:8443"},
		{text: "*.s3.amazonaws.com", want: "*.s3.amazonaws.com:443"},
		{text: "localhost:80", want: "localhost:80"},
		{text: "10.1.2.3:80", want: "10.1.2.3:80"},
		{text: "::ffff:10.1.2.3", want: "10.1.2.3:443"},
		{text: "[2001:db8::1]:80", want: "[2001:db8::1]:80"},
		{text: "2001:db8::1", want: "[2001:db8::1]:443"},
		{text: "", wrong: "no name"},
		{text: "*", wrong: "network = true"},
		{text: "*.com", wrong: "too much"},
		{text: "a.*.example.com", wrong: "no name"},
		{text: "https://example.com", wrong: "no port"},
		{text: "example.com/path", wrong: "no name"},
		{text: "user@example.com", wrong: "no name"},
		{text: "example.com.", wrong: "no name"},
		{text: "example.com:0", wrong: "no port"},
		{text: "example.com:65536", wrong: "no port"},
		{text: "example.com:0443", wrong: "no port"},
		{text: "example.com:", wrong: "no port"},
		{text: "127.1:80", wrong: "like an address"},
		{text: "0x7f.1:80", wrong: "like an address"},
		{text: "2130706433:80", wrong: "like an address"},
		{text: "a.0x7f:80", wrong: "like an address"},
		{text: "fe80::1%eth0", wrong: "zone"},
		{text: "[10.1.2.3]:80", wrong: "IPv6"},
		{text: "a.example.com:443.\n# It uses no network", wrong: "no port"},
		{text: "bücher.example:443", wrong: "xn--"},
		{text: strings.Repeat("a.", 130) + "com", wrong: "no name"},
	} {
		h, err := grant.ParseHost(tc.text)
		switch {
		case tc.wrong != "" && (err == nil || !strings.Contains(err.Error(), tc.wrong)):
			t.Errorf("%q: %v, %v; want an error with %q", tc.text, h, err, tc.wrong)
		case tc.wrong == "" && (err != nil || h.String() != tc.want):
			t.Errorf("%q: %v, %v; want %s", tc.text, h, err, tc.want)
		case tc.wrong == "":
			if again, err := grant.ParseHost(h.String()); err != nil || again != h {
				t.Errorf("%q: %v reads as %v, %v", tc.text, h, again, err)
			}
		}
	}
}

func TestHostsCover(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		granted, asked string
		want           bool
	}{
		{"api.example.com", "api.example.com:443", true},
		{"api.example.com", "api.example.com:80", false},
		{"api.example.com", "a.api.example.com", false},
		{"*.example.com", "api.example.com", true},
		{"*.example.com", "a.b.example.com", true},
		{"*.example.com", "*.b.example.com", true},
		{"*.example.com", "*.example.com", true},
		{"*.example.com", "example.com", false},
		{"*.example.com", "evilexample.com", false},
		{"*.b.example.com", "*.example.com", false},
		{"api.example.com", "*.example.com", false},
		{"10.1.2.3", "10.1.2.3", true},
		{"10.1.2.3", "::ffff:10.1.2.3", true},
		{"10.1.2.3", "10.1.2.4", false},
		{"*.example.com", "10.1.2.3", false},
	} {
		granted, err := grant.ParseHosts([]string{"other.example.org", tc.granted})
		if err != nil {
			t.Fatal(err)
		}
		asked, err := grant.ParseHost(tc.asked)
		if err != nil {
			t.Fatal(err)
		}
		if got := granted.Cover(asked); got != tc.want {
			t.Errorf("%s covers %s: %v", tc.granted, tc.asked, got)
		}
	}
	if _, err := grant.ParseHosts([]string{"a.example.com", "A.example.com:443"}); err == nil || !strings.Contains(err.Error(), "said twice") {
		t.Errorf("the same host twice: %v", err)
	}
}
