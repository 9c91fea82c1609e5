package rehearse_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/cli/internal/rehearse"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRequest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stack := write(t, dir, "outputs.json", `{"vpc_id": "vpc-1", "region": "eu-west-1"}`)
	write(t, dir, "rec/sandbox.json", `{"cluster": {"value": {"name": "prod"}, "type": ["object", {}], "sensitive": false}, "token": {"value": "hunter2", "type": "string", "sensitive": true}}`)
	write(t, dir, "rec/components/db.json", `{"host": "db.example.com", "value": {"value": 1}}`)
	for _, tt := range []struct {
		name  string
		flags rehearse.Flags
		want  *ctlapi.RehearsalRequest
		fails string
	}{
		{name: "none"},
		{name: "outputs without --rehearse", flags: rehearse.Flags{Stack: []string{"a=b"}}, fails: "need --rehearse"},
		{name: "all made up", flags: rehearse.Flags{Rehearse: true}, want: &ctlapi.RehearsalRequest{Given: &ctlapi.RehearsalOutputs{}}},
		{name: "no pair", flags: rehearse.Flags{Rehearse: true, Stack: []string{"a"}}, fails: "is not NAME=VALUE"},
		{name: "one wins over the file", flags: rehearse.Flags{Rehearse: true, StackFile: stack, Stack: []string{"vpc_id=vpc-2", "zones=[\"a\"]", "size=3", "account_id=000000000000", "other=123456789012"}},
			want: &ctlapi.RehearsalRequest{Given: &ctlapi.RehearsalOutputs{Stack: map[string]any{
				"vpc_id": "vpc-2", "region": "eu-west-1", "zones": []any{"a"}, "size": 3.0, "account_id": "000000000000", "other": "123456789012"}}}},
		{name: "recorded, but for what is sensitive", flags: rehearse.Flags{Rehearse: true, Recorded: filepath.Join(dir, "rec")},
			want: &ctlapi.RehearsalRequest{Given: &ctlapi.RehearsalOutputs{}, Recorded: &ctlapi.RehearsalOutputs{
				Sandbox:    map[string]any{"cluster": map[string]any{"name": "prod"}},
				Components: map[string]map[string]any{"db": {"host": "db.example.com", "value": map[string]any{"value": 1.0}}}}}},
		{name: "nothing recorded", flags: rehearse.Flags{Rehearse: true, Recorded: t.TempDir()}, fails: "there are no recorded outputs"},
		{name: "no JSON", flags: rehearse.Flags{Rehearse: true, StackFile: write(t, dir, "bad.json", "[1]")}, fails: "no JSON object"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var warned bytes.Buffer
			got, err := tt.flags.Request(&warned)
			if tt.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fails) {
					t.Errorf("error %v, want %q", err, tt.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if strings.Contains(warned.String(), "hunter2") || (tt.flags.Recorded != "") != strings.Contains(warned.String(), "output token is sensitive") {
				t.Errorf("warned: %q", warned.String())
			}
		})
	}
}
