package words_test

import (
	"strings"
	"testing"

	"github.com/berth-dev/berth/cli/internal/words"
)

func TestOf(t *testing.T) {
	t.Parallel()
	nouns := map[string]string{"installs": "installs", "install": "installs", "apps": "apps", "app": "apps", "releases": "releases", "release": "releases"}
	for typed, want := range map[string]string{
		"ps":                    "status",
		"ps acme -o json":       "status acme -o json",
		"ls":                    "status",
		"whoami":                "context show",
		"plan acme --to 4":      "deploy --plan acme --to 4",
		"validate ./app":        "apps validate ./app",
		"init":                  "apps init",
		"cancel acme":           "workflows cancel acme",
		"render ./app":          "apps render ./app",
		"graph":                 "apps graph",
		"list":                  "status",
		"show acme":             "installs show acme",
		"inputs acme --set a=1": "installs inputs acme --set a=1",
		"toggle acme web off":   "installs toggle acme web off",
		"run acme restart":      "actions run acme restart",
		"reject acme/web":       "deny acme/web",
		"watch acme":            "workflows watch acme",
		"get installs":          "installs list",
		"get -o json installs":  "installs list -o json",
		"get install acme":      "installs show acme",
		"get install/acme":      "installs show acme",
		"get acme":              "installs show acme",
		"get releases hello":    "releases list hello",
		"get release hello@4":   "releases show hello@4",
		"describe app hello":    "apps show hello",
		"describe acme -o yaml": "installs show acme -o yaml",
		"describe --help":       "installs show --help",
	} {
		word, rest, _ := strings.Cut(typed, " ")
		if got := strings.Join(words.Of(word, strings.Fields(rest), nouns).Command, " "); got != want {
			t.Errorf("berth %s: got berth %s, want berth %s", typed, got, want)
		}
	}
	// What destroys is named, and never done by a word of somebody else.
	for _, word := range []string{"destroy", "uninstall", "rm", "teardown", "deprovision", "apply", "upgrade", "components", "secrets", "delete", "exec", "open", "login", "get", "describe"} {
		if m := words.Of(word, nil, nouns); m.Command != nil || !strings.Contains(m.Answer, "berth ") {
			t.Errorf("berth %s: %+v", word, m)
		}
	}
	for _, word := range words.Known() {
		if m := words.Of(word, []string{"acme"}, nouns); (m.Command == nil) == (m.Answer == "") {
			t.Errorf("berth %s acme: %+v", word, m)
		}
	}
}
