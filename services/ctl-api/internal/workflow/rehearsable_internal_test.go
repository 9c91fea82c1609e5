package workflow

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// A release that leaves parts of the app out comes to no real install, whichever part
// it is.
func TestStandInsOnlyComeToRehearsals(t *testing.T) {
	t.Parallel()
	ext := &appconfig.BlockExtension{StandIn: "unreachable"}
	for part, app := range map[string]*appconfig.App{
		"sandbox":       {Sandbox: &appconfig.Sandbox{Berth: ext}},
		"component/api": {Components: []appconfig.Component{{Name: "db"}, {Name: "api", Berth: ext}}},
		"action/seed":   {Actions: []appconfig.Action{{Name: "seed", Berth: &appconfig.ActionExtension{StandIn: "unreachable"}}}},
	} {
		err := rehearsable(ctldb.Install{Name: "acme"}, app)
		if !errors.Is(err, fault.ErrConflict) || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v", part, err)
		}
		if err := rehearsable(ctldb.Install{Rehearsal: json.RawMessage(`{}`)}, app); err != nil {
			t.Errorf("%s in a rehearsal: %v", part, err)
		}
	}
	if err := rehearsable(ctldb.Install{}, &appconfig.App{Components: []appconfig.Component{{Name: "api"}}}); err != nil {
		t.Errorf("an app without stand-ins: %v", err)
	}
}
