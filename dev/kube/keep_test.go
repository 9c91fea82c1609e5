// Package kube_test tries the script that starts a development cluster.
package kube_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// noCluster makes of kube.sh one that touches nothing of the machine, and whose
// start fails as that of a slow machine does.
const noCluster = `
. dev/scripts/kube.sh
owner() { return 1; }
can() { :; }
provide() { :; }
remember_machine() { mkdir -p "$dir/pid"; }
prepare_control() { :; }
prepare_node() { :; }
run_control() { fail "the API server is not ready after 90 s"; }
stop_all() { :; }
put_machine_back() { rm -rf "$dir"; }
up
`

// A start that fails deletes what it began, and nothing of a cluster that was
// there before.
func TestFailedStartKeepsTheClusterThatWasThere(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		data bool // of an earlier start
		says string
	}{
		"a cluster that was there": {data: true, says: "its data is still in"},
		"a first start":            {says: "did not come up, stopping it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			short, err := os.MkdirTemp("", "kube") // paths of sockets are short
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(short) })
			dir := filepath.Join(short, "data")
			file := filepath.Join(dir, "etcd", "member", "snap")
			if tc.data {
				if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte("objects"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.CommandContext(t.Context(), "bash", "-c", strings.TrimPrefix(noCluster, "\n"), "dev/scripts/kube.sh")
			cmd.Dir, cmd.Env = filepath.Join("..", ".."), append(os.Environ(), "BERTH_KUBE_DIR="+dir)
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), tc.says) {
				t.Errorf("up: %v\n%s\nwant it to fail and say %q", err, out, tc.says)
			}
			if kept, _ := os.ReadFile(file); tc.data != (string(kept) == "objects") {
				t.Errorf("its data is %q after\n%s", kept, out)
			}
			if _, err := os.Stat(dir); !tc.data && !os.IsNotExist(err) {
				t.Errorf("what the start began is left: %v\n%s", err, out)
			}
		})
	}
}
