package main

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/consents"
	"github.com/berth-dev/berth/runner/agent/datadir"
)

const consentInstall = "ins01jd2x7q9zr8w3v5k6m4n0tgha"

// customer is a customer at the command line of a runner.
type customer struct {
	t    *testing.T
	data string
	dir  datadir.Dir
}

func newCustomer(t *testing.T) *customer {
	t.Helper()
	d := &customer{t: t, data: filepath.Join(t.TempDir(), "data")}
	var err error
	if d.dir, err = datadir.At(d.data); err != nil {
		t.Fatal(err)
	}
	if err := d.dir.Make(0); err != nil {
		t.Fatal(err)
	}
	if err := datadir.WriteJSON(d.dir.Runner(), datadir.Runner{RunnerID: "run1", OrgID: "org1", InstallID: consentInstall, Kind: "install"}); err != nil {
		t.Fatal(err)
	}
	d.trust(consent.Config{})
	return d
}

func (d *customer) trust(config consent.Config) {
	d.t.Helper()
	if err := datadir.WriteJSON(d.dir.Trust(), datadir.Trust{RunnerAPIURL: "http://127.0.0.1:1", Consent: &config}); err != nil {
		d.t.Fatal(err)
	}
}

// plans is what the agent does with a plan.
func (d *customer) plans(end string, facts consent.Facts) consents.Change {
	d.t.Helper()
	changeID := "chg_01jd2x7q9zr8w3v5k6m4n0t" + end
	c := consents.Change{ID: changeID, OriginID: changeID, Effect: "sha256:" + strings.Repeat("0", 60) + end, Facts: facts, PlannedAt: time.Now().UTC(), Requesters: []string{"vic"}}
	store := consents.Store{Dir: d.dir, InstallID: consentInstall, Now: time.Now}
	plan := jobspec.PlanSummary{Update: 1, Objects: []jobspec.ObjectChange{{Address: "Deployment shop/web\x1b[2J", Action: "update", Fields: []jobspec.FieldChange{{Path: "spec.replicas", Before: "1", After: "2"}}}}}
	if err := store.Keep(c, plan); err != nil {
		d.t.Fatal(err)
	}
	return c
}

// says runs a command and checks how it ends and what it says.
func (d *customer) says(code int, text string, args ...string) string {
	d.t.Helper()
	cmd := newRoot()
	var out bytes.Buffer
	cmd.SetArgs(append([]string{"--data", d.data}, args...))
	cmd.SetIn(strings.NewReader("yes\n"))
	got := execute(d.t.Context(), cmd, &out, &out)
	if got != code || !strings.Contains(out.String(), text) {
		d.t.Errorf("%q: exit %d, %s; want %d with %q", args, got, out.String(), code, text)
	}
	if strings.Contains(out.String(), "\x1b") {
		d.t.Errorf("%q steers the terminal: %q", args, out.String())
	}
	return out.String()
}

var asked = consent.Facts{ChangeKind: "deploy", Component: "web", Update: 1, GuardrailAsks: true}

