package states_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/helmstate"
	"github.com/berth-dev/berth/runner/agent/states"
)

// Releases of Helm are listed by revision; their values and manifests only when somebody
// asks for them.
func TestShowReleases(t *testing.T) {
	t.Parallel()
	packed, err := helmstate.Pack([]byte(`{"name":"web","version":2,"config":{"password":"canary-value"},"manifest":"kind: Secret # canary-manifest"}`))
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(helmstate.Document{}.Next("lineage", []helmstate.Record{
		{Key: "sh.helm.release.v1.web.v2", Namespace: "shop", Release: "web", Revision: 2, Status: "deployed", Chart: "web", ChartVersion: "1.2.3", Packed: packed},
	}))
	if err != nil {
		t.Fatal(err)
	}
	shown, err := states.Show(body, false)
	if err != nil {
		t.Fatal(err)
	}
	if len(shown.Objects) != 1 || shown.Objects[0].Address != `helm_revision.web["shop/2"]` || shown.Objects[0].Attributes["status"] != "deployed" || shown.Objects[0].Attributes["values"] != states.Masked {
		t.Errorf("shown: %+v", shown)
	}
	if raw, _ := json.Marshal(shown); strings.Contains(string(raw), "canary") {
		t.Errorf("shown without being asked: %s", raw)
	}
	revealed, err := states.Show(body, true)
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := json.Marshal(revealed)
	for _, want := range []string{"canary-value", "canary-manifest"} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("%s is not revealed: %s", want, raw)
		}
	}
	damaged := strings.Replace(string(body), `"packed":"H4sI`, `"packed":"AAAA`, 1)
	if _, err := states.Show([]byte(damaged), true); err == nil {
		t.Error("a damaged record was revealed")
	}
}
