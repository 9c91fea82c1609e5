package manifestsecrets_test

import (
	"strings"
	"testing"

	"github.com/berth-dev/berth/runner/agent/manifestsecrets"
)

func TestOf(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, text string
		want       string
		notOne     bool
	}{
		{name: "nothing secret", text: "# a comment\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: swordfish}\n"},
		{name: "empty documents", text: "---\n---\n# Source: x\n\n---\n"},
		{name: "data and stringData", text: "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {k: c3dvcmRmaXNo}\nstringData: {p: hunter22}\ntype: Opaque\n", want: "c3dvcmRmaXNo hunter22 swordfish"},
		{name: "bytes that are no text", text: "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {k: /////w==}\n", want: "/////w=="},
		{name: "in a list", text: "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n  metadata: {name: a}\n  stringData: {p: hunter22}\n", want: "hunter22"},
		{name: "JSON", text: `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"stringData":{"p":"hunter22"}}`, want: "hunter22"},
		{name: "a number", text: "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {p: 1234567890}\n", want: "1234567890"},
		{name: "the key of a Secret is not base64", text: "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {p: 'not base64'}\n", want: "not base64"},
		{name: "a kubeconfig", text: "apiVersion: v1\nkind: Config\nusers: []\n", notOne: true},
		{name: "no YAML", text: "a: [", notOne: true},
		{name: "a text", text: "swordfish", notOne: true},
		{name: "one document that is none", text: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\nswordfish\n", notOne: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			values, ok := manifestsecrets.Of(tc.text)
			if got := strings.Join(values, " "); got != tc.want || ok == tc.notOne {
				t.Errorf("values %q, a manifest: %v; want %q, %v", got, ok, tc.want, !tc.notOne)
			}
		})
	}
}
