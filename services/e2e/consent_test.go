package e2e_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/consent"
)

// TestConsent: an install that asks its customer about each change. The vendor approves
// and waits; the customer looks at the runner's own record and signs by ssh-agent; then the
// deploy goes on by itself, and the chain names both.
func TestConsent(t *testing.T) {
	t.Parallel()
	ada := startSSHAgent(t)
	s := start(t)
	in := s.probe("acme")
	db := s.database()
	customer := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), filepath.Join(s.bin, "berth-runner"), append([]string{"--data", in.runnerDir()}, args...)...)
		cmd.Env = append(os.Environ(), "SSH_AUTH_SOCK="+ada.socket)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("berth-runner %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	in.askEach(ada)
	if shown := customer("consent", "show"); !strings.Contains(shown, "mode each") || !strings.Contains(shown, "ada") {
		t.Fatalf("consent show:\n%s", shown)
	}

	in.change("consented")
	before := len(in.effects())
	w := in.deploy(true, "one")
	stands := func(state string) string {
		t.Helper()
		var change string
		in.eventually(goOnTimeout, "the control plane hears "+state, func() error {
			list := column(t, db, `select change_id from berth.consents where install_id = '`+in.id+`' and state = '`+state+`'`)
			if len(list) == 0 {
				return errors.New("no row")
			}
			change = list[len(list)-1]
			return nil
		})
		return change
	}
	change := stands("needed")
	in.eventually(goOnTimeout, "the deploy waits for the customer", func() error {
		if why := s.must("why", "acme"); !strings.Contains(why, "consent") {
			return errors.New(why)
		}
		return nil
	})
	if n := len(in.effects()); n != before {
		t.Fatalf("it took effect without consent: %v", in.effects())
	}

	shown := customer("show", change)
	if !strings.Contains(shown, "deploy one") || !strings.Contains(shown, "each change needs") {
		t.Errorf("show:\n%s", shown)
	}
	var open []struct {
		Change string `json:"change_id"`
		Effect string `json:"effect_digest"`
	}
	if err := json.Unmarshal([]byte(customer("changes", "--waiting", "-o", "json")), &open); err != nil || len(open) != 1 || open[0].Change != change {
		t.Fatalf("changes: %+v, %v", open, err)
	}
	customer("approve", change, "--ssh-key", ada.public, "--reason", "ticket 4711", "--yes", open[0].Effect)
	stands("given")
	if w = in.finished(w.ID, time.Minute); w.State != "succeeded" {
		t.Fatalf("with consent: %s", in.explain(w))
	}
	if n := len(in.effects()); n == before {
		t.Error("it took no effect")
	}

	intent := in.consented(open[0].Effect)
	key, err := os.ReadFile(ada.public)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := consent.ParseKey(string(key))
	if err != nil {
		t.Fatal(err)
	}
	if intent.Capsule == "" || len(intent.Consent.Signed) != 1 {
		t.Fatalf("the intent does not name both: %+v", intent)
	}
	_, payload, err := consent.Signers([]consent.Key{parsed}, consent.ForStatement, intent.Consent.Signed[0])
	if err != nil || !bytes.Contains(payload, []byte(intent.Effect)) || !bytes.Contains(payload, []byte("ticket 4711")) {
		t.Errorf("the consent in the chain: %s, %v", payload, err)
	}
	if out, err := exec.CommandContext(t.Context(), filepath.Join(s.bin, "berth-verify"), "chain", filepath.Join(in.runnerDir(), "chain.jsonl")).CombinedOutput(); err != nil {
		t.Errorf("berth-verify: %v\n%s", err, out)
	}
}

// askEach makes the runner ask the holder of a key about each change.
func (in *install) askEach(holder sshAgent) {
	in.t.Helper()
	public, err := os.ReadFile(holder.public)
	if err != nil {
		in.t.Fatal(err)
	}
	path := filepath.Join(in.runnerDir(), "trust.json")
	text, err := os.ReadFile(path)
	if err != nil {
		in.t.Fatal(err)
	}
	trust := map[string]any{}
	if err := json.Unmarshal(text, &trust); err != nil {
		in.t.Fatal(err)
	}
	trust["consent"] = consent.Config{Mode: consent.ModeEach, Holders: []consent.Holder{{Name: "ada", Keys: []string{string(public)}}}}
	if text, err = json.Marshal(trust); err != nil {
		in.t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		in.t.Fatal(err)
	}
}

// consented is the intent by which an effect came about that the customer agreed to.
func (in *install) consented(effect string) (intent chain.Record) {
	in.t.Helper()
	in.eventually(goOnTimeout, "an intent with consent", func() error {
		text, err := os.ReadFile(filepath.Join(in.runnerDir(), "chain.jsonl"))
		if err != nil {
			return err
		}
		for line := range bytes.Lines(text) {
			record, err := chain.ParseRecord(bytes.TrimSuffix(line, []byte("\n")))
			if err == nil && record.Kind == chain.Intent && record.Effect == effect && record.Consent != nil {
				intent = record
				return nil
			}
		}
		return fmt.Errorf("none of effect %s", effect)
	})
	return intent
}

// sshAgent is a running ssh-agent with one key of somebody of the customer's.
type sshAgent struct {
	public string // file of the public half
	socket string
}

func startSSHAgent(t *testing.T) sshAgent {
	t.Helper()
	if _, err := exec.LookPath("ssh-agent"); err != nil {
		t.Skip("needs ssh-agent")
	}
	folder, err := os.MkdirTemp("", "berth-agent") // a socket's name may not be long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	a := sshAgent{public: filepath.Join(folder, "id.pub"), socket: filepath.Join(folder, "s")}
	cmd := exec.Command("ssh-agent", "-D", "-a", a.socket)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil { // it listens, and says where
		t.Fatalf("ssh-agent: %v", err)
	}
	for _, args := range [][]string{
		{"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(folder, "id")},
		{"ssh-add", "-q", filepath.Join(folder, "id")},
	} {
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Env = append(os.Environ(), "SSH_AUTH_SOCK="+a.socket)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	return a
}