// Without holders, who works on the runner's command line agrees with the machine's key.
func TestApproveByTheMachine(t *testing.T) {
	t.Parallel()
	d := newCustomer(t)
	d.says(0, "no changes", "changes")
	c := d.plans("0ha1", asked)
	quiet := d.plans("0ha2", consent.Facts{ChangeKind: "deploy", Component: "db"})
	d.says(0, "needed (1 more)", "changes")
	d.says(0, "a guardrail asks", "show", c.ID)
	d.says(0, "spec.replicas: 1 -> 2", "show", "0ha1")
	d.says(exitFailed, "needs no consent", "approve", quiet.ID)
	d.says(exitFailed, "no such change", "approve", "chg_01jd2x7q9zr8w3v5k6m4n0t0ha9")
	d.says(exitUsage, "id of a change", "approve")
	d.says(exitUsage, "not between", "approve", c.ID, "--until", "9000h")
	d.says(exitUsage, "neither a time", "approve", c.ID, "--until", "tomorrow")
	d.says(exitFailed, "none that --yes names", "approve", c.ID, "--yes", "sha256:x")
	d.says(0, "(machine key)", "approve", c.ID, "--reason", "ticket 4711", "--yes", c.Effect)
	d.says(exitFailed, "needs no more consent", "approve", c.ID)
	d.says(exitUsage, "--reason", "deny", c.ID)
	d.says(0, "denied", "deny", c.ID, "--reason", "not before the audit")
	d.says(exitFailed, "was denied", "approve", c.ID)
	var list []shownChange
	if err := json.Unmarshal([]byte(d.says(0, "[", "changes", "-o", "json")), &list); err != nil || len(list) != 2 || list[1].State != "denied" || list[1].Why != "not before the audit" {
		t.Errorf("%+v, %v", list, err)
	}
	var whole wholeChange
	if err := json.Unmarshal([]byte(d.says(0, "{", "show", c.ID, "-o", "json")), &whole); err != nil || whole.Plan.Update != 1 || whole.Requesters[0] != "vic" {
		t.Errorf("%+v, %v", whole, err)
	}
}

// ada has a key of consent-key new, bob one in ssh-agent; both have to agree.
func TestApproveByHolders(t *testing.T) {
	d := newCustomer(t)
	adaKey := filepath.Join(t.TempDir(), "ada.key")
	made := d.says(0, `"keys"`, "consent-key", "new", adaKey)
	d.says(exitFailed, "exists", "consent-key", "new", adaKey)
	ada := holderOf(t, made)
	bob, bobFile := serveAgent(t)
	d.trust(consent.Config{Mode: consent.ModeEach, Need: 2, Holders: []consent.Holder{ada, {Name: "bob", Keys: []string{bob}}}})
	d.says(0, "2 of 2 holders", "consent", "show")
	c := d.plans("0ha1", asked)
	d.says(exitUsage, "say which key signs", "approve", c.ID)
	d.says(0, "signed, 1 more to agree", "approve", c.ID, "--key", adaKey)
	d.says(0, "needed (1 more)", "changes", "--waiting")
	d.says(0, "agreed to by", "approve", c.ID, "--ssh-key", bobFile)

	stranger := filepath.Join(t.TempDir(), "x.key")
	d.says(0, "", "consent-key", "new", stranger)
	other := d.plans("0ha2", asked)
	d.says(exitFailed, "of no holder", "approve", other.ID, "--key", stranger)
	if err := os.Chmod(stranger, 0o644); err != nil {
		t.Fatal(err)
	}
	d.says(exitFailed, "can be read by others", "approve", other.ID, "--key", stranger)
	t.Setenv("SSH_AUTH_SOCK", "")
	d.says(exitFailed, "SSH_AUTH_SOCK is not set", "approve", other.ID, "--ssh-key", bobFile)

	// On another machine.
	request := filepath.Join(t.TempDir(), "request.json")
	if err := os.WriteFile(request, []byte(d.says(0, other.Effect, "approve", other.ID, "--print")), 0o600); err != nil {
		t.Fatal(err)
	}
	answer := filepath.Join(t.TempDir(), "answer.json")
	cmd := newRoot() // without a data directory
	var out, errs bytes.Buffer
	cmd.SetArgs([]string{"consent", "sign", request, "--key", adaKey, "--yes", other.Effect})
	if code := execute(t.Context(), cmd, &out, &errs); code != 0 {
		t.Fatal(code, errs.String())
	}
	if err := os.WriteFile(answer, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	d.says(exitFailed, "the statement says approve", "deny", "--signature", answer)
	d.says(0, "signed, 1 more to agree", "approve", "--signature", answer)
}

// holderOf is the holder that consent-key new printed.
func holderOf(t *testing.T, printed string) (h consent.Holder) {
	t.Helper()
	_, text, found := strings.Cut(printed, "{")
	if err := json.Unmarshal([]byte("{"+text), &h); err != nil || !found || h.Name != "ada" {
		t.Fatal(printed, err)
	}
	return h
}

// serveAgent is an ssh-agent with one key, as the file of its public half and as a line.
func serveAgent(t *testing.T) (line, file string) {
	t.Helper()
	_, key, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	ring := agent.NewKeyring()
	if err := ring.Add(agent.AddedKey{PrivateKey: key}); err != nil {
		t.Fatal(err)
	}
	folder, err := os.MkdirTemp("", "agent") // a socket's name may not be long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	listener, err := net.Listen("unix", filepath.Join(folder, "s"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _ = agent.ServeAgent(ring, conn) }()
		}
	}()
	t.Setenv("SSH_AUTH_SOCK", listener.Addr().String())
	public, err := ssh.NewPublicKey(key.Public().(ed25519.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	line = string(ssh.MarshalAuthorizedKey(public))
	file = filepath.Join(folder, "id.pub")
	if err := os.WriteFile(file, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	return line, file
}

// TestApproveBySSHKeygen signs as the guide says, with OpenSSH's own program.
func TestApproveBySSHKeygen(t *testing.T) {
	t.Parallel()
	keygen, err := exec.LookPath("ssh-keygen")
	if err != nil {
		t.Skip("needs ssh-keygen")
	}
	d := newCustomer(t)
	folder := t.TempDir()
	run := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), keygen, args...)
		cmd.Dir = folder
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	run("-q", "-t", "ed25519", "-N", "", "-f", "k")
	public, err := os.ReadFile(filepath.Join(folder, "k.pub"))
	if err != nil {
		t.Fatal(err)
	}
	d.trust(consent.Config{Mode: consent.ModeEach, Holders: []consent.Holder{{Name: "ada", Keys: []string{string(public)}}}})
	c := d.plans("0ha1", asked)
	request := filepath.Join(folder, "request.json")
	if err := os.WriteFile(request, []byte(d.says(0, c.Effect, "approve", c.ID, "--print")), 0o600); err != nil {
		t.Fatal(err)
	}
	run("-q", "-Y", "sign", "-n", "consent@berth.dev", "-f", "k", "request.json")
	d.says(exitUsage, "--statement", "approve", "--signature", request+".sig")
	d.says(0, "agreed to by ada", "approve", "--statement", request, "--signature", request+".sig")

	second := d.plans("0ha2", asked)
	d.says(0, "agreed to by ada", "approve", second.ID, "--key", filepath.Join(folder, "k"), "--yes", second.Effect)
}

