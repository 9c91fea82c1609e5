package series_test

import (
	"testing"

	"github.com/berth-dev/berth/services/runner-api/internal/series"
)

// A run that writes no numbers costs no statement: there is no transaction to ask here.
func TestNoNumbersCostNothing(t *testing.T) {
	t.Parallel()
	if err := (series.Writer{}).Store(t.Context(), nil, series.Run{InstallID: "ins_1", Action: "look", ID: "arn_1"}); err != nil {
		t.Error(err)
	}
}
