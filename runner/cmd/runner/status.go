package main

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/offer"
	"github.com/berth-dev/berth/pkg/visible"
	"github.com/berth-dev/berth/runner/agent"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/disk"
	"github.com/berth-dev/berth/runner/agent/guards"
	"github.com/berth-dev/berth/runner/agent/power"
)

// status is what is known of a runner from its data directory alone.
type status struct {
	Active bool           `json:"active"`
	Runner datadir.Runner `json:"runner"`
	Switch power.State    `json:"switch"`
	Agent  agent.Status   `json:"agent"`
	Disk   disk.Room      `json:"disk"`
	Jobs   []string       `json:"jobs"`
	// Key is that another process holds this runner's key.
	Key *agent.KeyProblem `json:"key_problem,omitempty"`
	// Chain is why changes are stopped; the customer has to decide.
	Chain *agent.ChainProblem `json:"chain_problem,omitempty"`
	// Aside are damaged files that were set aside; somebody should look at them.
	Aside []string `json:"set_aside"`
	// RecoveryKey is the id of the customer's recovery key, "" without one.
	RecoveryKey string `json:"recovery_key,omitempty"`
	// Guardrails is how the customer's rules stand, as the agent saw them last; nil before it
	// looked.
	Guardrails *guards.State `json:"guardrails,omitempty"`
	// VendorKeys are the ids of the keys whose releases are taken; none takes all.
	VendorKeys []string `json:"vendor_keys"`
	// FirstForm: what was sealed without a purpose still opens.
	FirstForm bool `json:"first_form,omitempty"`
}

func (s *settings) statusCommand() *cobra.Command {
	var asJSON, connected bool
	cmd := &cobra.Command{
		Use: "status", Short: "Show what the runner of this data directory is doing", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := s.dir()
			if err != nil {
				return err
			}
			// What the agent was started with is not known here; its file is.
			st, err := look(dir, s.cfg.MinFree)
			if err != nil {
				return err
			}
			if connected && (!st.Active || !st.Agent.Connected) {
				return errors.New("not connected to the control plane: " + or(st.Agent.Error, "no session is open"))
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), st)
			}
			return st.print(cmd)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&connected, "connected", false, "fail unless an agent is connected to the control plane")
	return cmd
}

// look collects what the directory tells. The room is measured here, not taken
// from the agent's word: on a full disk that one cannot be written.
func look(dir datadir.Dir, minFree int64) (status, error) {
	st := status{Active: dir.Locked(), Jobs: []string{}, Aside: []string{}}
	var err error
	if st.Runner, _, err = dir.LoadRunner(); err != nil {
		return st, err
	}
	if st.Switch, err = power.Load(dir); err != nil {
		return st, err
	}
	if _, err := datadir.ReadJSON(dir.Status(), &st.Agent); err != nil {
		st.Agent = agent.Status{Error: "what the agent says of itself is damaged: " + err.Error()} // it is written again with each session
	}
	if st.Disk, err = agent.Room(dir, minFree); err != nil {
		return st, err
	}
	var keyProblem agent.KeyProblem
	if found, err := datadir.ReadJSON(dir.KeyProblem(), &keyProblem); err != nil {
		return st, err
	} else if found {
		st.Key = &keyProblem
	}
	var chainProblem agent.ChainProblem
	if found, err := datadir.ReadJSON(dir.ChainProblem(), &chainProblem); err != nil {
		return st, err
	} else if found {
		st.Chain = &chainProblem
	}
	if st.Aside, err = dir.SetAsideFiles(); err != nil {
		return st, err
	}
	var trust datadir.Trust
	if _, err := datadir.ReadJSON(dir.Trust(), &trust); err != nil {
		return st, err
	}
	if trust.Recovery != nil {
		st.RecoveryKey = trust.Recovery.KeyID
	}
	if st.Runner.InstallID != "" {
		if st.FirstForm, err = dir.FirstForm(); err != nil {
			return st, err
		}
		vendor, err := viewVendor(dir)
		if err != nil {
			return st, err
		}
		st.VendorKeys = vendor.Keys
	}
	var guardrails guards.State
	if found, err := datadir.ReadJSON(dir.GuardrailsState(), &guardrails); err != nil {
		return st, err
	} else if found {
		st.Guardrails = &guardrails
	}
	entries, err := os.ReadDir(dir.Jobs())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return st, err
	}
	for _, e := range entries {
		st.Jobs = append(st.Jobs, e.Name())
	}
	return st, nil
}