func TestStandingRulesOfTheCommandLine(t *testing.T) {
	t.Parallel()
	d := newCustomer(t)
	folder := t.TempDir()
	key, file := filepath.Join(folder, "ada.key"), filepath.Join(folder, "rules.toml")
	made := d.says(0, "", "consent-key", "new", key)
	ada := holderOf(t, made)
	d.trust(consent.Config{Mode: consent.ModeRules, Holders: []consent.Holder{ada}})
	d.plans("0ha1", consent.Facts{ChangeKind: "deploy", Component: "web", Update: 1})
	write := func(version string) {
		t.Helper()
		text := "version = " + version + "\ninstall = \"" + consentInstall + "\"\nexpires = 2099-01-01T00:00:00Z\ntime_zone = \"Europe/Berlin\"\n[[rule]]\nname = \"updates\"\nchanges = [\"deploy\"]\nno_deletes = true\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("2")
	signed := filepath.Join(folder, "rules.signed.json")
	d.says(0, "there are no standing rules", "consent", "rules", "show")
	d.says(0, "covered by rule updates", "consent", "rules", "check", file)
	d.says(exitFailed, "signature refused", "consent", "rules", "put", file)
	d.says(0, "has 1 signatures", "consent", "rules", "sign", file, "--key", key)
	d.says(0, "standing rules version 2", "consent", "rules", "put", signed)
	d.says(0, "NOT IN FORCE", "consent", "rules", "show") // the agent is to record them
	if err := os.WriteFile(file, []byte("version = 1\nmax_per_dya = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.says(exitFailed, "max_per_dya", "consent", "rules", "check", file)
}
