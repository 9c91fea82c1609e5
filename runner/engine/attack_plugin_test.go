package engine_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/plugin"
)

// plan is the body of a shell plugin that plans well.
const planWell = `echo '{"a":1}' > out/plan.canonical.json
echo '{"objects":[{"address":"x","action":"create"}]}' > out/plan.summary.json
mkdir out/pinned; echo y > out/pinned/y
`

const succeed = `echo '{"outcome":"succeeded"}' > out/result.json` + "\n"

// A plugin that does not keep the contract costs its own job: that fails, says which
// rule was broken, and nothing of what it claims goes any further.
func TestAttackPluginBreaksTheContract(t *testing.T) {
	t.Parallel()
	prefix := withoutNetwork(t)
	for _, tc := range []struct {
		name, script string
		want         string // in the error
	}{
		{"it leaves nothing", "", "left no result.json"},
		{"it dies", "kill -9 $$", "left no result.json"},
		{"it succeeds with an exit code that says otherwise", planWell + succeed + "exit 3", "ended with exit code 3"},
		{"it never ends", "sleep 1000", "took longer than the"},
		{"it ignores being stopped", "trap '' TERM\nwhile :; do sleep 1; done", "took longer than the"},
		{"it calls being too slow a stop", "trap 'echo \"{\\\"outcome\\\":\\\"cancelled\\\",\\\"error\\\":\\\"x\\\"}\" > out/result.json; exit 1' TERM\nsleep 1000 & wait", "took longer than the"},
		{"it calls being too slow no start", "trap 'echo \"{\\\"outcome\\\":\\\"not_started\\\",\\\"error\\\":\\\"x\\\"}\" > out/result.json; exit 10' TERM\nsleep 1000 & wait", "took longer than the"},
		{"it was stopped by nobody", planWell + `echo '{"outcome":"cancelled","error":"x"}' > out/result.json; exit 1`, "nobody stopped it"},
		{"it floods the log", "yes", "bytes to its log"},
		{"it floods the log through the result", `head -c 100000 /dev/zero | tr '\0' x > out/result.json`, "larger than 65536 bytes"},
		{"it makes files without end", "cd work; i=0; while :; do i=$((i+1)); : > $i; done", "more than 20000 files"},
		{"it writes one file without end", "cat /dev/zero > work/x; " + planWell + succeed, "bytes of files"},
		{"its plan is larger than a plan may be", planWell + "{ printf '\"'; head -c 9000000 /dev/zero | tr '\\0' x; printf '\"'; } > out/plan.canonical.json\n" + succeed, "larger than 8388608 bytes"},
		{"it speaks for another job", planWell + `echo '{"outcome":"succeeded","job_id":"job_2"}' > out/result.json`, "its result is of job \"job_2\""},
		{"it says what only the agent may say", planWell + `echo '{"outcome":"uncertain"}' > out/result.json`, "none that it may say"},
		{"it hides what it does", planWell + `echo '{"outcome":"succeeded","no_change":true}' > out/result.json`, "says that nothing changes, and lists 1 to create"},
		{"it shows nothing of what it does", planWell + `echo '{}' > out/plan.summary.json` + "\n" + succeed, "has changes and lists none"},
		{"it pins nothing", planWell + "rm -r out/pinned\n" + succeed, "pinned nothing"},
		{"it pins a link to what is not its own", planWell + "ln -s ../../../../job.json out/pinned/z\n" + succeed, "is no file"},
		{"its pinned directory is a link", planWell + "rm -r out/pinned; ln -s /etc out/pinned\n" + succeed, "pinned nothing"},
		{"its outputs are a link", planWell + "ln -s /etc/passwd out/outputs.json\n" + succeed, "is not a file"},
		{"its plan is a link", planWell + "ln -sf ../../../job.json out/plan.canonical.json\n" + succeed, "is not a file"},
		{"its plan is a pipe", planWell + "rm out/plan.canonical.json; mkfifo out/plan.canonical.json\n" + succeed, "is not a file"},
		{"it shows a secret", planWell + `echo "{\"objects\":[{\"address\":\"$(cat in/config/token)\",\"action\":\"create\"}]}" > out/plan.summary.json` + "\n" + succeed, "shows a secret"},
		{"an output looks sealed by Berth", planWell + `echo '{"a":{"value":{"$sealed":"x"}}}' > out/outputs.json` + "\n" + succeed, "has sealed"},
		{"an output is called like a path", planWell + `echo '{"../x":{"value":1}}' > out/outputs.json` + "\n" + succeed, "has a name that is not possible"},
		{"an output has no value", planWell + `echo '{"a":{}}' > out/outputs.json` + "\n" + succeed, "has no value"},
		{"its plan changes its state", planWell + `echo x > "$BERTH_STATE_DIR/x"` + "\n" + succeed, "its plan changed its state"},
		{"its state is a link", planWell + `ln -s /etc/passwd "$BERTH_STATE_DIR/x"` + "\n" + succeed, "is no file"},
		{"the directory of its state is a link", planWell + `rmdir "$BERTH_STATE_DIR"; ln -s ../../../in "$BERTH_STATE_DIR"` + "\n" + succeed, "its plan changed its state"},
		{"its state is too large", planWell + `head -c 17000000 /dev/zero > "$BERTH_STATE_DIR/x"` + "\n" + succeed, "larger than 16777216 bytes"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p := plug(t)
			p.write(t, "greeting.sh", "#!/bin/sh\ncd \"$2\"\n"+tc.script+"\n")
			p.sign(t)
			j := p.job(t, jobspec.OperationPlan, map[string]any{"text": "ahoy", "token": secretOfTest})
			j.prefix, j.spec.TimeoutSeconds = prefix, 20
			if strings.Contains(tc.want, "longer than") {
				j.spec.TimeoutSeconds = 1
			}
			r := j.run(t)
			if r.Outcome != jobspec.OutcomeFailed || !strings.Contains(r.Error, tc.want) {
				t.Errorf("%s: %s, want it to fail because of %q", r.Outcome, r.Error, tc.want)
			}
			if len(r.Outputs) > 0 || r.Lineage != "" {
				t.Errorf("its result got through: %+v", r)
			}
		})
	}
}

