package main

import (
	"bufio"
	"crypto/fips140"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
	ledger "github.com/berth-dev/berth/pkg/egress"
	"github.com/berth-dev/berth/pkg/offer"
	"github.com/berth-dev/berth/pkg/version"
	"github.com/berth-dev/berth/runner/agent/consents"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/roles"
	"github.com/berth-dev/berth/runner/review"
)

func (s *settings) reviewCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use: "review", Short: "Answer a security reviewer's thirty questions from the state of this runner", Args: noArgs,
		Long: "Each answer is computed from what this runner trusts, runs and records right now, with the command that shows it, the tests of Berth that hold it, and ids of controls. What Berth " +
			"does not have is said as it is. Nothing is sent anywhere.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := s.dir()
			if err != nil {
				return err
			}
			facts, err := reviewFacts(dir, s.cfg.MinFree)
			if err != nil {
				return err
			}
			answers := review.Answers(facts)
			switch format {
			case "json":
				return printJSON(cmd.OutOrStdout(), struct {
					Facts   review.Facts    `json:"facts"`
					Answers []review.Answer `json:"answers"`
				}{facts, answers})
			case "markdown":
				_, err := fmt.Fprint(cmd.OutOrStdout(), review.Markdown(facts, answers))
				return err
			}
			return usageError{fmt.Errorf("--output %q is not markdown or json", format)}
		},
	}
	cmd.Flags().StringVarP(&format, "output", "o", "markdown", "markdown or json")
	return cmd
}

// reviewFacts finds out how a runner stands. What cannot be read is an error: an answer
// made of half of the facts would be a wrong one.
func reviewFacts(dir datadir.Dir, minFree int64) (f review.Facts, err error) {
	st, err := look(dir, minFree)
	if err != nil {
		return f, err
	}
	f = review.Facts{
		At: time.Now().UTC(), Version: version.Get().String(), Go: runtime.Version(), FIPS: fips140.Enabled(),
		RunnerID: st.Runner.RunnerID, InstallID: st.Runner.InstallID, Active: st.Active, Connected: st.Active && st.Agent.Connected,
		Trust: st.Agent.Trust, Isolation: st.Agent.Isolation, Limits: st.Agent.Limits, Switch: string(st.Switch.Mode),
		Recovery: st.RecoveryKey, FirstForm: st.FirstForm, Settings: st.Agent.SettingsVersion, SettingsExpire: st.Agent.SettingsExpire,
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		f.Modules = len(info.Deps)
	}
	if st.Key != nil {
		f.KeyProblem = st.Key.Text
	}
	if st.Chain != nil {
		f.ChainProblem = st.Chain.Text
	}
	if g := st.Guardrails; g != nil {
		f.Guardrails, f.OwnGuardrails, f.OnlyWarn, f.InDoubt, f.RulesDigest = g.Guardrails, g.Own, g.OnlyWarn || g.Development, g.Problems, g.Digest
	}
	if f.Listeners, err = listening(st.Agent.PID, st.Active); err != nil {
		f.Unseen = err.Error()
	}
	for _, part := range []func(datadir.Dir, *review.Facts) error{trustFacts, consentFacts, roleFacts, egressFacts, chainFacts, configFacts} {
		if err := part(dir, &f); err != nil {
			return f, err
		}
	}
	return f, nil
}

func trustFacts(dir datadir.Dir, f *review.Facts) error {
	trust, err := dir.LoadTrust()
	if err != nil {
		return err
	}
	for _, k := range trust.DispatchKeys {
		f.Dispatch = append(f.Dispatch, k.KeyID)
	}
	f.PrivateCA, f.Images = trust.PrivateCAFile, len(trust.Images)
	vendor, err := viewVendor(dir)
	if err != nil {
		return err
	}
	f.Vendor = vendor.Keys
	f.Revoked, f.VendorRevoked = []int{}, []int{}
	for _, r := range vendor.Revoked {
		f.Revoked = append(f.Revoked, r.Number)
	}
	for _, r := range vendor.RevokedByVendor {
		f.VendorRevoked = append(f.VendorRevoked, r.Number)
	}
	var first struct {
		LogURL   string `json:"log_url"`
		Registry string `json:"registry"`
	}
	if _, err := datadir.ReadJSON(filepath.Clean(dir.Hosts()), &first); err != nil {
		return err
	}
	for _, address := range []string{trust.RunnerAPIURL, trust.LogURL, trust.Registry, first.LogURL, first.Registry} {
		if u, err := url.Parse(address); err == nil && u.Host != "" && !slices.Contains(f.Outbound, u.Host) {
			f.Outbound = append(f.Outbound, u.Host)
		}
	}
	if u, err := url.Parse(trust.RunnerAPIURL); err == nil {
		if p, err := http.ProxyFromEnvironment(&http.Request{URL: u}); err == nil && p != nil {
			f.Proxy = p.Host
		}
	}
	release, err := dir.LoadReleaseKeys()
	f.Release = slices.Sorted(maps.Keys(release))
	return err
}

