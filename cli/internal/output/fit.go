package output

import (
	"slices"
	"unicode/utf8"
)

// gap is what stands between two columns; narrowGap where a terminal is too
// narrow for it.
const (
	gap       = "   "
	narrowGap = "  "
)

// narrowest is what is left of a column that shrinks, in characters.
const narrowest = 8

// room is how a column gives way to a narrow terminal.
type room struct {
	shrinks, yields bool
	least           int // characters, when it shrinks
}

func roomOf[T any](c Column[T]) room {
	least := c.Least
	if least == 0 {
		least = narrowest
	}
	return room{shrinks: c.Shrinks, yields: c.Yields, least: max(least, utf8.RuneCountInString(c.Head))}
}

// fit makes a row at most width wide, as far as the columns allow. It takes a
// narrower gap, which it returns; then it leaves out columns that yield, until the
// others can be cut enough; then it cuts the cells of those that shrink, the widest
// first. 0 fits everything.
func fit(rows *[][]string, columns []room, width int) string {
	widths := widthsOf(*rows)
	if width <= 0 || sum(widths)+(len(widths)-1)*len(gap) <= width {
		return gap
	}
	for {
		least := slices.Clone(widths)
		for i, c := range columns {
			if c.shrinks {
				least[i] = min(least[i], c.least)
			}
		}
		last := lastThatYields(columns)
		if last < 0 || sum(least)+(len(least)-1)*len(narrowGap) <= width {
			break
		}
		widths, columns = without(widths, last), without(columns, last)
		for n, row := range *rows {
			(*rows)[n] = without(row, last)
		}
	}
	for total := sum(widths) + (len(widths)-1)*len(narrowGap); total > width; total-- {
		widest := -1
		for i, w := range widths {
			if columns[i].shrinks && w > columns[i].least && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	for _, row := range *rows {
		for i, text := range row {
			if runes := []rune(text); len(runes) > widths[i] {
				row[i] = string(runes[:widths[i]-1]) + "…"
			}
		}
	}
	return narrowGap
}

func lastThatYields(columns []room) int {
	for i, c := range slices.Backward(columns) {
		if c.yields {
			return i
		}
	}
	return -1
}

// without is a list without one of its items; the list stays as it is.
func without[T any](list []T, i int) []T { return slices.Concat(list[:i], list[i+1:]) }

func sum(widths []int) (total int) {
	for _, w := range widths {
		total += w
	}
	return total
}
