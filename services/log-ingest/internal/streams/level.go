package streams

import (
	"regexp"
	"strings"

	"github.com/berth-dev/berth/pkg/logship"
)

// Level is how bad a line says that it is. Lines have no field for it: it is read from
// their beginnings, as the common tools write it.
type Level string

// The levels. NoLevel is a line that says none.
const (
	NoLevel Level = ""
	Error   Level = "error"
	Warning Level = "warning"
)

// levelIn is how much of a line is looked at, in bytes: its level stands in front.
const levelIn = 512

var (
	colours = regexp.MustCompile("\x1b\\[[0-9;:]*m")

	// A word in front, after a time, brackets or what Terraform draws around its
	// errors; or a field of a structured line.
	errorLine   = levelPattern(`error|err|fatal|panic|critical|crit|alert|emerg`, `E`)
	warningLine = levelPattern(`warning|warn`, `W`)
)

func levelPattern(words, klog string) *regexp.Regexp {
	return regexp.MustCompile(
		`(?i:^[\s│╷╵|>*]*(?:\[?[\d:T.,Z/+ -]{8,35}\]?\s*)?[\[<(]?(?:` + words + `)[\])>]?(?::|\s|!|$))` +
			`|(?i:[\s{,"](?:level|lvl|severity)"?\s*[=:]\s*"?(?:` + words + `)\b)` +
			`|^` + klog + `\d{4} \d\d:\d\d:\d\d`)
}

// LevelOf reads the level of a record.
func LevelOf(r logship.Record) Level {
	text := plain(r.Text[:min(len(r.Text), levelIn)])
	switch {
	case r.Lost:
		return Warning
	case errorLine.MatchString(text):
		return Error
	case warningLine.MatchString(text):
		return Warning
	}
	return NoLevel
}

// plain is a text without its colours.
func plain(text string) string {
	if !strings.Contains(text, "\x1b[") {
		return text
	}
	return colours.ReplaceAllString(text, "")
}
