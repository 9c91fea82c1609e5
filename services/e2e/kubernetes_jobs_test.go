package e2e_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestKubernetesJobs has engines as Kubernetes Jobs: an app with a component of
// each kind comes up, engines see nothing of the agent's, and an agent that is
// killed in the middle of an apply, with its pod or without, goes on with the
// very engine that it had.
func TestKubernetesJobs(t *testing.T) {
	t.Parallel()
	app := imageActions
	if raceDetector() {
		app = slowFolder
	}
	k, runner := newStack(t, app, "")

	t.Run("actions run in an image of the app", func(t *testing.T) {
		if raceDetector() {
			t.Skip("a runner with the race detector is linked to libraries, which another image may not have")
		}
		k.on(t).inImage()
	})

	remove := func(k *shop, options ...string) {
		if _, err := k.command("kubectl", append([]string{"--namespace", runner, "delete", "pod"}, options...)...); err != nil {
			k.t.Fatal(err)
		}
	}
	for i, tt := range []struct {
		name string
		kill func(k *shop)
		// drained: the engine's own pod goes, so its change is planned again.
		drained bool
	}{
		{name: "the agent's process is killed", kill: func(k *shop) { k.signal(k.agentIn(runner), syscall.SIGKILL) }},
		{name: "the agent's pod is killed", kill: func(k *shop) {
			remove(k, "--selector", "app=berth-runner", "--force", "--grace-period", "0")
		}},
		// As a drain of the node does.
		{name: "all pods of the runner are deleted", drained: true, kill: func(k *shop) { remove(k, "--all", "--wait=false") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := k.on(t)
			memory := fmt.Sprintf("%dMi", 70+i)
			k.limit(memory)
			w := k.deploy(true, "web")
			k.rollingOut(w.ID, memory)
			before := k.enginePod(runner)
			if i == 0 {
				k.seesNothing(runner, before)
			}
			tt.kill(k)
			if tt.drained {
				k.eventually(goOnTimeout, "the engine's pod is gone", func() error {
					_, err := k.command("kubectl", "--namespace", runner, "wait", "--for=delete", "pod/"+before, "--timeout", "60s")
					return err
				})
			} else if after := k.enginePod(runner); after != before {
				t.Errorf("the engine's pod was %s and is %s", before, after)
			}
			got := k.finished(w.ID, goOnTimeout+slowRollout+time.Minute) // a pod that takes over has to start
			if got.State != "succeeded" {
				t.Fatalf("workflow: %s", k.explain(got))
			}
			if tt.drained {
				k.plannedAgain(w.ID)
			}
			for _, c := range k.changes("uncertain") {
				if c.WorkflowID == w.ID && !tt.drained {
					t.Error("the change counts as uncertain, though its engine went on")
				}
			}
			k.settledRelease(memory)
		})
	}

	t.Run("no Job is left", func(t *testing.T) {
		k := k.on(t)
		k.eventually(goOnTimeout, "the Jobs are gone", func() error {
			// Health checks have engines too, so one may just be there.
			left, err := k.command("kubectl", "--namespace", runner, "get", "jobs", "--output", "name")
			if n := len(strings.Fields(left)); err == nil && n > 1 {
				err = fmt.Errorf("%d are left", n)
			}
			return err
		})
	})
}

// enginePod is the pod of the one engine that applies.
func (k *shop) enginePod(runner string) string {
	k.t.Helper()
	job := k.onlyJob(k.database(), `operation = 'apply' and state = 'leased'`)
	label := "berth.dev/engine=berth-engine-" + strings.ReplaceAll(job, "_", "-") + "-1"
	var name string
	k.eventually(goOnTimeout, "one engine is at work", func() error {
		out, err := k.command("kubectl", "--namespace", runner, "get", "pods", "--selector", label,
			"--field-selector", "status.phase=Running", "--output", "jsonpath={.items[*].metadata.name}")
		if err == nil && len(strings.Fields(out)) != 1 {
			err = fmt.Errorf("pods with %s: %q", label, out)
		}
		name = strings.TrimSpace(out)
		return err
	})
	return name
}

