package output

import (
	"encoding/csv"
	"errors"
	"io"
	"strings"

	"github.com/berth-dev/berth/pkg/csvcell"
	"github.com/berth-dev/berth/pkg/visible"
)

// writeCSV prints every column of the items, also those of -o wide, as RFC 4180
// has it. Nothing is cut, and no cell begins a formula.
func writeCSV[T any](w io.Writer, items []T, v View[T]) error {
	if len(v.Columns) == 0 {
		return errors.New("this is not a table, so there is no -o csv of it; use -o json")
	}
	out := csv.NewWriter(w)
	head := make([]string, len(v.Columns))
	for i, c := range v.Columns {
		head[i] = strings.ReplaceAll(strings.ToLower(c.Head), " ", "_")
	}
	if err := out.Write(head); err != nil {
		return err
	}
	for _, item := range items {
		row := make([]string, len(v.Columns))
		for i, c := range v.Columns {
			row[i] = csvcell.Safe(visible.Line(c.Cell(item)))
		}
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}
