package names

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/berth-dev/berth/cli/internal/usage"
)

// Both writes out two versions to compare: a plain number belongs to the app of
// the other one, to the app that is given, or to the folder we are in.
func Both(app, from, to string) (string, string, error) {
	if !isNumber(from) {
		if name, _, ok := strings.Cut(from, "@"); ok && isNumber(to) {
			to = name + "@" + to
		}
		return from, to, nil
	}
	if name, _, ok := strings.Cut(to, "@"); ok && app == "" {
		app = name
	}
	if app == "" {
		here, err := os.Getwd()
		if err != nil {
			return "", "", err
		}
		if _, err := os.Stat(filepath.Join(here, "metadata.toml")); err != nil {
			return "", "", usage.Errorf("which app does number %s belong to? Write APP@%s, use --app, or change to the app's folder", from, from)
		}
		app = filepath.Base(here)
	}
	from = app + "@" + from
	if isNumber(to) {
		to = app + "@" + to
	}
	return from, to, nil
}
