package job

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"testing/quick"

	"github.com/berth-dev/berth/pkg/interpolate"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/seal"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/jobdir"
)

// words are those of ordinary charts, plans and logs.
var words = strings.Fields(`metrics: frontend labels: annotations: kube-state-metrics selector: containers: matchLabels: apiVersion: v1
	namespace: monitoring app.kubernetes.io/name: prometheus resources: requests: ServiceAccount ClusterRoleBinding image: ports: n8n-frontend
	template: protocol: TCP terminationGracePeriodSeconds: receivers: dashboard.json: inhibit_rules: enabled: true`)

// A release is a manifest with what in it is secret.
type randomRelease struct {
	manifest string
	plain    []string // lines of all objects that are no Secrets
	secrets  []string // values of Secrets, and a sealed input
	input    string   // that input, which a ConfigMap shows
}

func randomReleaseOf(seed uint64) randomRelease {
	r := rand.New(rand.NewPCG(seed, 16))
	text := func(n int, from string) string {
		var b strings.Builder
		for range n {
			b.WriteByte(from[r.IntN(len(from))])
		}
		return b.String()
	}
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	value := func() string {
		switch r.IntN(4) {
		case 0: // a key
			return "-----BEGIN PRIVATE KEY-----\n" + text(64, letters) + "\n" + text(64, letters) + "\n-----END PRIVATE KEY-----\n"
		case 1: // a configuration
			return "global:\n  receivers:\n    - name: x\n      password: " + text(16, letters) + "\n"
		case 2:
			return text(12+r.IntN(20), letters+`!"$%&/()=?'\+#-.:;<> `) + "z"
		}
		return text(12+r.IntN(20), letters)
	}
	var out randomRelease
	out.input = text(20, letters)
	out.secrets = append(out.secrets, out.input)
	var docs []string
	for i := range 2 + r.IntN(5) {
		var doc string
		if r.IntN(2) == 0 {
			doc = fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata:\n  name: keys%d\ntype: Opaque\n", i)
			data, plain := "", ""
			for k := range 1 + r.IntN(3) {
				v := value()
				out.secrets = append(out.secrets, v)
				if r.IntN(2) == 0 {
					data += fmt.Sprintf("  k%d: %s\n", k, base64.StdEncoding.EncodeToString([]byte(v)))
				} else {
					quoted, _ := json.Marshal(v)
					plain += fmt.Sprintf("  s%d: %s\n", k, quoted)
				}
			}
			if data != "" {
				doc += "data:\n" + data
			}
			if plain != "" {
				doc += "stringData:\n" + plain
			}
		} else {
			doc = fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings%d\n  labels:\n    app: kube-state-metrics\ndata:\n  text: |\n", i)
			for range 1 + r.IntN(8) {
				doc += "    " + words[r.IntN(len(words))] + " " + words[r.IntN(len(words))] + "\n    " + words[r.IntN(len(words))] + "\n"
			}
			out.plain = append(out.plain, strings.Split(doc, "\n")...)
			doc += "  password: " + out.input + "\n"
		}
		docs = append(docs, "# Source: web/templates/"+words[r.IntN(len(words))]+"\n"+doc)
	}
	out.manifest = "---\n" + strings.Join(docs, "---\n")
	return out
}

// innocent is a text of a plan or log without any of the secrets.
func (r randomRelease) innocent(seed uint64) string {
	rnd := rand.New(rand.NewPCG(seed, 17))
	var b strings.Builder
	for range 40 {
		b.WriteString(words[rnd.IntN(len(words))] + []string{"", " ", ":v2.20.0 ", "/", "-"}[rnd.IntN(5)])
	}
	return b.String() + "\n" + strings.Join(r.plain, "\n") + "\nkube-state-metrics:v2.20.0\n"
}

// spellings are the ways in which a tool may print a secret, line by line where it has lines.
func spellings(secret string) []string {
	var out []string
	values := []string{secret}
	if strings.HasPrefix(secret, "-----BEGIN") {
		values = append(values, strings.Split(secret, "\n")[1:3]...)
	}
	for _, v := range values {
		quoted, _ := json.Marshal(v)
		b64 := base64.StdEncoding.EncodeToString
		out = append(out, v, string(quoted[1:len(quoted)-1]), b64([]byte(v)), base64.RawURLEncoding.EncodeToString([]byte(v)), hex.EncodeToString([]byte(v)),
			url.QueryEscape(v), url.PathEscape(v), b64([]byte("u:"+v)), b64([]byte("ab:"+v)), b64([]byte("abc:"+v)))
	}
	return out
}

