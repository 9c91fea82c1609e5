package availability

import (
	"slices"

	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// MaxRows bounds the changes that are looked at together.
const MaxRows = 200_000

// ByResource splits the rows of an install, which come one resource after the other.
func ByResource(rows []ctldb.HealthHistoryRow) (all [][]ctldb.HealthHistoryRow) {
	for len(rows) > 0 {
		n := slices.IndexFunc(rows, func(r ctldb.HealthHistoryRow) bool { return r.ID != rows[0].ID })
		if n < 0 {
			n = len(rows)
		}
		all = append(all, rows[:n])
		rows = rows[n:]
	}
	return all
}

// SpansOf are the Spans of one resource by its rows.
func (w Window) SpansOf(rows []ctldb.HealthHistoryRow) []Span {
	points := make([]Point, 0, len(rows))
	for _, row := range rows {
		p := Point{At: row.At, Verdict: model.Verdict(row.Health)}
		if row.State == string(model.ResourceAbsent) {
			p.Verdict = ""
		}
		points = append(points, p)
	}
	return w.Spans(points)
}
