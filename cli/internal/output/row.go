package output

import "io"

// Row prints an item as one line of a table without an end: nobody knows how wide its
// columns will be, so each is padded to its least width.
func Row[T any](w io.Writer, o Options, item T, v View[T]) error {
	var row []string
	var room []int
	for _, c := range v.Columns {
		if !c.Wide || o.Format == Wide {
			row, room = append(row, cell(c.Cell(item))), append(room, c.Least)
		}
	}
	return align(w, [][]string{padded(row, room)}, aligned{gap: narrowGap, color: o.Color})
}

// padded fills each cell up to its width.
func padded(row []string, widths []int) []string {
	out := make([]string, len(row))
	for i, text := range row {
		out[i] = text
		for n := len([]rune(text)); n < widths[i]; n++ {
			out[i] += " "
		}
	}
	return out
}
