package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// visits has a plugin go to addresses when it plans, and write down what came of it.
const visits = `
visit() { # NAME, and what curl is given
  to=$BERTH_INSTALL_DIR/$BERTH_COMPONENT_NAME.$1; shift
  curl -s -o "$to.body" -w '%%{http_code}' --max-time 20 "$@" > "$to"
}
if [ "$BERTH_OPERATION" = plan ]; then
  visit granted http://%[1]s/a
  visit tunnel --proxytunnel http://%[1]s/b
  visit other http://%[2]s/
  visit local http://localhost:%[3]s/
  visit direct --noproxy '*' http://%[1]s/direct
  if [ -e "$BERTH_INSTALL_DIR/wait" ]; then
    echo > "$BERTH_INSTALL_DIR/begun"
    while [ -e "$BERTH_INSTALL_DIR/wait" ]; do sleep 0.1; done
    until visit later http://%[1]s/later; do sleep 0.1; done
  fi
fi
"$BERTH_OPERATION"`

// TestPluginHosts deploys with a plugin that may reach one host: it reaches that one
// through the runner, after the runner was killed too, and nothing else; its log tells
// of all; and one host more is shown to the customer as such.
func TestPluginHosts(t *testing.T) {
	t.Parallel()
	s := start(t)
	seen := make(chan string, 100)
	server := func() *httptest.Server {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen <- r.Host + r.URL.Path
			fmt.Fprint(w, "hello")
		}))
		t.Cleanup(srv.Close)
		return srv
	}
	granted, other := strings.TrimPrefix(server().URL, "http://"), strings.TrimPrefix(server().URL, "http://")
	_, otherPort, _ := strings.Cut(other, ":")

	app := folder(t, filepath.Join("..", "..", "examples", "greeting"))
	component := filepath.Join(app, "components", "greeting.toml")
	dir := filepath.Join(app, "plugins", "greeting")
	edit(t, filepath.Join(dir, "greeting.sh"), "\n\"$BERTH_OPERATION\"", fmt.Sprintf(visits, granted, other, otherPort))
	edit(t, filepath.Join(dir, "plugin.json"), `"permissions": {`, fmt.Sprintf(`"permissions": { "hosts": [%q, "localhost:%s"],`, granted, otherPort))
	signedBy(t, component, resign(t, dir))

	// The app has to grant them.
	if out, errOut, code := s.run("apps", "validate", app); code == 0 || !strings.Contains(out+errOut, "asks for host "+granted) {
		t.Errorf("a grant is missing: %d\n%s%s", code, out, errOut)
	}
	edit(t, component, "network     = false", fmt.Sprintf(`hosts       = [%q, "localhost:%s"]`, granted, otherPort))
	components := []string{"greeting"}
	if os.Geteuid() == 0 { // elsewhere plugins that are images are refused
		raw, err := os.ReadFile(component)
		if err != nil {
			t.Fatal(err)
		}
		imaged(t, app, string(raw), "curl")
		components = append(components, "imaged")
	}
	s.must("sync", app, "--wait")
	s.must("installs", "create", "acme", "--app", "greeting", "--customer", "acme", "--stack", "local", "--watch", "--auto-approve")
	in := &install{system: s, name: "acme", app: app}
	var stack ctlapi.Stack
	s.get("/installs/acme/stack", &stack)
	in.runner = stack.Runner.ID
	data := filepath.Join(s.dir, "runners", in.runner)
	says := func(name string) string {
		code, err := os.ReadFile(filepath.Join(data, "install", name))
		if err != nil {
			return err.Error()
		}
		body, _ := os.ReadFile(filepath.Join(data, "install", name+".body"))
		return string(code) + " " + strings.TrimSpace(string(body))
	}
	for name, want := range map[string]string{
		"granted": "200 hello", "tunnel": "200 hello", "other": "403 it is none of the hosts", "local": "403 it leads to", "direct": "000 ",
	} {
		for _, component := range components {
			if got := says(component + "." + name); !strings.HasPrefix(got, want) {
				t.Errorf("%s: %s: %q, want %q", component, name, got, want)
			}
		}
	}
	for len(seen) > 0 {
		if at := <-seen; at != granted+"/a" && at != granted+"/b" {
			t.Errorf("%s was reached", at)
		}
	}

	t.Run("the log tells of it", func(t *testing.T) {
		told := ""
		for _, change := range in.changes("applied") {
			for _, stream := range streams(change) {
				lines, _ := in.log(stream)
				told += strings.Join(lines, "\n") + "\n"
			}
		}
		for _, want := range []string{"network: " + granted + ": connected to " + granted, "network: " + granted + ": closed after", `network: "` + other + `": refused`} {
			if !strings.Contains(told, want) {
				t.Errorf("the logs do not say %q:\n%s", want, told)
			}
		}
	})

	t.Run("one host more is shown", func(t *testing.T) {
		edit(t, component, "hosts       = [", `hosts       = ["api.example.com", `)
		s.must("sync", app, "--wait")
		w := in.deploy(false)
		change := in.proposed(w.ID, "release")
		raw, err := json.Marshal(change.Plan)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			`{"after":"yes","before":"no","path":"permission host api.example.com:443"}`, `{"after":"yes","path":"permission host ` + granted + `"}`, "may reach the host api.example.com:443",
		} {
			if !strings.Contains(string(raw), want) {
				t.Errorf("the change does not show %q:\n%s", want, raw)
			}
		}
		in.decide(change, "approve")
		if w := in.finished(w.ID, time.Minute); w.State != "succeeded" {
			t.Errorf("deploy: %s", in.explain(w))
		}
	})

	t.Run("it outlives the runner", func(t *testing.T) {
		put(t, filepath.Join(data, "install", "wait"), "")
		edit(t, component, "from {{", "to {{")
		s.must("sync", app, "--wait")
		w := in.deploy(true)
		s.eventually(time.Minute, "the plan has begun", func() error {
			_, err := os.Stat(filepath.Join(data, "install", "begun"))
			return err
		})
		before := s.pid("runner acme")
		s.signal(before, syscall.SIGKILL)
		s.eventually(time.Minute, "another agent", func() error {
			if p, found := s.part("runner acme"); !found || p.PID == 0 || p.PID == before || !p.Ready {
				return fmt.Errorf("it is %+v", p)
			}
			return nil
		})
		if err := os.Remove(filepath.Join(data, "install", "wait")); err != nil {
			t.Fatal(err)
		}
		if w := in.finished(w.ID, 2*time.Minute); w.State != "succeeded" {
			t.Errorf("deploy: %s", in.explain(w))
		}
		if got := says("greeting.later"); got != "200 hello" {
			t.Errorf("after the agent was killed: %q", got)
		}
	})

	t.Run("its names stay here without log bodies", func(t *testing.T) {
		if out, err := exec.CommandContext(t.Context(), filepath.Join(s.bin, "berth-runner"), "egress", "--data", data, "off", "log-bodies", "--reason", "test").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		edit(t, component, "to {{", "for {{")
		s.must("sync", app, "--wait")
		w := in.finished(in.deploy(true).ID, time.Minute)
		if w.State != "succeeded" {
			t.Fatalf("deploy: %s", in.explain(w))
		}
		for _, change := range in.changes("applied") {
			if change.WorkflowID != w.ID {
				continue
			}
			for _, stream := range streams(change) {
				if lines, _ := in.log(stream); strings.Contains(strings.Join(lines, "\n"), "network: ") {
					t.Errorf("the vendor has\n%s", strings.Join(lines, "\n"))
				}
			}
		}
		kept := ""
		files, err := filepath.Glob(filepath.Join(data, "egress", "withheld", "*.log"))
		for _, file := range files {
			raw, _ := os.ReadFile(file)
			kept += string(raw)
		}
		if err != nil || !strings.Contains(kept, `network: "`+other+`": refused`) {
			t.Errorf("kept here: %v\n%s", err, kept)
		}
	})
}