// seesNothing looks at an engine's pod from inside.
func (k *shop) seesNothing(runner, pod string) {
	k.t.Helper()
	out, err := k.command("kubectl", "--namespace", runner, "exec", pod, "--", "bash", "-c", `id -u
ls -d /data/identity /data/jobs/*/attempt.json /run/berth/code /var/run/secrets/kubernetes.io 2>/dev/null
cat /sys/fs/cgroup/memory.max 2>/dev/null || cat /sys/fs/cgroup/memory/memory.limit_in_bytes`)
	if want := "61000\n4294967296\n"; err != nil || out != want {
		k.t.Errorf("in the engine's pod: %v, %q, want %q", err, out, want)
	}
	// It has the agent's user, so what keeps it from what the agent reads, other
	// than its output, is that this is mounted read-only.
	out, err = k.command("kubectl", "--namespace", runner, "exec", pod, "--", "bash", "-c", `cd /data/jobs/*/pod || exit 9
for try in "touch new" "mv stdout.log gone" "rm begun" "ln -sf /data/identity stdout.log" "touch ../engine/new" "touch ../engine/in/new" "touch ../new"; do
  $try 2>/dev/null && echo "$try works"
done
touch ../engine/out/new ../engine/work/new && rm ../engine/out/new ../engine/work/new && echo done`)
	if want := "done\n"; err != nil || out != want {
		k.t.Errorf("what the engine's pod can write to: %v, %q, want %q", err, out, want)
	}
	out, err = k.command("kubectl", "--namespace", runner, "get", "pods", "--output",
		`jsonpath={range .items[*]}{.metadata.name}{" "}{.spec.containers[*].image}{" "}{.spec.containers[*].resources.limits.cpu}{"\n"}{end}`)
	if err != nil {
		k.t.Fatal(err)
	}
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) < 3 || strings.Count(line, "@sha256:")*2 != len(fields)-1 {
			k.t.Errorf("a pod without digest or CPU limit: %s", line)
		}
	}
	if level, err := k.command("kubectl", "get", "namespace", runner, "--output", `jsonpath={.metadata.labels.pod-security\.kubernetes\.io/enforce}`); err != nil || level != "restricted" {
		k.t.Errorf("the runner's namespace has the level %q, %v", level, err)
	}
}

// agentIn is the process of the agent in the pod of a namespace; the cluster's
// node is this machine.
func (k *shop) agentIn(runner string) int {
	k.t.Helper()
	var pid int
	k.eventually(goOnTimeout, "the agent's process is found", func() error {
		paths, err := filepath.Glob("/proc/[0-9]*/environ")
		if err != nil {
			return err
		}
		for _, path := range paths {
			env, _ := os.ReadFile(path) // it may have ended meanwhile
			cmdline, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
			if bytes.Contains(env, []byte("BERTH_POD_NAMESPACE="+runner+"\x00")) && bytes.HasSuffix(cmdline, []byte("\x00run\x00--in-cluster\x00")) {
				pid, err = strconv.Atoi(filepath.Base(filepath.Dir(path)))
				return err
			}
		}
		return errors.New("no process is the agent of " + runner)
	})
	return pid
}

// raceDetector tells whether the executables that are tested have it.
func raceDetector() bool { return filepath.Base(os.Getenv("BERTH_LIBEXEC")) == "race" }

// imageActions is the shop with actions that run in the image of its web server,
// which holds one program and no shell.
func imageActions(t *testing.T) string {
	t.Helper()
	app := slowFolder(t)
	const probe = "command = \"/web probe http://web.{{ .nuon.sandbox.outputs.namespace }}.svc/healthz\"\nenv_vars = {NO_PROXY = \"*\", no_proxy = \"*\"}\n"
	for name, step := range map[string]string{
		"inside":       probe,
		"inside_check": probe + "[labels]\ntype = \"health-check\"\n",
		"no_shell":     "inline_contents = \"#!/bin/sh\\necho no\"\n",
	} {
		text := "name = \"" + name + "\"\ntimeout = \"2m\"\ndependencies = [\"web\"]\nimage = \"{{ .nuon.components.web_image.outputs.image.ref }}\"\n[[triggers]]\ntype = \"manual\"\n[[steps]]\nname = \"one\"\n" + step
		if err := os.WriteFile(filepath.Join(app, "actions", name+".toml"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return app
}

// inImage runs actions in the image, planned ones and a check: its program reaches
// the shop over the cluster's network.
func (k *shop) inImage() {
	k.t.Helper()
	var made struct{ Image struct{ Ref string } }
	k.outputs("web_image", &made)
	for _, name := range []string{"inside", "inside_check"} {
		k.must("actions", "run", k.name, name, "--watch")
		said := k.must("logs", k.name+"/"+name)
		if want := "the steps run in image " + made.Image.Ref; made.Image.Ref == "" || !strings.Contains(said, want) {
			k.t.Errorf("%s does not say %q:\n%s", name, want, said)
		}
	}
	out, problem, code := k.run("actions", "run", k.name, "no_shell", "--watch")
	out += problem
	if want := "there is no sh in image " + made.Image.Ref; code == 0 || !strings.Contains(out, want) {
		k.t.Errorf("a script for a shell ended with %d and does not say %q:\n%s", code, want, out)
	}
}
