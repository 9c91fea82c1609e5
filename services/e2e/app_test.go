package e2e_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/bundle"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// canary is the secret that must be seen nowhere.
const canary = "canary-7d1f0e5c-do-not-look"

// install is an install of an app on a system.
type install struct {
	*system
	name   string
	app    string // folder
	id     string
	runner string
	files  string // the install's own directory
	// namespace is where it is in a cluster.
	namespace string
	// environ is that of the runner's first machine.
	environ []string
}

// submit uploads an app folder; its builds have begun.
func (s *system) submit(name, dir string) ctlapi.SyncResult {
	s.t.Helper()
	fsys := os.DirFS(dir)
	app, diags := check.Folder(fsys, appconfig.LoadOptions{})
	if place.HasErrors(diags) {
		s.t.Fatalf("%s: %v", dir, diags)
	}
	packed, err := bundle.Make(fsys, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, pack := range packed.All() {
		s.upload(pack.Digest, pack.Bytes)
	}
	req := ctlapi.SyncRequest{BundleDigest: packed.Index.Digest, CreateApp: true}
	for _, source := range appconfig.Sources(app) {
		if !source.Uploaded() {
			continue
		}
		archive, digest, err := bundle.ArchiveSource(fsys, source)
		if err != nil {
			s.t.Fatal(err)
		}
		s.upload(digest, archive)
		component := source.Name
		if source.Block == appconfig.BlockSandbox {
			component = "sandbox"
		}
		req.Sources = append(req.Sources, ctlapi.SyncSource{Component: component, Digest: digest})
	}
	var result ctlapi.SyncResult
	s.post("/apps/"+name+"/configs", req, &result)
	return result
}

// sync uploads an app folder and waits for the release that comes of it.
func (s *system) sync(name, dir string) ctlapi.Release {
	s.t.Helper()
	result := s.submit(name, dir)
	var config ctlapi.Config
	s.eventually(cmp.Or(s.slow, time.Minute), "the release is made", func() error {
		if err := s.call(http.MethodGet, "/configs/"+result.Config.ID, nil, &config); err != nil {
			return err
		}
		if config.Release == nil {
			return fmt.Errorf("config %d has no release yet", config.Number)
		}
		return nil
	})
	var release ctlapi.Release
	s.get("/releases/"+config.Release.ID, &release)
	return release
}

func (s *system) upload(digest string, data []byte) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, s.api+"/blobs/"+digest, bytes.NewReader(data))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.token())
	req.Header.Set("Content-Type", "application/octet-stream")
	resp, err := s.http.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode >= 300 {
		body, _ := io.ReadAll(resp.Body)
		s.t.Fatalf("upload: %s: %s", resp.Status, body)
	}
}

// probe makes an install of the probe app and brings it up.
func (s *system) probe(name string) *install {
	s.t.Helper()
	in := &install{system: s, name: name, app: s.probeFolder()}
	if s.deployment != nil {
		s.deployProbe(in)
		return in
	}
	s.sync("probe", in.app)
	inputs := ctlapi.InputValues{"canary": canary}
	var made ctlapi.Install
	s.post("/installs", map[string]any{
		"name": name, "app": "probe", "customer": name, "create_customer": true, "stack": "local",
		"inputs": inputs, "provision": true, "approve_all": true,
	}, &made)
	in.id = made.ID
	w := in.finished(*made.WorkflowID, 2*time.Minute)
	if w.State != "succeeded" {
		s.t.Fatalf("provision of %s: %s: %s", name, w.State, in.explain(w))
	}
	var stack ctlapi.Stack
	s.get("/installs/"+name+"/stack", &stack)
	in.runner = stack.Runner.ID
	in.files = filepath.Join(s.dir, "runners", in.runner, "install", "probe")
	if _, err := os.Stat(in.files); err != nil {
		s.t.Fatalf("the sandbox made no directory: %v", err)
	}
	return in
}

// deploy starts a workflow that brings components, all when none is named, to the
// newest release.
func (in *install) deploy(approveAll bool, components ...string) ctlapi.Workflow {
	in.t.Helper()
	var w ctlapi.Workflow
	in.post("/installs/"+in.name+"/workflows", map[string]any{"kind": "deploy", "components": append([]string{}, components...), "approve_all": approveAll}, &w)
	return w
}