// What a plugin says of itself counts for nothing but its own plan and outputs.
func TestAttackPluginClaims(t *testing.T) {
	t.Parallel()
	p := plug(t)
	p.write(t, "greeting.sh", "#!/bin/sh\ncd \"$2\"\n"+planWell+
		`echo '{"outcome":"succeeded","lineage":"l","serial":7,"tool":{"name":"terraform","version":"1","digest":"sha256:0"},"artifact":{"digest":"sha256:0"},"outputs":{"stolen":{"value":1}}}' > out/result.json
echo "{\"mine\":{\"value\":\"$(cat in/config/token)\"}}" > out/outputs.json
env > "$BERTH_INSTALL_DIR/env"
sleep 300 & echo $! > "$BERTH_INSTALL_DIR/pid"
`)
	p.sign(t)
	j := p.job(t, jobspec.OperationPlan, map[string]any{"text": "ahoy", "token": "{{ .nuon.inputs.token }}"})
	j.prefix = withoutNetwork(t)
	j.env["AGENT_PRIVATE"] = "not for plugins"
	r := j.must(t)
	if r.Lineage != "" || r.Serial != 0 || r.Artifact != nil || r.Tool.Name != "plugin greeting" || r.Tool.Digest != j.spec.Artifact.Digest {
		t.Errorf("result %+v", r)
	}
	if len(r.Outputs) != 1 || !r.Outputs["mine"].Sensitive {
		t.Errorf("outputs %+v, want one, which is sensitive because it holds a secret of the config", r.Outputs)
	}
	install := j.env["BERTH_INSTALL_DIR"]
	env, err := os.ReadFile(filepath.Join(install, "env"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"AGENT_PRIVATE", "GORACE", "NUON_"} {
		if strings.Contains(string(env), name) {
			t.Errorf("the plugin's environment has %s:\n%s", name, env)
		}
	}
	raw, err := os.ReadFile(filepath.Join(install, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, "what the plugin left running to end", func() bool { return syscall.Kill(pid, 0) != nil || zombie(pid) })
}

// zombie says whether a process has ended and nobody has looked yet.
func zombie(pid int) bool {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || strings.Contains(string(raw), ") Z ")
}

// A plugin that is not what was signed, or wants more than it was granted, does not
// run at all.
func TestAttackPluginIsNotAdmitted(t *testing.T) {
	t.Parallel()
	other := plug(t)
	for _, tc := range []struct {
		name   string
		change func(t *testing.T, p *plugged, j *jobDir)
		want   string
	}{
		{"not signed", func(t *testing.T, _ *plugged, j *jobDir) {
			if err := os.Remove(filepath.Join(j.path, "in/artifact", plugin.SignatureFile)); err != nil {
				t.Fatal(err)
			}
		}, "it is not signed"},
		{"signed by somebody else", func(_ *testing.T, _ *plugged, j *jobDir) { j.spec.Plugin.Signer = other.signer }, "no signature of a trusted key"},
		{"no key", func(_ *testing.T, _ *plugged, j *jobDir) { j.spec.Plugin.Signer = "" }, "the signer's key"},
		{"changed after it was signed", func(t *testing.T, _ *plugged, j *jobDir) {
			j.write(t, "in/artifact/greeting.sh", "#!/bin/sh\ntouch $BERTH_INSTALL_DIR/ran\n")
		}, "greeting.sh is sha256:"},
		{"a file more", func(t *testing.T, _ *plugged, j *jobDir) { j.write(t, "in/artifact/more", "x") }, "more was not signed"},
		{"a file less", func(t *testing.T, _ *plugged, j *jobDir) {
			if err := os.Remove(filepath.Join(j.path, "in/artifact/conformance.json")); err != nil {
				t.Fatal(err)
			}
		}, "was signed and is not there"},
		{"a link", func(t *testing.T, _ *plugged, j *jobDir) {
			if err := os.Symlink("/etc/passwd", filepath.Join(j.path, "in/artifact/link")); err != nil {
				t.Fatal(err)
			}
		}, "link is no file"},
		{"of another type", func(_ *testing.T, _ *plugged, j *jobDir) { j.spec.Plugin.Type = "database" }, `deploys components of type "greeting"`},
		{"a state that was not granted", func(_ *testing.T, _ *plugged, j *jobDir) { j.spec.Plugin.State = false }, "asks for state"},
		{"a permission that was not granted", func(_ *testing.T, _ *plugged, j *jobDir) { j.spec.Plugin.InstallDir = false }, "asks for install_dir"},
		{"hosts that were not granted", func(t *testing.T, p *plugged, j *jobDir) { p.asks(t, j, `"hosts": ["api.example.com"]`) }, "asks for host api.example.com:443"},
		{"a host more than was granted", func(t *testing.T, p *plugged, j *jobDir) {
			p.asks(t, j, `"hosts": ["a.example.com", "example.com"]`)
			j.spec.Plugin.Hosts = []string{"*.example.com"}
		}, "asks for host example.com:443"},
		{"a host that is none", func(_ *testing.T, _ *plugged, j *jobDir) { j.spec.Plugin.Hosts = []string{"*"} }, "every host is network = true"},
		{"a path that was not granted", func(t *testing.T, p *plugged, j *jobDir) { p.asks(t, j, `"paths": ["/opt/a:ro"]`) }, "asks for path /opt/a:ro"},
		{"a path that was granted to be read", func(t *testing.T, p *plugged, j *jobDir) {
			p.asks(t, j, `"paths": ["/opt/a"]`)
			j.spec.Plugin.Paths = []string{"/opt/a:ro"}
		}, "asks for path /opt/a,"},
		{"a path that is the kernel's", func(_ *testing.T, _ *plugged, j *jobDir) { j.spec.Plugin.Paths = []string{"/proc/1"} }, "no plugin is shown /proc"},
		{"a role that was not granted", func(t *testing.T, p *plugged, j *jobDir) { p.asks(t, j, `"roles": ["deploy"]`) }, "asks for role deploy"},
		{"a permission that nobody knows", func(t *testing.T, p *plugged, j *jobDir) { p.asks(t, j, `"clipboard": true`) }, "unknown field"},
		{"hosts without a way to them", func(_ *testing.T, _ *plugged, j *jobDir) { j.spec.Plugin.Hosts = []string{"api.example.com"} }, "no way to certain hosts"},
		{"hosts and the network of others", func(_ *testing.T, _ *plugged, j *jobDir) {
			j.prefix, j.spec.Plugin.Hosts = nil, []string{"api.example.com"}
		}, "cannot take the network away"},
		{"a network that cannot be taken away", func(_ *testing.T, _ *plugged, j *jobDir) { j.prefix = nil }, "cannot take the network away"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p := plug(t)
			j := p.job(t, jobspec.OperationPlan, map[string]any{"text": "ahoy", "token": secretOfTest})
			j.prefix = withoutNetwork(t)
			tc.change(t, p, j)
			r := j.run(t)
			if r.Outcome != jobspec.OutcomeRefused || !strings.Contains(r.Error, tc.want) {
				t.Errorf("%s: %s, want it refused because of %q", r.Outcome, r.Error, tc.want)
			}
			if _, err := os.Stat(filepath.Join(j.path, "work/plugin")); err == nil {
				t.Error("the plugin got a job")
			}
		})
	}
}

func TestPluginConfigIsCheckedBeforeItRuns(t *testing.T) {
	t.Parallel()
	prefix := withoutNetwork(t)
	for _, tc := range []struct {
		name   string
		config map[string]any
		want   string
	}{
		{"missing", map[string]any{"token": "x"}, "text: is missing"},
		{"unknown", map[string]any{"text": "x", "txet": "y"}, "txet: is no key of this plugin"},
		{"wrong type", map[string]any{"text": 3}, "text: is not text"},
		{"wrong after rendering", map[string]any{"text": "x", "place": "{{ .nuon.name }}!"}, "place: does not match"},
	} {
		j := plug(t).job(t, jobspec.OperationPlan, tc.config)
		j.prefix = prefix
		r := j.run(t)
		if r.Outcome != jobspec.OutcomeFailed || r.Reason != jobspec.ReasonNeedsChange || !strings.Contains(r.Error, tc.want) {
			t.Errorf("%s: %+v, want %q", tc.name, r, tc.want)
		}
	}
	// What is left out gets its default.
	j := plug(t).job(t, jobspec.OperationPlan, map[string]any{"text": "x", "token": "y"})
	j.prefix = prefix
	j.must(t)
	wantContains(t, "inputs", j.read(t, "out/inputs.json"), `"place":"hall"`)
}
