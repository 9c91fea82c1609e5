package secretsync

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/kube"
)

const install = "ins01"

func api(version int, value string) target {
	return target{
		Namespace: "shop", Name: "api", Keys: map[string]source{"token": {Secret: "token", Version: version, Digest: "hmac-sha256:0123456789abcdef0123"}},
		data: map[string][]byte{"token": []byte(value)},
	}
}

// What is done with a Secret is said by what is there and by whose it is.
func TestChange(t *testing.T) {
	t.Parallel()
	live := func(change func(*corev1.Secret)) *corev1.Secret {
		s := api(1, "value one").object(install)
		s.UID = "uid"
		change(s)
		return s
	}
	yes := true
	for _, tt := range []struct {
		name    string
		live    *corev1.Secret
		wanted  target
		want    kube.Action
		refused string
	}{
		{name: "it is not there", wanted: api(1, "value one"), want: kube.ActionCreate},
		{name: "it is as it should be", live: live(func(*corev1.Secret) {}), wanted: api(1, "value one")},
		{name: "another version", live: live(func(*corev1.Secret) {}), wanted: api(2, "value two"), want: kube.ActionUpdate},
		{name: "another version of the same value", live: live(func(*corev1.Secret) {}), wanted: api(3, "value one"), want: kube.ActionUpdate},
		{name: "somebody changed the value", live: live(func(s *corev1.Secret) { s.Data["token"] = []byte("by hand") }), wanted: api(1, "value one"), want: kube.ActionUpdate},
		{name: "somebody added a key", live: live(func(s *corev1.Secret) { s.Data["more"] = []byte("by hand") }), wanted: api(1, "value one"), want: kube.ActionUpdate},
		{name: "somebody damaged the annotation", live: live(func(s *corev1.Secret) { s.Annotations[annotationSources] = "{" }), wanted: api(1, "value one"), want: kube.ActionUpdate},
		{name: "nobody's", live: live(func(s *corev1.Secret) { s.Labels, s.Annotations = nil, nil }), wanted: api(1, "value one"), refused: "was not made by Berth"},
		{name: "only labelled as managed by Berth, such as a component's", live: live(func(s *corev1.Secret) { delete(s.Labels, labelCopies) }), wanted: api(1, "value one"), refused: "was not made by Berth"},
		{name: "another install's", live: live(func(s *corev1.Secret) { s.Annotations[kube.AnnotationInstall] = "ins02" }), wanted: api(1, "value one"), refused: "belongs to install ins02"},
		{name: "immutable, and as it should be", live: live(func(s *corev1.Secret) { s.Immutable = &yes }), wanted: api(1, "value one")},
		{name: "immutable, and has to change", live: live(func(s *corev1.Secret) { s.Immutable = &yes }), wanted: api(2, "value two"), refused: "immutable"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			change, refusal := tt.wanted.change(tt.live, install)
			switch {
			case tt.refused != "":
				if refusal == nil || !strings.Contains(refusal.Message, tt.refused) {
					t.Errorf("%+v, %v, want a refusal with %q", change, refusal, tt.refused)
				}
			case refusal != nil || change.Action != tt.want:
				t.Errorf("%q, %v, want %q", change.Action, refusal, tt.want)
			}
			shown, err := json.Marshal(change)
			if err != nil || strings.Contains(string(shown), "value one") || strings.Contains(string(shown), "value two") || strings.Contains(string(shown), "by hand") {
				t.Errorf("the change shows a value: %s %v", shown, err)
			}
			if tt.live == nil {
				return
			}
			if gone := removal(tt.wanted.ref(), tt.live, install); (gone.Action == kube.ActionDelete) != ours(tt.live, install) {
				t.Errorf("its removal is %q", gone.Action)
			}
		})
	}
}

// What an order wants of a state, and what is wrong with it. No error quotes a value.
func TestWanted(t *testing.T) {
	t.Parallel()
	const state = `{"secrets":{
		"token":{"exists":true,"version":2,"digest":"hmac-sha256:aa","value":"a-token-value"},
		"not-copied":{"exists":true,"version":1,"digest":"hmac-sha256:cc","value":{"$sealed":"c2VhbGVk"}},
		"cert":{"exists":true,"version":1,"digest":"hmac-sha256:bb","value":"Y2VydGlmaWNhdGU="},
		"unset":{"exists":false,"version":0,"digest":"","value":""}},
		"sandbox":{"outputs":{"namespace":"shop"}}}`
	at := func(secret, namespace, name, key string) jobspec.SecretCopy {
		return jobspec.SecretCopy{Secret: secret, Namespace: namespace, Name: name, Key: key}
	}
	cert := at("cert", "shop", "both", "cert")
	cert.Format = "base64"
	badly := at("token", "shop", "x", "y")
	badly.Format = "base64"
	for _, tt := range []struct {
		name   string
		copies []jobspec.SecretCopy
		want   []string // namespace/name key=value
		wrong  string
	}{
		{name: "two secrets in one Secret", copies: []jobspec.SecretCopy{at("token", "{{ .nuon.sandbox.outputs.namespace }}", "both", "token"), cert}, want: []string{"shop/both cert=certificate", "shop/both token=a-token-value"}},
		{name: "one without a value is left out", copies: []jobspec.SecretCopy{at("unset", "shop", "x", "y")}},
		{name: "one key twice", copies: []jobspec.SecretCopy{at("token", "shop", "x", "y"), at("cert", "shop", "x", "y")}, wrong: "secrets token and cert are both copied to key y"},
		{name: "a secret that the state does not have", copies: []jobspec.SecretCopy{at("other", "shop", "x", "y")}, wrong: "no secret other"},
		{name: "no base64", copies: []jobspec.SecretCopy{badly}, wrong: "secret token is no base64"},
		{name: "a value as a name", copies: []jobspec.SecretCopy{at("token", "shop", "{{ .nuon.secrets.token.value }}", "y")}, wrong: "value"},
		{name: "all of a secret as a name", copies: []jobspec.SecretCopy{at("token", "shop", "{{ .nuon.secrets.token | toJson }}", "y")}, wrong: "is no name for a Secret"},
		{name: "a value as a name, by the other tree", copies: []jobspec.SecretCopy{at("token", "shop", "{{ .berth.secrets.token.value }}", "y")}, wrong: "value"},
		{name: "a value as a name, by the install's part", copies: []jobspec.SecretCopy{at("token", "shop", "{{ .nuon.install.secrets.token.value }}", "y")}, wrong: "install"},
		{name: "no namespace", copies: []jobspec.SecretCopy{at("token", "../kube-system", "x", "y")}, wrong: "is no name for a namespace"},
		{name: "no key", copies: []jobspec.SecretCopy{at("token", "shop", "x", "a/b")}, wrong: "is no name for a key"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			out, err := os.Create(filepath.Join(t.TempDir(), "log"))
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			j := &job.Job{Stdout: out, Spec: jobspec.Spec{InstallID: install, State: json.RawMessage(state), SecretSync: &jobspec.SecretSync{Copies: tt.copies}}}
			targets, _, err := wanted(j)
			if tt.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wrong) || strings.Contains(err.Error(), "a-token-value") {
					t.Errorf("%v, want an error with %q", err, tt.wrong)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range copied(targets) {
				for _, target := range targets {
					if target.Name == c.Name && target.Namespace == c.Namespace {
						got = append(got, c.Namespace+"/"+c.Name+" "+c.Key+"="+string(target.data[c.Key]))
					}
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("targets (-want +got):\n%s", diff)
			}
		})
	}
}
