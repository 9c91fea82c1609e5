package event_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/event"
)

func TestSay(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		kind  event.Kind
		body  string
		facts event.Facts
		want  string
	}{
		{"workflow.queued", `{"number":4,"workflow_kind":"input_update"}`, event.Facts{Release: 7}, "input update #4 (release 7) requested"},
		{"workflow.queued", `{"number":4,"workflow_kind":"deploy","plan_only":true}`, event.Facts{}, "plan of deploy #4 requested"},
		{"workflow.succeeded", `{"number":4,"workflow_kind":"deploy"}`, event.Facts{}, "deploy #4 succeeded"},
		{"workflow.failed", `{"number":4,"workflow_kind":"deploy"}`, event.Facts{Error: "step component/api failed\nmore"}, "deploy #4 failed: step component/api failed"},
		{"workflow.failed", `{"number":4,"workflow_kind":"deploy"}`, event.Facts{Ended: "denied", EndedBy: "ada", Error: "x"}, "deploy #4 ended: denied by ada"},
		{"workflow.failed", `{"number":4,"workflow_kind":"deploy"}`, event.Facts{Ended: "expired"}, "deploy #4 ended: nobody decided in time"},
		{"change.proposed", `{"change_kind":"deploy","resource":"api","resource_kind":"component"}`, event.Facts{}, "deploy of api waits for a decision"},
		{"change.approved", `{"change_kind":"teardown","resource":"sandbox","resource_kind":"sandbox","rule":"person"}`, event.Facts{}, "teardown of the sandbox approved"},
		{"change.approved", `{"change_kind":"deploy","resource":"api","resource_kind":"component","rule":"approve_all"}`, event.Facts{}, "deploy of api approved by a standing answer"},
		{"change.applied", `{"change_kind":"deploy","resource":"api","resource_kind":"component"}`, event.Facts{Release: 2}, "deploy of api (release 2) applied"},
		{"change.applied", `{"change_kind":"accept"}`, event.Facts{Release: 2}, "acceptance of the scripts of release 2 applied"},
		{"change.failed", `{"change_kind":"deploy","resource":"api","resource_kind":"component"}`, event.Facts{Error: strings.Repeat("é", 400)}, "deploy of api failed: " + strings.Repeat("é", 300) + "…"},
		{"inputs.changed", `{"version":3,"changed":["size","zone"],"overrides":["api"]}`, event.Facts{}, "inputs set, version 3: size, zone; own values of api"},
		{"install.updated", `{"changed":["labels","component_toggles"],"toggles":{"cache":"false","api":"default"}}`, event.Facts{}, "api switched to its default, cache switched off, labels changed"},
		{"health.changed", `{"resource":"api","resource_kind":"component","from":"healthy","to":"unhealthy"}`, event.Facts{}, "api is unhealthy (was healthy)"},
		{"check.changed", `{"check":"ping","from":"unknown","to":"healthy"}`, event.Facts{}, "check ping is healthy"},
		{"remediation.started", `{"check":"component/web","action":"restart"}`, event.Facts{}, "remediation of component/web by action restart started"},
		{"remediation.needs_attention", `{"check":"ping","action":"restart","why":"still unhealthy"}`, event.Facts{}, "remediation of ping needs attention: still unhealthy"},
		{"runner.switched", `{"from":"run","to":"pause","version":"v1"}`, event.Facts{}, "the customer set the runner's switch to pause (was run)"},
		{"runner.enrolled", `{"version":"v1.2"}`, event.Facts{}, "runner enrolled, version v1.2"},
		{"action_run.failed", `{"action":"backup","trigger":"cron"}`, event.Facts{}, "action backup failed (scheduled)"},
		{"step.skipped", `{"step":"component/api"}`, event.Facts{}, "step component/api skipped"},
		{"alert.opened", `{"alert_kind":"unhealthy","subject":"answers","text":"answers is unhealthy"}`, event.Facts{}, "alert opened: answers is unhealthy"},
		{"alert.closed", `{"text":"answers is unhealthy","because":"recovered"}`, event.Facts{}, "alert closed: answers is unhealthy (recovered)"},
		{"incident.opened", `{"alert_kind":"runner_silent","subject":"runner","installs":3}`, event.Facts{}, "incident opened: runner runner silent in 3 installs"},
		{"release.created", `{"number":5}`, event.Facts{}, "release 5 made"},
		{"release.signed", `{"number":5,"key_id":"ed25519:6f"}`, event.Facts{}, "release 5 signed"},
		{"release.revoked", `{"number":5,"reason":"it loses data"}`, event.Facts{}, "release 5 revoked: it loses data"},
		{"config.created", `{"number":5}`, event.Facts{}, "app synced: config 5"},
		{"some.thing", `{}`, event.Facts{}, "some.thing"},
		{"inputs.changed", `no json`, event.Facts{}, "inputs.changed"},
	} {
		if got := event.Say(tc.kind, json.RawMessage(tc.body), tc.facts); got != tc.want {
			t.Errorf("%s %s\n got %q\nwant %q", tc.kind, tc.body, got, tc.want)
		}
	}
	// Each kind that there is has a saying, also with nothing in its body.
	for _, d := range event.All {
		if got := event.Say(d.Kind, json.RawMessage(`{}`), event.Facts{}); got == "" || got == string(d.Kind) {
			t.Errorf("%s is told as %q", d.Kind, got)
		}
	}
}
