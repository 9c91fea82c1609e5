package scripts

import "strings"

// maxTable bounds the work of one diff, in pairs of lines that are compared.
// What differs more than that is shown as all old lines, then all new ones.
const maxTable = 4 << 20

// Diff shows the whole of two texts, line by line: two blanks before a line that
// stays, "- " before one that goes, "+ " before one that comes.
func Diff(before, after string) string {
	a, b := lines(before), lines(after)
	start := 0
	for start < len(a) && start < len(b) && a[start] == b[start] {
		start++
	}
	end := 0
	for end < len(a)-start && end < len(b)-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	var out strings.Builder
	put := func(mark string, list []string) {
		for _, line := range list {
			out.WriteString(mark + line + "\n")
		}
	}
	put("  ", a[:start])
	middle(a[start:len(a)-end], b[start:len(b)-end], put)
	put("  ", a[len(a)-end:])
	return out.String()
}

// middle shows what lies between the lines that both texts begin and end with, by
// their longest common subsequence.
func middle(a, b []string, put func(mark string, list []string)) {
	if len(a)*len(b) > maxTable {
		put("- ", a)
		put("+ ", b)
		return
	}
	longest := make([][]int32, len(a)+1) // of a[i:] and b[j:]
	for i := range longest {
		longest[i] = make([]int32, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				longest[i][j] = longest[i+1][j+1] + 1
			} else {
				longest[i][j] = max(longest[i+1][j], longest[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] == b[j]:
			put("  ", a[i:i+1])
			i, j = i+1, j+1
		case longest[i+1][j] >= longest[i][j+1]:
			put("- ", a[i:i+1])
			i++
		default:
			put("+ ", b[j:j+1])
			j++
		}
	}
	put("- ", a[i:])
	put("+ ", b[j:])
}

// lines cuts a text. A text whose last line has no end differs from one where it
// has: that is a byte, too.
func lines(text string) []string {
	if text == "" {
		return nil
	}
	list := strings.Split(text, "\n")
	if list[len(list)-1] == "" {
		return list[:len(list)-1]
	}
	list[len(list)-1] += "  (no line feed at the end)"
	return list
}
