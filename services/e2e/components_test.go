package e2e_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// TestComponentsOfOneInstall switches a component of an install off and on, and
// gives another one values of the install's own, by hand and by file.
func TestComponentsOfOneInstall(t *testing.T) {
	t.Parallel()
	s := start(t)
	in := s.probe("acme")
	for _, name := range []string{"one", "three"} {
		edit(t, filepath.Join(in.app, "components", name+".toml"), "terraform_version", "toggleable        = true\nterraform_version")
	}
	in.sync("probe", in.app)
	resource := func(name string) string {
		var page ctlapi.ResourcePage
		s.get("/installs/acme/resources", &page)
		for _, r := range page.Items {
			if r.Name == name {
				return string(r.State)
			}
		}
		return "not listed"
	}
	count := func(effect string) (n int) {
		for _, e := range in.effects() {
			if e == effect {
				n++
			}
		}
		return n
	}

	t.Run("what is needed stays on", func(t *testing.T) {
		_, errOut, code := s.run("installs", "toggle", "acme", "one", "off")
		if code != 1 || !strings.Contains(errOut, `component "one" cannot be off while "three", which needs it, is on`) {
			t.Errorf("exit %d: %s", code, errOut)
		}
	})

	t.Run("off removes it, with a decision of its own", func(t *testing.T) {
		s.must("installs", "toggle", "acme", "three", "off")
		if out := s.must("installs", "show", "acme", "-o", "json"); !strings.Contains(strings.Join(strings.Fields(out), ""), `"component_toggles":{"three":false}`) {
			t.Errorf("the install is shown as %s", out)
		}
		if got := resource("three"); got != "live" {
			t.Errorf("three is %s before any deploy, want live", got)
		}
		var w ctlapi.Workflow
		s.post("/installs/acme/workflows", map[string]any{"kind": "deploy", "confirm": "acme"}, &w)
		c := in.proposed(w.ID, "component/three")
		if c.Kind != "teardown" || count("gone three after v1") != 0 {
			t.Errorf("a %s is proposed, and three has gone %d times", c.Kind, count("gone three after v1"))
		}
		in.decide(c, "approve")
		if got := in.finished(w.ID, time.Minute); got.State != "succeeded" || step(got, "component/one").Change.State != "no_change" {
			t.Fatalf("deploy: %s", in.explain(got))
		}
		if got := resource("three"); got != "absent" || count("gone three after v1") != 1 {
			t.Errorf("three is %s, and has gone %d times", got, count("gone three after v1"))
		}
		_, errOut, code := s.run("deploy", "acme/three")
		if code != 1 || !strings.Contains(errOut, "berth installs toggle acme three on") {
			t.Errorf("deploying what is off: exit %d: %s", code, errOut)
		}
	})

	t.Run("on makes it again", func(t *testing.T) {
		s.must("installs", "toggle", "acme", "three", "on")
		made := count("end three after v1")
		if got := in.finished(in.deploy(true).ID, time.Minute); got.State != "succeeded" {
			t.Fatalf("deploy: %s", in.explain(got))
		}
		if got := resource("three"); got != "live" || count("end three after v1") != made+1 {
			t.Errorf("three is %s, and was made %d times more", got, count("end three after v1")-made)
		}
	})

	file := filepath.Join(in.app, "installs", "acme.toml")
	t.Run("the file of the install changes nothing", func(t *testing.T) {
		text := s.must("installs", "config", "acme")
		if strings.Contains(text, canary) || !strings.Contains(text, "canary") || !strings.Contains(text, "three = true") {
			t.Errorf("the file of the install:\n%s", text)
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		out, errOut, code := s.run("installs", "sync", in.app, "--plan")
		if code != 0 || !strings.Contains(out, "= acme") || strings.Contains(errOut, "next:") {
			t.Errorf("exit %d\n%s%s", code, out, errOut)
		}
	})

	t.Run("values of the install are one change that shows the field", func(t *testing.T) {
		f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("\n[components.two]\ntf_vars = 'value = \"own of {{ .nuon.name }}\"'\n"); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		_, errOut, code := s.run("installs", "sync", in.app, "--auto-approve")
		if code != 0 || !strings.Contains(errOut, "next: berth deploy acme two\n") {
			t.Fatalf("exit %d: %s", code, errOut)
		}
		before := in.effects()
		var w ctlapi.Workflow
		s.post("/installs/acme/workflows", map[string]any{"kind": "deploy"}, &w)
		c := in.proposed(w.ID, "component/two")
		var fields []string
		for _, o := range c.Plan.Objects {
			for _, f := range o.Fields {
				fields = append(fields, f.Path+" "+f.Before+" → "+f.After)
			}
		}
		if !slices.ContainsFunc(fields, func(f string) bool { return strings.Contains(f, "v1") && strings.Contains(f, "own of acme") }) {
			t.Errorf("the change shows %v", fields)
		}
		in.decide(c, "approve")
		got := in.finished(w.ID, time.Minute)
		if got.State != "succeeded" || step(got, "component/one").Change.State != "no_change" || step(got, "component/three").Change.State != "no_change" {
			t.Fatalf("deploy: %s", in.explain(got))
		}
		want := []string{"gone two v1", "begin two own of acme", "end two own of acme"}
		if got := in.effects()[len(before):]; !slices.Equal(got, want) {
			t.Errorf("effects %v, want %v", got, want)
		}
		out, errOut, code := s.run("installs", "sync", in.app, "--plan", "-o", "json")
		if code != 0 || strings.Contains(out, `"next"`) {
			t.Errorf("afterwards: exit %d\n%s%s", code, out, errOut)
		}
	})

	t.Run("values that do not fit say whose they are", func(t *testing.T) {
		edit(t, file, "value = ", "value ! ")
		s.must("installs", "sync", in.app, "--auto-approve")
		got := in.finished(in.deploy(false, "two").ID, time.Minute)
		if e := step(got, "component/two").Error; got.State != "failed" || e == nil || !strings.Contains(*e, `tf_vars of the install: line 1 is not in Terraform's notation`) {
			t.Errorf("deploy: %s", in.explain(got))
		}
	})
}
