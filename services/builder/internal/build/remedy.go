package build

import (
	"fmt"

	"github.com/berth-dev/berth/services/builder/internal/source"
)

// remedyOf says what to do in the app folder about a source that cannot be had.
func remedyOf(e *source.Error, b Build) string {
	if e.Operator {
		return "builder's operator has to set this right: docs/guides/private-registries.md"
	}
	remedy := correct(b, e.Key)
	if e.CopyWillDo {
		remedy += fmt.Sprintf(", or sync with a copy of the repository: berth sync --source-map %s=FOLDER", b.Source.Repo)
	}
	return remedy
}

// correct names the key to correct, and its file where that is known; "" for
// neither.
func correct(b Build, key source.Key) string {
	switch {
	case key != "" && b.File != "":
		return fmt.Sprintf("correct %s in %s", key, b.File)
	case key != "":
		return fmt.Sprintf("correct %s of %s", key, b.Component)
	case b.File != "":
		return "correct " + b.File
	}
	return ""
}
