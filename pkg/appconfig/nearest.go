package appconfig

import "strings"

// nearest returns the candidate that a misspelt or shortened word most likely
// means, or "" when none is close.
func nearest(word string, candidates []string) string {
	const shortest = 3 // letters that say something as a beginning
	best, bestDistance := "", max(1, len(word)/3)+1
	for _, c := range candidates {
		if len(word) >= shortest && strings.HasPrefix(c, word) && c != word {
			return c
		}
		if d := editDistance(word, c); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

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
