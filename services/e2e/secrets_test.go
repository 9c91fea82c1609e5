package e2e_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// What the customer sets, and sets later. The vendor must never see either.
const (
	customerText = "customer/7e20+55aa&kept=at?home in acme"
	rotatedText  = "rotated/8b31+66bb&kept=at?home in acme"
)

// TestSecrets takes a secret through its life: a deploy waits until the customer sets it
// and then goes on by itself, a component reads it, a new value shows what still has the
// old one. The component gives the old and the new one away in plans and outputs, and neither is
// anywhere outside of the customer's directory.
func TestSecrets(t *testing.T) {
	t.Parallel()
	s := start(t)
	in := s.probe("acme")
	db := s.database()
	in.loosen()
	edit(t, filepath.Join(in.app, "components", "one.toml"), "{{ .nuon.inputs.inputs.canary }}", "{{ .nuon.secrets.token.value }}")
	edit(t, filepath.Join(in.app, "components", "two.toml"), "{{ .nuon.app.variables.token }}", "{{ .nuon.secrets.made.value }}")
	err := os.WriteFile(filepath.Join(in.app, "secrets.toml"), []byte(`[[secret]]
name = "token"
description = "of the API"
required = true
[[secret]]
name = "made"
description = "made by the runner"
auto_generate = true
`), 0o644)
	if err != nil {
		t.Fatal(err)
	}
	s.sync("probe", in.app)
	s.must("apps", "variables", "set", "probe", "token="+plainText, "--plain")

	w := in.deploy(true, "one", "two")
	in.eventually(goOnTimeout, "the deploy waits for the secret", func() error {
		for _, step := range in.workflow(w.ID).Steps {
			if step.Name == "secrets" && step.State == "waiting" && in.secret("made").Set {
				return nil
			}
		}
		return fmt.Errorf("%s", in.explain(in.workflow(w.ID)))
	})
	if why := s.must("why", "acme"); !strings.Contains(why, "token has no value yet") || !strings.Contains(why, "berth-runner secrets set token") {
		t.Errorf("why does not say what is missing:\n%s", why)
	}
	in.set("token", customerText)
	if w = in.finished(w.ID, time.Minute); w.State != "succeeded" {
		t.Fatalf("deploy: %s", in.explain(w))
	}
	if got, want := in.output("one")["secret_sha256"], sha256Hex(customerText); got != want {
		t.Fatalf("the component got another secret: hash %v, want %s", got, want)
	}
	if got := in.output("two")["secret_sha256"]; got == sha256Hex("") || got == nil {
		t.Errorf("the component got no made secret: %v", got)
	}

	// A kill in the middle of a set leaves the value before it, or the new one.
	for range 3 {
		cmd := in.setting("token", rotatedText)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Process.Signal(syscall.SIGKILL)
		_ = cmd.Wait()
	}
	in.set("token", rotatedText)
	in.eventually(goOnTimeout, "the new version is known", func() error {
		token := in.secret("token")
		if token.Version == 2 && len(token.UsedBy) == 1 && token.UsedBy[0].Behind {
			return nil
		}
		return fmt.Errorf("%+v", token)
	})
	if why := s.must("why", "acme"); !strings.Contains(why, "one still uses version 1") {
		t.Errorf("why does not say what is behind:\n%s", why)
	}
	if list := s.must("installs", "secrets", "acme"); !strings.Contains(list, "one (version 1)") {
		t.Errorf("the list does not say what is behind:\n%s", list)
	}
	if w = in.finished(in.deploy(true, "one", "two").ID, time.Minute); w.State != "succeeded" {
		t.Fatalf("deploy: %s", in.explain(w))
	}
	if got, want := in.output("one")["secret_sha256"], sha256Hex(rotatedText); got != want {
		t.Fatalf("the component kept the old secret: hash %v, want %s", got, want)
	}
	if token := in.secret("token"); len(token.UsedBy) != 1 || token.UsedBy[0].Behind || token.UsedBy[0].Version != 2 {
		t.Errorf("after the deploy: %+v", token)
	}

	in.eventually(goOnTimeout, "nothing runs any more", func() error {
		left, err := os.ReadDir(filepath.Join(in.runnerDir(), "jobs"))
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("%d job directories are left", len(left))
		}
		return err
	})
	places := in.searchAll(t, db)
	for _, name := range slices.Sorted(maps.Keys(places)) {
		t.Logf("%s: %d pieces, %d bytes", name, places[name].pieces, places[name].bytes)
		for _, text := range []string{customerText, rotatedText} {
			for _, where := range places[name].found[text] {
				t.Errorf("%s is in the %s: %s", text[:8], name, where)
			}
		}
	}
	if log := s.must("logs", "acme/one"); !strings.Contains(log, `"(redacted)" -> "(redacted)"`) {
		t.Errorf("the plan did not say the old and the new secret, or they were not redacted:\n%s", tail(log, 30))
	}
}

// secret is what the vendor knows of a secret.
func (in *install) secret(name string) ctlapi.InstallSecret {
	in.t.Helper()
	var page ctlapi.InstallSecretPage
	in.get("/installs/"+in.name+"/secrets", &page)
	i := slices.IndexFunc(page.Items, func(s ctlapi.InstallSecret) bool { return s.Name == name })
	if i < 0 {
		return ctlapi.InstallSecret{}
	}
	return page.Items[i]
}

// setting is the customer's command that sets a secret.
func (in *install) setting(name, value string) *exec.Cmd {
	cmd := exec.CommandContext(in.t.Context(), filepath.Join(in.bin, "berth-runner"), "--data", in.runnerDir(), "secrets", "set", name)
	cmd.Stdin = strings.NewReader(value + "\n")
	return cmd
}

// rotate has the runner make another value of a secret.
func (in *install) rotate(name string) {
	in.t.Helper()
	cmd := exec.CommandContext(in.t.Context(), filepath.Join(in.bin, "berth-runner"), "--data", in.runnerDir(), "secrets", "rotate", name)
	if out, err := cmd.CombinedOutput(); err != nil {
		in.t.Fatalf("berth-runner secrets rotate %s: %v\n%s", name, err, out)
	}
}

func (in *install) set(name, value string) {
	in.t.Helper()
	if out, err := in.setting(name, value).CombinedOutput(); err != nil || strings.Contains(string(out), value) {
		in.t.Fatalf("berth-runner secrets set %s: %v\n%s", name, err, out)
	}
}
