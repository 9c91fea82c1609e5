package availability

import (
	"slices"

	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// MaxRows bounds the changes that are looked at together.
const MaxRows = 200_000

// ByInstall has the rows of each install, by its id. They come one install after the other.
func ByInstall(rows []ctldb.HealthHistoryRow) map[string][]ctldb.HealthHistoryRow {
	of := map[string][]ctldb.HealthHistoryRow{}
	for _, one := range runs(rows, func(r ctldb.HealthHistoryRow) string { return r.InstallID }) {
		of[one[0].InstallID] = one
	}
	return of
}

// ByResource splits the rows of an install, which come one resource after the other.
func ByResource(rows []ctldb.HealthHistoryRow) [][]ctldb.HealthHistoryRow {
	return runs(rows, func(r ctldb.HealthHistoryRow) string { return r.ID })
}

// runs splits rows where another key begins.
func runs(rows []ctldb.HealthHistoryRow, key func(ctldb.HealthHistoryRow) string) (all [][]ctldb.HealthHistoryRow) {
	for len(rows) > 0 {
		n := slices.IndexFunc(rows, func(r ctldb.HealthHistoryRow) bool { return key(r) != key(rows[0]) })
		if n < 0 {
			n = len(rows)
		}
		all = append(all, rows[:n])
		rows = rows[n:]
	}
	return all
}

// Resources are the spans of each resource of an install.
func (w Window) Resources(rows []ctldb.HealthHistoryRow) (all [][]Span) {
	for _, of := range ByResource(rows) {
		all = append(all, w.SpansOf(of))
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