func (in *install) workflow(id string) ctlapi.Workflow {
	in.t.Helper()
	var w ctlapi.Workflow
	in.get("/workflows/"+id, &w)
	return w
}

// finished waits for the end of a workflow.
func (in *install) finished(id string, within time.Duration) ctlapi.Workflow {
	in.t.Helper()
	var w ctlapi.Workflow
	in.eventually(within, "workflow "+id+" ends", func() error {
		if err := in.call(http.MethodGet, "/workflows/"+id, nil, &w); err != nil {
			return err
		}
		switch w.State {
		case "succeeded", "failed", "cancelled":
			return nil
		}
		return fmt.Errorf("%s: %s", w.State, in.explain(w))
	})
	return w
}

// step returns a step of a workflow by its name.
func step(w ctlapi.Workflow, name string) ctlapi.Step {
	for _, s := range w.Steps {
		if s.Name == name {
			return s
		}
	}
	return ctlapi.Step{}
}

// proposed waits until a step's change waits for a decision.
func (in *install) proposed(workflowID, stepName string) ctlapi.Change {
	in.t.Helper()
	var c ctlapi.Change
	in.eventually(time.Minute, stepName+" is proposed", func() error {
		w := in.workflow(workflowID)
		s := step(w, stepName)
		if s.Change == nil || s.Change.State != "proposed" {
			return fmt.Errorf("%s", in.explain(w))
		}
		return in.call(http.MethodGet, "/changes/"+s.Change.ID, nil, &c)
	})
	return c
}

func (in *install) decide(c ctlapi.Change, answer string) {
	in.t.Helper()
	in.post("/changes/"+c.ID+"/decisions", map[string]any{"answer": answer, "effect_digest": *c.EffectDigest, "note": "by a test"}, nil)
}

// explain shows the steps of a workflow in one line.
func (in *install) explain(w ctlapi.Workflow) string {
	var parts []string
	for _, s := range w.Steps {
		text := s.Name + " " + string(s.State)
		if s.Change != nil {
			text += "/" + string(s.Change.State)
		}
		if s.Error != nil {
			text += " (" + *s.Error + ")"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// effects reads what the modules did, in order.
func (in *install) effects() []string {
	read := os.ReadFile
	if in.deployment != nil {
		read = in.readInCluster
	}
	raw, err := read(filepath.Join(in.files, "effects"))
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSpace(string(raw)), "\n")
}

// sinceEffect waits for a line in the effects file.
func (in *install) sinceEffect(line string) {
	in.t.Helper()
	in.eventually(time.Minute, "effect "+line, func() error {
		for _, e := range in.effects() {
			if e == line {
				return nil
			}
		}
		return fmt.Errorf("effects so far: %v", in.effects())
	})
}

// change gives component one another value and syncs; it answers the value.
func (in *install) change(value string) {
	in.t.Helper()
	file := filepath.Join(in.app, "components", "one.toml")
	data, err := os.ReadFile(file)
	if err != nil {
		in.t.Fatal(err)
	}
	changed := regexp.MustCompile(`(?m)^value  = ".*"$`).ReplaceAll(data, []byte(fmt.Sprintf("value  = %q", value)))
	if err := os.WriteFile(file, changed, 0o644); err != nil {
		in.t.Fatal(err)
	}
	in.sync("probe", in.app)
}

// log reads the whole log of a job's stream.
func (in *install) log(stream string) (lines []string, complete bool) {
	in.t.Helper()
	var after int64
	for {
		var page struct {
			Records []struct {
				Seq    int64  `json:"seq"`
				Source string `json:"source"`
				Text   string `json:"text"`
			} `json:"items"`
		}
		in.logGet(fmt.Sprintf("/streams/%s/records?after=%d&limit=1000", stream, after), &page)
		if len(page.Records) == 0 {
			break
		}
		for _, r := range page.Records {
			if r.Seq != after+1 {
				in.t.Errorf("stream %s: after line %d comes %d", stream, after, r.Seq)
			}
			after = r.Seq
			lines = append(lines, r.Text)
		}
	}
	var head struct {
		Complete bool `json:"complete"`
	}
	in.logGet("/streams/"+stream, &head)
	return lines, head.Complete
}

func (in *install) logGet(path string, out any) {
	in.t.Helper()
	if err := in.ask(http.MethodGet, in.logs+path, nil, out); err != nil {
		in.t.Fatal(err)
	}
}
