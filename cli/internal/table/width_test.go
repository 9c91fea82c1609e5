package table_test

import (
	"cmp"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/berth-dev/berth/cli/internal/goldentest"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/table"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// longest are the longest words of the enums that tables show whole.
var longest = map[reflect.Type]string{
	reflect.TypeFor[ctlapi.BuildState]():                string(ctlapi.BuildStateCancelled),
	reflect.TypeFor[ctlapi.ChangeState]():               string(ctlapi.ChangeStateSuperseded),
	reflect.TypeFor[ctlapi.WorkflowState]():             string(ctlapi.WorkflowStateCancelled),
	reflect.TypeFor[ctlapi.ConfigState]():               string(ctlapi.ConfigStateReleased),
	reflect.TypeFor[ctlapi.RunnerState]():               string(ctlapi.RunnerStatePending),
	reflect.TypeFor[ctlapi.TerraformStateVersionKind](): string(ctlapi.TerraformStateVersionKindSuperseded),
	reflect.TypeFor[ctlapi.ActionRunState]():            string(ctlapi.ActionRunStateSucceeded),
	reflect.TypeFor[ctlapi.MetricKind]():                string(ctlapi.MetricKindCounter),
	reflect.TypeFor[ctlapi.RunMetricKind]():             string(ctlapi.RunMetricKindCounter),
}

// fill gives every field of a thing a value as long as there are: whole ids, names
// of 63 letters, sentences.
func fill(v reflect.Value, field string) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), field)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(ago(4000 * 24 * time.Hour)))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), v.Type().Field(i).Name)
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.Set(reflect.ValueOf(json.RawMessage(`"` + strings.Repeat("a value ", 20) + `"`)))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 3, 3))
		for i := range v.Len() {
			fill(v.Index(i), field)
		}
	case reflect.Map:
		key := reflect.New(v.Type().Key()).Elem()
		value := reflect.New(v.Type().Elem()).Elem()
		fill(key, "Name")
		fill(value, "Name")
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		text := strings.Repeat("long-name", 7)
		if field == "ID" || strings.HasSuffix(field, "ID") {
			text = "wfl_01m7y106xkf19s50q54d2nqqxc"
		}
		v.SetString(cmp.Or(longest[v.Type()], text))
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(99999)
	case reflect.Float64:
		v.SetFloat(-1.2345678901234567e-300)
	case reflect.Bool:
		v.SetBool(true)
	}
}

// narrow is a table of one thing on a terminal of 80 columns, with everything in it
// as long as there are, and of none.
func narrow[T any](view output.View[T]) func(*strings.Builder) error {
	return func(w *strings.Builder) error {
		var item T
		fill(reflect.ValueOf(&item).Elem(), "")
		return output.List(w, output.Options{Format: output.Table, Columns: 80}, []T{item}, view)
	}
}

// Every table fits a terminal of 80 columns, whatever is in it.
func TestTablesFitATerminal(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for _, one := range []struct {
		name  string
		print func(*strings.Builder) error
	}{
		{"apps", narrow(table.App(now))},
		{"variables", narrow(table.Variable(now, false))},
		{"variables with values", narrow(table.Variable(now, true))},
		{"configs", narrow(table.Config(now))},
		{"items of a config", narrow(table.ConfigItem())},
		{"builds", narrow(table.Build(now))},
		{"releases", narrow(table.Release(now))},
		{"items of a release", narrow(table.ReleaseItem())},
		{"what a release brings", narrow(table.ManifestItem())},
		{"installs", narrow(table.Install(now))},
		{"inputs", narrow(table.Input())},
		{"resources", narrow(table.Resource(now))},
		{"checks", narrow(table.Check(now))},
		{"stacks", narrow(table.Stack(now))},
		{"status", narrow(table.Status(now))},
		{"history", narrow(table.Timeline(now))},
		{"versions of the state tree", narrow(table.StateVersion(now))},
		{"differences of trees", narrow(table.TreeChange())},
		{"resources of then", narrow(table.SnapshotResource())},
		{"outputs", narrow(table.Output())},
		{"workflows", narrow(table.Workflow(now))},
		{"changes", narrow(table.Change(now))},
		{"actions", narrow(table.Action(now))},
		{"runs of actions", narrow(table.ActionRun(now))},
		{"numbers", narrow(table.Metric(now, true))},
		{"points of a number", narrow(table.MetricPoint(false))},
		{"steps of a number", narrow(table.MetricPoint(true))},
		{"numbers of a run", narrow(table.RunMetric())},
		{"alerts", narrow(table.Alert(now, false))},
		{"all alerts", narrow(table.Alert(now, true))},
		{"mutes", narrow(table.AlertMute(true))},
		{"incidents", narrow(table.Incident(now, true))},
		{"alarms", narrow(table.Alarm(now, false))},
		{"all alarms", narrow(table.Alarm(now, true))},
		{"states", narrow(table.TerraformState(now))},
		{"versions of a state", narrow(table.TerraformStateVersion(now))},
		{"orgs", narrow(table.Org(now))},
		{"tokens", narrow(table.Token(now))},
		{"sessions", narrow(table.BrowserSession(now))},
		{"customers", narrow(table.Customer(now))},
		{"runners", narrow(table.Runner(now))},
		{"members", narrow(table.Member(now))},
		{"contexts", narrow(table.Context())},
	} {
		var got strings.Builder
		if err := one.print(&got); err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(got.String(), "\n") {
			if n := utf8.RuneCountInString(line); n > 80 {
				t.Errorf("%s: %d columns: %s", one.name, n, line)
			}
		}
		all.WriteString("# " + one.name + "\n" + got.String() + "\n")
	}
	goldentest.File(t, "testdata/on_a_terminal.txt", all.String())
}