func consentFacts(dir datadir.Dir, f *review.Facts) error {
	if f.InstallID == "" {
		return nil
	}
	keys, err := dir.Keys()
	if err != nil {
		return err
	}
	f.Machine = capsule.KeyID(keys.Public())
	store := consents.Store{Dir: dir, InstallID: f.InstallID, Machine: keys.Public(), Now: time.Now}
	panel, err := store.Panel()
	if err != nil {
		return err
	}
	f.Consent, f.Need, f.ByMachine = string(panel.Mode), panel.Need, panel.ByMachine()
	for _, seat := range panel.Holders {
		hardware := len(seat.Keys) > 0
		for _, key := range seat.Keys {
			hardware = hardware && key.Hardware()
		}
		if hardware {
			f.Hardware++
		}
		f.Holders = append(f.Holders, seat.Name)
	}
	rules, problem, err := store.RulesInForce()
	if err != nil {
		return err
	}
	f.RulesProblem = problem
	if rules == nil {
		return nil
	}
	f.Rules, f.RulesVersion, f.RulesExpire, f.Freezes = len(rules.Rules), rules.Version, rules.Expires, len(rules.Freezes)
	for _, r := range rules.Rules {
		f.Windows += len(r.Windows)
	}
	return nil
}

func roleFacts(dir datadir.Dir, f *review.Facts) error {
	d, _, err := roles.Store{Dir: dir.Roles(), Now: time.Now}.Read()
	if err != nil {
		return err
	}
	for _, r := range d.Declared {
		f.Roles = append(f.Roles, r.Name)
		if d.On(r.Written, time.Now()) {
			f.RolesOn = append(f.RolesOn, r.Name)
		}
	}
	return nil
}

func egressFacts(dir datadir.Dir, f *review.Facts) error {
	classes, err := egressClasses(dir)
	if err != nil {
		return err
	}
	f.EgressClasses = len(classes)
	for _, c := range classes {
		if c.Off != "" {
			f.EgressCanOff++
		}
		if c.State == "off" {
			f.EgressOff = append(f.EgressOff, c.Class)
		}
	}
	report, err := verifyEgress(dir)
	if err != nil {
		return err
	}
	f.EgressProblem, f.EgressLine, f.EgressAgreed = report.Problem, report.Head.Seq, report.Agreed
	reached := map[string]bool{}
	err = ledger.Read(dir.Egress(), func(_ []byte, l ledger.Line) error {
		if l.To != "" {
			reached[l.To] = true
		}
		return nil
	})
	f.Reached = slices.Sorted(maps.Keys(reached))
	return err
}

func chainFacts(dir datadir.Dir, f *review.Facts) error {
	if f.InstallID == "" {
		return nil
	}
	file, err := os.Open(dir.Chain())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	keys, err := dir.Keys()
	if err != nil {
		return err
	}
	report, err := chain.VerifyOf(capsuleKeys(keys), file, chain.VerifyOptions{Chain: f.InstallID, Check: new(offer.History).Check})
	if err != nil {
		return err
	}
	f.Former = []string{}
	for _, w := range report.Writers() {
		if w.EndedBy > 0 {
			f.Former = append(f.Former, fmt.Sprintf("%s (records %d to %d)", w.KeyID, w.FirstSeq, w.LastSeq))
		}
	}
	f.ChainRecords, f.ChainHead, f.ChainAnchors, f.ChainDecisions, f.Unfinished = report.Records, report.Head.Hash, report.Anchors, len(report.Decisions), len(report.Unfinished)
	if !report.OK() {
		f.ChainProblem = fmt.Sprintf("record %d %s", report.FirstBad, report.Problem)
	}
	return nil
}

// configFacts are those of the runner's file; flags of the running agent are not known.
func configFacts(dir datadir.Dir, f *review.Facts) error {
	var c struct {
		Sees      string `json:"vendor_sees_state"`
		Downloads string `json:"terraform_downloads"`
	}
	_, err := datadir.ReadJSON(dir.Config(), &c)
	f.VendorSees, f.Downloads = or(c.Sees, "addresses, unless the agent was started with another level"), or(c.Downloads, "allow")
	return err
}

// listening are the addresses on which a process accepts TCP connections, from what the
// kernel says of it.
func listening(pid int, active bool) ([]string, error) {
	if !active {
		return nil, nil
	}
	proc := "/proc/" + strconv.Itoa(pid)
	fds, err := os.ReadDir(proc + "/fd")
	if err != nil {
		return nil, err
	}
	own := map[string]bool{}
	for _, fd := range fds {
		if to, err := os.Readlink(proc + "/fd/" + fd.Name()); err == nil && strings.HasPrefix(to, "socket:[") {
			own[strings.Trim(to, "socket:[]")] = true
		}
	}
	var found []string
	for _, name := range []string{"tcp", "tcp6"} {
		f, err := os.Open(proc + "/net/" + name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a kernel without IPv6
		}
		if err != nil {
			return nil, err
		}
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			const local, state, inode, listens = 1, 3, 9, "0A"
			fields := strings.Fields(lines.Text())
			if len(fields) > inode && fields[state] == listens && own[fields[inode]] {
				found = append(found, kernelAddress(fields[local]))
			}
		}
		_ = f.Close()
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// kernelAddress reads an address as /proc/net/tcp has it: words of 32 bits, each with
// its lowest byte first.
func kernelAddress(text string) string {
	host, portText, _ := strings.Cut(text, ":")
	raw, err := hex.DecodeString(host)
	port, portErr := strconv.ParseUint(portText, 16, 16)
	if err != nil || portErr != nil || len(raw)%4 != 0 {
		return text
	}
	for word := range slices.Chunk(raw, 4) {
		slices.Reverse(word)
	}
	return net.JoinHostPort(net.IP(raw).String(), strconv.FormatUint(port, 10))
}
