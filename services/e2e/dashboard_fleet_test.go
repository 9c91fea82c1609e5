package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// fleet makes what the dashboard is shown with: the app relay in six installs, each of
// which stands somewhere else. Terraform needs the provider of worldMirror.
//
//	acme      two changes of release 3 wait for a decision
//	globex    its worker is unhealthy
//	hooli     at the newest release but one
//	initech   the deploy of release 2 failed at its worker
//	stark     its runner is silent
//	umbrella  at release 1, and somebody edited the settings of its API
func (s *system) fleet() {
	s.t.Helper()
	app := folder(s.t, filepath.Join("testdata", "relay"))
	var sick atomic.Value // the path of what does not answer
	sick.Store("")
	answers := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == sick.Load() {
			http.Error(w, "the queue mail is full: 10,000 of 10,000", http.StatusServiceUnavailable)
		}
	}))
	s.t.Cleanup(answers.Close)
	components, err := filepath.Glob(filepath.Join(app, "components", "*.toml"))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, file := range components {
		edit(s.t, file, "http://127.0.0.1:9", answers.URL)
	}
	release := func(edits ...[3]string) {
		s.t.Helper()
		for _, e := range edits {
			edit(s.t, filepath.Join(app, "components", e[0]+".toml"), e[1], e[2])
		}
		s.must("sync", app, "--wait", "--timeout", "5m")
	}
	release()
	labels := map[string]map[string]string{
		"acme": {"tier": "gold", "region": "eu-west"}, "globex": {"tier": "gold", "region": "us-east"}, "hooli": {"tier": "silver", "region": "us-west"},
		"initech": {"tier": "silver", "region": "us-east"}, "stark": {"tier": "gold", "region": "eu-north"}, "umbrella": {"tier": "trial", "region": "ap-south"},
	}
	installs := map[string]*install{}
	var made, all sync.WaitGroup
	var mu sync.Mutex
	for name, labels := range labels {
		made.Go(func() {
			in := s.relay(name)
			in.must("installs", "set", name, "label=tier="+labels["tier"], "label=region="+labels["region"])
			mu.Lock()
			defer mu.Unlock()
			installs[name] = in
		})
	}
	made.Wait()

	release([3]string{"api", "relay/api:1.0.0", "relay/api:1.1.0"}, [3]string{"web", "relay/web:1.0.0", "relay/web:1.1.0"}, [3]string{"worker", "relay/worker:1.0.0", "relay/worker:1.1.0"})
	s.write(filepath.Join(installs["initech"].files, "orphans"), "3 threads")
	for _, name := range []string{"acme", "globex", "hooli", "initech"} {
		all.Go(func() { installs[name].finished(installs[name].deploy(true).ID, 5*time.Minute) })
	}
	all.Wait()

	release(
		[3]string{"database", "max_connections = 200", "max_connections = 300"}, [3]string{"api", "relay/api:1.1.0", "relay/api:1.2.0"},
		[3]string{"api", `timeout = "30s"`, "timeout = \"45s\"\nrate_limit = 600"}, [3]string{"mailer", "relay/mailer:1.0.0", "relay/mailer:1.0.1"},
	)
	acme := installs["acme"]
	w := acme.deploy(false)
	acme.decide(acme.proposed(w.ID, "component/database"), "approve")
	acme.proposed(w.ID, "component/api")

	edited, err := json.Marshal(map[string]any{"text": "timeout = \"5m\"\n"})
	if err != nil {
		s.t.Fatal(err)
	}
	s.write(filepath.Join(installs["umbrella"].files, "api.settings"), string(edited))
	s.must("installs", "drift", "umbrella", "--now", "--timeout", "3m")
	sick.Store("/globex/worker")
	for _, pid := range s.processes(installs["stark"].runner) {
		s.signal(pid, syscall.SIGSTOP)
		s.t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	}
	s.eventually(5*time.Minute, "globex is unhealthy and the runner of stark silent", func() error {
		var globex, stark ctlapi.InstallStatus
		s.get("/installs/globex/status", &globex)
		s.get("/installs/stark/status", &stark)
		if globex.Install.Health != "unhealthy" || stark.Runner == nil || stark.Runner.Online {
			return fmt.Errorf("globex is %s, the runner of stark %+v", globex.Install.Health, stark.Runner)
		}
		return nil
	})
}

// relay makes an install of the app relay and brings it up.
func (s *system) relay(name string) *install {
	s.t.Helper()
	in := &install{system: s, name: name}
	var made ctlapi.Install
	s.post("/installs", map[string]any{
		"name": name, "app": "relay", "customer": name, "create_customer": true, "stack": "local", "provision": true, "approve_all": true,
	}, &made)
	in.id = made.ID
	if w := in.finished(*made.WorkflowID, 10*time.Minute); w.State != "succeeded" {
		s.t.Errorf("provision of %s: %s: %s", name, w.State, in.explain(w))
	}
	var stack ctlapi.Stack
	s.get("/installs/"+name+"/stack", &stack)
	in.runner = stack.Runner.ID
	in.files = filepath.Join(s.dir, "runners", in.runner, "install", "relay")
	return in
}

func (s *system) write(file, text string) {
	s.t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}
