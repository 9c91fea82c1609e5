// Package table says how each noun looks to people: the columns of its table and
// what is printed when there is none. Printing is package output's.
//
// A view that shows ages takes the time that they end at.
package table

import (
	"time"

	"github.com/berth-dev/berth/cli/internal/follow"
)

// shortID is what is left of an id where a table is too wide for the terminal:
// enough to name it, as commands take the beginning of an id.
const shortID = 18

// age is how long ago something was.
func age(now, then time.Time) string { return follow.Duration(now.Sub(then)) }

// ageOf is age, "" for what has not been.
func ageOf(now time.Time, then *time.Time) string {
	if then == nil {
		return ""
	}
	return age(now, *then)
}
