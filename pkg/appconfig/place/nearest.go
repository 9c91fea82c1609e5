package place

import (
	"strings"
)

// Meant is "; did you mean X?" for the end of a sentence about a misspelt word, and ""
// when no candidate is close.
func Meant(word string, candidates []string) string {
	if near := Nearest(word, candidates); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}

// Nearest returns the candidate that a misspelt or shortened word most likely
// means, or "" when none is close.
func Nearest(word string, candidates []string) string {
	const (
		shortest = 3  // letters that say something as a beginning
		longest  = 80 // letters that a misspelt key may have; distances cost time
	)
	if len(word) > longest {
		return ""
	}
	plain := plainWord(word)
	best, bestDistance := "", max(1, len(word)/3)+1
	beginning := ""
	for _, c := range candidates {
		if c != word && plainWord(c) == plain {
			return c // other capitals or dashes
		}
		if d := editDistance(word, c); d < bestDistance {
			best, bestDistance = c, d
		}
		if len(word) >= shortest && strings.HasPrefix(c, word) && c != word && (beginning == "" || len(c) < len(beginning)) {
			beginning = c
		}
	}
	if beginning != "" && bestDistance > 1 {
		return beginning
	}
	return best
}

var withoutDashes = strings.NewReplacer("_", "", "-", "")

func plainWord(word string) string { return withoutDashes.Replace(strings.ToLower(word)) }

// editDistance counts the letters to insert, delete, replace, or swap with
// their neighbour to make b from a.
func editDistance(a, b string) int {
	before, prev := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, prev = prev, row
	}
	return prev[len(b)]
}
