package footprint_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/footprint"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/pkg/visible"
)

// FuzzOf: any documents have a footprint, with a digest, that is bounded and safe to show;
// what stays as it is is not new.
func FuzzOf(f *testing.F) {
	f.Add([]byte(deployment(`{"hostNetwork":true,"containers":[{"image":"a/b:1","ports":[{"hostPort":1}],"env":[{"name":"A","value":"https://x.example.com:1/"}]}]}`)))
	f.Add([]byte(role(`[{"apiGroups":["","*"],"resources":["*"],"resourceNames":["a"],"verbs":["*"]},{"nonResourceURLs":["/x"],"verbs":["get"]}]`)))
	f.Add([]byte(kube("v1", "Service", `"spec":{"type":"LoadBalancer","ports":[{"port":1e3}],"externalIPs":["::1"]}`)))
	f.Add([]byte(kube("gateway.networking.k8s.io/v1", "Gateway", `"spec":{"listeners":[{"port":443}]}`)))
	for _, c := range []change{
		aws("aws_iam_role", "create", "", `{"assume_role_policy":"{\"Statement\":{\"Effect\":\"Allow\",\"Action\":\"*\",\"Principal\":{\"AWS\":[\"*\",\"1\"]}}}"}`),
		aws("aws_security_group", "delete create", `{}`, `{"ingress":[{"from_port":0,"to_port":0,"protocol":-1,"cidr_blocks":["::/0"]}]}`),
		{kind: "google_storage_bucket_iam_policy", provider: "google", doing: "create", now: `{"policy_data":"{\"bindings\":[{\"role\":\"r\",\"members\":[\"allUsers\"]}]}"}`, sensitive: `{"x":[true]}`, unknown: `true`},
	} {
		encoded, err := json.Marshal(map[string]any{"resource_changes": []any{map[string]any{
			"address": c.kind, "mode": "managed", "type": c.kind, "provider_name": c.provider,
			"change": map[string]any{"actions": strings.Fields(c.doing), "after": json.RawMessage(c.now)},
		}}})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(encoded)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, form := range []policy.Form{policy.FormObject, policy.FormPlan, policy.FormPulumi, policy.FormChanges} {
			made := footprint.Of([]policy.Document{{Form: form, Body: body}}, footprint.Known{})
			if _, err := made.Digest(); err != nil {
				t.Fatalf("%s: %v", form, err)
			}
			for _, line := range made.Lines() {
				if strings.ContainsFunc(line, visible.Hidden) || strings.Contains(line, "\n") {
					t.Fatalf("%s: %q", form, line)
				}
			}
			if encoded, err := json.Marshal(made); err != nil || len(encoded) > 4<<20 {
				t.Fatalf("%s: %d bytes, %v", form, len(encoded), err)
			}
		}
		if same := footprint.Of([]policy.Document{{Form: policy.FormObject, Operation: policy.Update, Old: body, Body: body}}, footprint.Known{}); !same.Empty() {
			t.Fatalf("what stays is new: %+v", same)
		}
	})
}
