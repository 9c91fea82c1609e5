package orders_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/services/ctl-api/internal/orders"
)

func TestScriptsOfAnApp(t *testing.T) {
	t.Parallel()
	app, diags := check.Folder(os.DirFS("../../../../examples/hello"), appconfig.LoadOptions{})
	if place.HasErrors(diags) {
		t.Fatal(diags)
	}
	app.Actions = append(app.Actions, appconfig.Action{
		Name: "clean", Role: "maintenance", Timeout: place.Duration(time.Minute),
		Inputs:   []appconfig.ActionInput{{Name: "PATH"}, {Name: "AGE"}},
		Triggers: []appconfig.Trigger{{Type: appconfig.TriggerCron, CronSchedule: "0 3 * * *"}, {Type: appconfig.TriggerCron, CronSchedule: "0 4 * * *"}},
		Steps:    []appconfig.Step{{Name: "one", Command: "true"}},
	})
	list, err := orders.Scripts(app)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range list {
		got = append(got, strings.Join([]string{s.Action.Name, s.Cron, s.Role, strings.Join(s.Inputs, "+"), map[bool]string{true: "check"}[s.HealthCheck]}, "|"))
	}
	want := []string{"files_intact|* * * * *|||check", "clean|0 3 * * *|maintenance|AGE+PATH|", "clean|0 4 * * *|maintenance|AGE+PATH|"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("scripts (-want +got):\n%s", diff)
	}
}