// leftOf is a piece of a spelling that is still in a text; pieces of this length
// are not there by chance.
func leftOf(spelling, text string) string {
	const piece = 11
	// Around a secret, and not secret itself.
	around := "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\\nglobal:\n  receivers:\n    - name: x\n      password: "
	for i := 0; i+piece <= len(spelling); i++ {
		if p := spelling[i : i+piece]; strings.Contains(text, p) && !strings.Contains(around, p) {
			return p
		}
	}
	return ""
}

func (r randomRelease) check(t *testing.T, seed uint64, redacted func(string) string) bool {
	t.Helper()
	text := r.innocent(seed)
	if got := redacted(text); got != text {
		lines, was := strings.Split(got, "\n"), strings.Split(text, "\n")
		for i := range lines {
			if i < len(was) && lines[i] != was[i] {
				t.Logf("seed %d: %q became %q", seed, was[i], lines[i])
				break
			}
		}
		return false
	}
	for _, secret := range r.secrets {
		for i, spelling := range spellings(secret) {
			if left := leftOf(spelling, redacted("before "+spelling+" after")); left != "" {
				t.Logf("seed %d: %q is left of %q, spelling %d", seed, left, secret, i)
				return false
			}
		}
	}
	return true
}

// Of a chart's manifest only the values of Secrets are secret, and what is sealed
// by itself: no word of any other object is ever taken out of a text.
func TestManifestHidesOnlyItsSecrets(t *testing.T) {
	t.Parallel()
	id, err := seal.GenerateIdentity()
	if err != nil {
		t.Fatal(err)
	}
	t.Run("of another component", func(t *testing.T) {
		t.Parallel()
		if err := quick.Check(func(seed uint64) bool {
			r := randomReleaseOf(seed)
			return r.check(t, seed, manifestJob(t, id, r).secrets.set.String)
		}, &quick.Config{MaxCount: 60}); err != nil {
			t.Error(err)
		}
	})
	t.Run("of the component itself", func(t *testing.T) {
		t.Parallel()
		if err := quick.Check(func(seed uint64) bool {
			r := randomReleaseOf(seed)
			j := &job{deps: &Deps{Keys: datadir.Keys{Seal: id}}, secrets: newSecrets(), dir: jobdir.Folder{Path: t.TempDir()}}
			j.spec = jobspec.Spec{
				OrgID: "org_1", InstallID: "ins_1", Kind: jobspec.KindHelmChart, Operation: jobspec.OperationApply,
				Resource: &jobspec.Resource{ID: "res_1", Kind: "component", Name: "web"},
			}
			j.hide(r.input) // its templates name it
			value, _ := json.Marshal(r.manifest)
			j.learnOutput("manifest", value, func(v any) { j.secrets.add(v, "") })
			return r.check(t, seed, j.secrets.set.String)
		}, &quick.Config{MaxCount: 60}); err != nil {
			t.Error(err)
		}
	})
}

// manifestJob is a job whose template names the manifest of another component,
// and nothing else.
func manifestJob(t *testing.T, id *seal.Identity, r randomRelease) *job {
	t.Helper()
	tree := map[string]any{
		"inputs": map[string]any{"inputs": map[string]any{"password": r.input}},
		"components": map[string]any{"web": map[string]any{"install_component_id": "res_web", "outputs": map[string]any{
			"manifest": r.manifest, "release": map[string]any{"name": "web", "chart": "kube-state-metrics"},
		}}},
	}
	at := interpolate.SealedLeaves("org_1", "ins_1", tree)
	sealed, err := seal.SealLeaves([]string{id.Recipient()}, tree, func(path []string) (seal.Purpose, bool) {
		purpose, ok := at(path)
		return purpose, ok && path[len(path)-1] != "release"
	})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(sealed)
	if err != nil {
		t.Fatal(err)
	}
	j := &job{deps: &Deps{Keys: datadir.Keys{Seal: id}}, secrets: newSecrets(), dir: jobdir.Folder{Path: t.TempDir()}}
	j.spec = jobspec.Spec{
		OrgID: "org_1", InstallID: "ins_1", Kind: jobspec.KindAction, Operation: jobspec.OperationRun, State: raw,
		Action: &jobspec.Action{Steps: []jobspec.ActionStep{{InlineContents: "{{ .nuon.components.web.outputs.manifest }}"}}},
	}
	spec, err := j.openState()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(spec.State), r.input) && !strings.Contains(r.manifest, r.input) {
		t.Fatal("the engine gets an input that no template names")
	}
	return j
}
