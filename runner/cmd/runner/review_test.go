package main

import (
	"encoding/json"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/runner/agent"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/review"
)

// review is the dossier of a runner, as programs get it.
func (d *customer) review() (facts review.Facts, answers []review.Answer) {
	d.t.Helper()
	var out struct {
		Facts   review.Facts    `json:"facts"`
		Answers []review.Answer `json:"answers"`
	}
	if err := json.Unmarshal([]byte(d.says(0, "", "review", "--output", "json")), &out); err != nil {
		d.t.Fatal(err)
	}
	if len(out.Answers) != 30 {
		d.t.Fatalf("%d answers", len(out.Answers))
	}
	return out.Facts, out.Answers
}

// The dossier is of this runner's files and processes, and follows them.
func TestReviewOfARunner(t *testing.T) {
	t.Parallel()
	d := newCustomer(t)
	if err := datadir.WriteJSON(d.dir.Status(), agent.Status{Trust: "isolated", Isolation: "a user for each engine", PID: os.Getpid()}); err != nil {
		t.Fatal(err)
	}
	d.says(0, "## 30.", "review")
	facts, answers := d.review()
	keys, err := d.dir.Keys()
	if err != nil {
		t.Fatal(err)
	}
	if facts.Consent != "vendor" || !facts.ByMachine || !slices.Equal(facts.Outbound, []string{"127.0.0.1:1"}) || facts.Machine == "" || facts.Trust != "isolated" {
		t.Errorf("facts = %+v of %v", facts, keys.Public())
	}
	if a := answers[0]; a.Verdict != review.Partly {
		t.Errorf("in mode vendor: %+v", a)
	}
	d.says(0, "", "egress", "off", "log-bodies", "--reason", "ticket")
	d.trust(consent.Config{Mode: consent.ModeEach, Need: 1, Holders: []consent.Holder{{Name: "ada", Keys: []string{publicOf(t, "ada.key", d)}}}})
	facts, answers = d.review()
	if facts.Consent != "each" || !slices.Equal(facts.Holders, []string{"ada"}) || !slices.Equal(facts.EgressOff, []string{"log-bodies"}) || answers[0].Verdict != review.Yes {
		t.Errorf("in mode each: %+v, %+v", facts, answers[0])
	}
	if err := datadir.WriteJSON(d.dir.Status(), agent.Status{Trust: "development"}); err != nil {
		t.Fatal(err)
	}
	if _, answers = d.review(); answers[0].Verdict != review.No {
		t.Errorf("in development: %+v", answers[0])
	}
}

// publicOf makes a key for a holder.
func publicOf(t *testing.T, name string, d *customer) string {
	t.Helper()
	text := d.says(0, "add its public half", "consent-key", "new", t.TempDir()+"/"+name)
	_, after, _ := strings.Cut(text, `"keys": ["`)
	public, _, _ := strings.Cut(after, `"`)
	return public
}

// What the kernel says of listeners is read as it is.
func TestListening(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	found, err := listening(os.Getpid(), true)
	if err != nil || !slices.Contains(found, l.Addr().String()) {
		t.Errorf("listening = %v, %v; want %s among them", found, err, l.Addr())
	}
	if found, err := listening(os.Getpid(), false); err != nil || found != nil {
		t.Errorf("of no agent: %v, %v", found, err)
	}
	if got := kernelAddress("00000000000000000000000001000000:1F90"); got != "[::1]:8080" {
		t.Errorf("kernelAddress = %s", got)
	}
}

func TestEgressCommands(t *testing.T) {
	t.Parallel()
	d := newCustomer(t)
	d.says(1, "cannot be switched off", "egress", "off", "results")
	d.says(1, "no class", "egress", "off", "everything")
	d.says(0, "no agent is running", "egress", "off", "log-bodies", "--reason", "ticket")
	d.says(0, "it was so already", "egress", "off", "log-bodies")
	d.says(0, "log-bodies,off,0,0", "egress", "list", "--output", "csv")
	d.says(0, `"state": "off"`, "egress", "list", "--output", "json")
	d.says(0, "log-bodies: on", "egress", "on", "log-bodies")
	d.says(0, "CLASS", "egress", "show")
	d.says(0, "is good", "egress", "verify")
	d.says(exitUsage, "neither a duration", "egress", "show", "--since", "yesterday")
	if err := os.WriteFile(d.dir.EgressOff(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.says(1, "everything is off that can be", "egress", "list")
}
