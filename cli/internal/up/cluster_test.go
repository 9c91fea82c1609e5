package up_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/cli/internal/up"
)

func TestKubeconfigOf(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	here, there, gone := filepath.Join(dir, "here"), filepath.Join(dir, "there"), filepath.Join(dir, "gone")
	for _, path := range []string{here, there} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct{ name, before, environment, want string }{
		{"none", "", "", ""},
		{"the one of the environment", "", here, here},
		{"an earlier one stays, whatever shell it is", here, there, here},
		{"unless it is gone", gone, there, there},
		{"one that comes back later is waited for", gone, "", gone},
		{"of several files none is chosen", "", here + ":" + there, ""},
		{"nor one that is not there", "", gone, ""},
		{"nor one whose place depends on the shell", "", "here", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := up.KubeconfigOf(tc.before, tc.environment); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// environ is a variable of a process of ours.
func environ(t *testing.T, pid int, name string) string {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		t.Fatal(err)
	}
	for entry := range strings.SplitSeq(string(raw), "\x00") {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// Local installs get the cluster and a registry of their own, and after a
// restart the same ones without being told again.
func TestLocalInstallsGetTheCluster(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	kubeconfig := filepath.Join(filepath.Dir(h.layout.Dir), "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	stop := h.up(map[string]string{"KUBECONFIG": kubeconfig})
	order := up.Order{
		Kind: "install", OrgID: "org_1", InstallID: "ins_1", Name: "acme",
		EnrolmentSecret: "ben_secret", StackVersion: 1, RunnerAPIURL: up.URL(h.port + 1), LogURL: up.URL(h.port + 2),
	}
	for name, install := range map[string]string{"acme": "rnr_1", "zenith": "rnr_2"} {
		order.Name = name
		if status := h.call("PUT", "/runners/"+install, order); status != 202 {
			t.Fatalf("PUT: %d", status)
		}
	}
	addresses := map[string]string{}
	look := func() {
		for _, name := range []string{"acme", "zenith"} {
			h.eventually("runner and registry of "+name+" run", func() bool {
				pids := h.pids()
				return pids["runner "+name] != 0 && pids["registry "+name] != 0
			})
			pid := h.pids()["runner "+name]
			if got := environ(t, pid, "BERTH_KUBECONFIG"); got != kubeconfig {
				t.Errorf("%s has kubeconfig %q, want %q", name, got, kubeconfig)
			}
			address := environ(t, pid, "BERTH_REGISTRY_ADDRESS")
			if before := addresses[name]; address == "" || before != "" && before != address {
				t.Errorf("%s has the registry %q, before it was %q", name, address, before)
			}
			addresses[name] = address
		}
		if addresses["acme"] == addresses["zenith"] {
			t.Errorf("both have the registry %s", addresses["acme"])
		}
	}
	look()
	registry := h.pids()["registry acme"]
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if running(registry) {
		t.Errorf("the registry (pid %d) runs on after the stop", registry)
	}
	h.up(nil)
	look()
	registry = h.pids()["registry acme"]
	if status := h.call("DELETE", "/runners/rnr_1", nil); status != 204 || running(registry) {
		t.Errorf("DELETE: %d; the registry runs on: %v", status, running(registry))
	}
}

func TestKubeconfigThatIsNotThere(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	cfg := h.config(func(string) { t.Error("it became ready") }, nil)
	named := filepath.Join(t.TempDir(), "kubeconfig")
	cfg.Kubeconfig = &named
	if err := up.Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "there is no file "+named) {
		t.Errorf("got %v, want it to name the file", err)
	}
}