func (st status) print(cmd *cobra.Command) error {
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%s\t%s\n", name, visible.Line(fmt.Sprintf(format, args...)))
	}
	if st.Runner.RunnerID == "" {
		line("runner", "not enrolled yet")
	} else {
		line("runner", "%s (%s)", st.Runner.RunnerID, st.Runner.Kind)
		if st.Runner.InstallID != "" {
			line("install", "%s", st.Runner.InstallID)
		}
	}
	switch {
	case !st.Active:
		line("agent", "not running")
	case st.Agent.Connected:
		line("agent", "running, connected since %s", st.Agent.Since.Format(time.RFC3339))
	default:
		line("agent", "running, not connected: %s", st.Agent.Error)
	}
	if g := st.Guardrails; g != nil {
		line("guardrails", "%s", guardrailsLine(*g))
		for _, p := range g.Problems {
			line("", "IN DOUBT, so that every change asks: %s", p)
		}
	}
	if st.Agent.Trust != "" {
		line("trust", "%s", st.Agent.Trust)
		line("isolation", "%s", st.Agent.Isolation)
		line("limits", "%s", st.Agent.Limits)
	}
	line("switch", "%s %s", st.Switch.Mode, st.Switch.Reason)
	if st.Agent.SettingsVersion > 0 {
		line("settings", "version %d, good until %s", st.Agent.SettingsVersion, st.Agent.SettingsExpire.Format(time.RFC3339))
		if !time.Now().Before(st.Agent.SettingsExpire) {
			line("", "%s", "THEY HAVE EXPIRED: checks go on; nothing that changes things is started until the control plane sends newer ones")
		}
	}
	if st.Key != nil {
		line("key", "changes are stopped since %s: %s", st.Key.Found.Format(time.RFC3339), st.Key.Text)
		line("", "%s", agent.KeyRemedy)
	}
	if st.Chain != nil {
		line("chain", "changes are stopped since %s: %s", st.Chain.Found.Format(time.RFC3339), st.Chain.Text)
		line("", "%s", agent.ChainRemedy)
		if st.Chain.Refused != "" {
			line("", "the last decision was not carried out: %s", st.Chain.Refused)
		}
	}
	if problem := st.Disk.Problem(); problem != "" {
		line("disk", "%s", problem)
	} else {
		line("disk", "%s of %s free", disk.Size(st.Disk.Free), disk.Size(st.Disk.Total))
	}
	for i, path := range st.Aside {
		if i == 0 {
			line("damaged", "%d files were set aside, each with the reason next to it", len(st.Aside))
		}
		line("", "%s", path)
	}
	if st.Runner.InstallID != "" {
		line("recovery", "%s", or(st.RecoveryKey, "NO RECOVERY KEY: a lost disk loses states and outputs; see berth-runner recovery new"))
	}
	if st.Runner.InstallID != "" {
		if len(st.VendorKeys) == 0 {
			line("releases", "taken unsigned: no vendor key is pinned (berth-runner trust vendor-key)")
		}
		for _, id := range st.VendorKeys {
			line("releases", "only those signed by %s", id)
		}
	}
	if st.FirstForm {
		line("seals", "NOT SEALED AGAIN since the update: one sealed value can pass for another; run berth-runner reseal")
	}
	line("jobs", "%d", len(st.Jobs))
	for _, name := range st.Jobs {
		line("", "%s", name)
	}
	return w.Flush()
}

// printJSON prints for programs, in a form that can also be shown.
func printJSON(w io.Writer, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(visible.JSON(text), '\n'))
	return err
}

func (s *settings) chainCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "chain", Short: "The record of what was done to this install", Args: noArgs}
	cmd.AddCommand(&cobra.Command{
		Use: "key", Short: "Print the public key that signs the record, for berth-verify --key", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := s.dir()
			if err != nil {
				return err
			}
			return printChainKey(cmd.OutOrStdout(), dir)
		},
	}, &cobra.Command{
		Use: "verify", Short: "Check the record: each line follows the one before and is signed", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := s.dir()
			if err != nil {
				return err
			}
			return verifyChain(cmd, dir)
		},
	})
	cmd.AddCommand(s.decideCommands()...)
	return cmd
}

// printChainKey prints the key of a runner that has one: asking makes none.
func printChainKey(w io.Writer, dir datadir.Dir) error {
	if _, enrolled, err := dir.LoadRunner(); err != nil || !enrolled {
		return errors.Join(err, errors.New("the runner is not enrolled: it has no chain"))
	}
	keys, err := dir.Keys()
	if err != nil {
		return err
	}
	text, err := capsule.MarshalPublicKey(keys.Public())
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

func verifyChain(cmd *cobra.Command, dir datadir.Dir) error {
	runner, enrolled, err := dir.LoadRunner()
	if err != nil {
		return err
	}
	if !enrolled {
		return errors.New("the runner is not enrolled: it has no chain")
	}
	keys, err := dir.Keys()
	if err != nil {
		return err
	}
	f, err := os.Open(dir.Chain())
	if err != nil {
		return err
	}
	defer f.Close()
	report, err := chain.VerifyOf(capsuleKeys(keys), f, chain.VerifyOptions{Chain: runner.InstallID, Check: new(offer.History).Check})
	switch {
	case err != nil:
		return err
	case !report.OK() && report.FirstBad > 0:
		return fmt.Errorf("chain is bad at record %d: %s", report.FirstBad, report.Problem)
	case !report.OK():
		return fmt.Errorf("chain is bad: %s", report.Problem)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "chain %s is good: %d records, %d effects, head %s\n", report.Chain, report.Records, report.Effects, report.Head.Hash)
	for _, w := range report.Writers() {
		if w.EndedBy > 0 {
			fmt.Fprintf(cmd.OutOrStdout(), "  records %d to %d are of the machine before, %s; the recovery key handed over in record %d\n", w.FirstSeq, w.LastSeq, w.KeyID, w.EndedBy)
		}
	}
	for _, d := range report.Decisions {
		fmt.Fprintf(cmd.OutOrStdout(), "  records are missing before %d, accepted by the customer: %s\n", d.Seq, visible.Line(d.Reason))
	}
	for _, r := range report.Unfinished {
		fmt.Fprintf(cmd.OutOrStdout(), "  without outcome: %d %s (%s)\n", r.Seq, visible.Line(r.What), visible.Line(r.Job))
	}
	return nil
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// capsuleKeys are the keys that may write the runner's chain.
func capsuleKeys(k datadir.Keys) map[string]ed25519.PublicKey {
	return map[string]ed25519.PublicKey{capsule.KeyID(k.Public()): k.Public()}
}
