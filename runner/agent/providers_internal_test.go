package agent

import "testing"

func TestMirrorConfig(t *testing.T) {
	t.Parallel()
	for mirror, want := range map[string]string{
		"/srv/providers":                "filesystem_mirror {\n    path = \"/srv/providers\"",
		"/srv/a \"b\" ${c}":             "filesystem_mirror {\n    path = \"/srv/a \\\"b\\\" $${c}\"",
		"https://mirror.example.com/p":  "network_mirror {\n    url = \"https://mirror.example.com/p/\"",
		"https://mirror.example.com/p/": "network_mirror {\n    url = \"https://mirror.example.com/p/\"",
	} {
		want = "provider_installation {\n  " + want + "\n  }\n}\n"
		if got, err := mirrorConfig(mirror); err != nil || got != want {
			t.Errorf("%s: got %s, %v; want %s", mirror, got, err, want)
		}
	}
}
