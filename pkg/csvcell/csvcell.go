// Package csvcell makes text safe to stand in a cell of a CSV file. The command
// line and the API write their files with it.
package csvcell

import (
	"strconv"
	"strings"
)

// Safe puts an apostrophe before a text that a spreadsheet would take for a
// formula: names and labels are other people's words. Numbers stay.
func Safe(text string) string {
	trimmed := strings.TrimLeft(text, " \t\r\n")
	if trimmed == "" || !strings.ContainsRune("=+-@|%", rune(trimmed[0])) && trimmed == text {
		return text
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return text
	}
	return "'" + text
}
