package sync_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/cli/internal/sync"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// A control plane of another release may see more: that is shown, and what was
// shown here already is not shown again.
func TestWarningsOfTheControlPlane(t *testing.T) {
	t.Parallel()
	var errs bytes.Buffer
	line, column := 4, 3
	file := "components/api.toml"
	sync.TellWarnings(&errs, []ctlapi.Warning{
		{File: &file, Line: &line, Column: &column, Code: "unknown_key", Message: "seen here"},
		{File: &file, Line: &line, Column: &column, Code: "unknown_key", Message: "seen there"},
		{Code: "app", Message: "of the app"},
	}, []place.Diagnostic{{File: file, Line: line, Message: "seen here"}})
	want := fmt.Sprintf("%s:4:3 warning seen there\nwarning of the app\n", file)
	if diff := cmp.Diff(want, errs.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
