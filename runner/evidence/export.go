// Package evidence makes an evidence folder of a runner's data directory: what an
// auditor needs, without a secret. Package pkg/evidence has its form and checks it.
package evidence

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/egress"
	"github.com/berth-dev/berth/pkg/evidence"
	"github.com/berth-dev/berth/runner/agent/consents"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/order"
)

// Wanted says what is exported, and where to.
type Wanted struct {
	Dir     datadir.Dir
	Out     string // a directory that does not exist yet, or is empty
	Since   time.Time
	Now     time.Time
	Version string // of this runner
}

// Export makes the folder. Where it fails, what it made so far has no index and
// verifies as nothing.
func Export(w Wanted) (evidence.Index, error) {
	index := evidence.Index{Version: w.Version, Since: w.Since.UTC(), MadeAt: w.Now.UTC()}
	runner, enrolled, err := w.Dir.LoadRunner()
	if err != nil {
		return index, err
	}
	if !enrolled || runner.InstallID == "" {
		return index, errors.New("this runner has no install, and so no chain")
	}
	keys, err := w.Dir.Keys()
	if err != nil {
		return index, err
	}
	index.InstallID, index.RunnerID = runner.InstallID, runner.RunnerID
	if err := os.MkdirAll(w.Out, 0o700); err != nil {
		return index, err
	}
	if there, err := os.ReadDir(w.Out); err != nil || len(there) > 0 {
		return index, errors.Join(err, fmt.Errorf("%s is not empty: name another directory", w.Out))
	}
	// The chain first: what it names is on disk by then.
	if err := w.lines(w.Dir.Chain(), evidence.ChainFile); err != nil {
		return index, fmt.Errorf("chain: %w", err)
	}
	for _, part := range []func() error{w.ledger, w.trust, w.documents, w.rules} {
		if err := part(); err != nil {
			return index, err
		}
	}
	list, err := evidence.Changes(w.Out, index.Since)
	if err != nil {
		return index, err
	}
	asJSON, asCSV, err := evidence.ChangesFiles(list)
	if err != nil {
		return index, err
	}
	f, err := os.Open(filepath.Join(w.Out, evidence.ChainFile))
	if err != nil {
		return index, err
	}
	defer f.Close()
	report, err := chain.Verify(f, chain.VerifyOptions{})
	if err != nil {
		return index, err
	}
	index.ChainHead = report.Head
	for name, text := range map[string][]byte{evidence.ChangesJSON: asJSON, evidence.ChangesCSV: asCSV, "README.md": readme(index, len(list))} {
		if err := w.write(name, text); err != nil {
			return index, err
		}
	}
	return index, evidence.Seal(w.Out, index, keys.Sign)
}

func (w Wanted) write(name string, text []byte) error {
	path := filepath.Join(w.Out, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// lines copies the whole lines of a file that may be growing.
func (w Wanted) lines(from, name string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return w.write(name, text[:bytes.LastIndexByte(text, '\n')+1])
}

func (w Wanted) ledger() error {
	files, err := egress.Files(w.Dir.Egress())
	if err != nil {
		return err
	}
	for _, file := range files {
		err := w.lines(file, evidence.EgressDir+"/"+filepath.Base(file))
		if err != nil && !errors.Is(err, os.ErrNotExist) { // the oldest may go meanwhile
			return err
		}
	}
	return nil
}

// trust writes which keys and addresses the runner trusts. An address may have a name
// and a password in it: these stay here.
func (w Wanted) trust() error {
	trust, err := w.Dir.LoadTrust()
	if err != nil {
		return err
	}
	for _, address := range []*string{&trust.RunnerAPIURL, &trust.LogURL, &trust.Registry} {
		if u, err := url.Parse(*address); err == nil {
			u.User = nil
			*address = u.String()
		} else if *address != "" {
			*address = "not an address"
		}
	}
	return datadir.WriteJSON(filepath.Join(w.Out, evidence.TrustFile), trust)
}

// documents writes orders, plans and digests of logs.
func (w Wanted) documents() error {
	for from, to := range map[string]string{w.Dir.KeptOrder("*"): evidence.OrdersDir, w.Dir.KeptLog("*"): evidence.LogsDir} {
		files, err := filepath.Glob(from)
		if err != nil {
			return err
		}
		for _, file := range files {
			if info, err := os.Stat(file); err != nil || info.ModTime().Before(w.Since) {
				continue
			}
			if err := copyFile(file, filepath.Join(w.Out, to, filepath.Base(file))); err != nil {
				return err
			}
		}
	}
	plans, err := filepath.Glob(w.Dir.Plan("*"))
	if err != nil {
		return err
	}
	for _, file := range plans {
		var r order.Record
		if _, err := datadir.ReadJSON(file, &r); err != nil {
			return err
		}
		// A record also has what it seals for the apply: not this.
		plan := evidence.Plan{
			ChangeID: r.ChangeID, JobID: r.JobID, OriginID: r.OriginID, Effect: r.Effect, EffectDigest: r.EffectDigest,
			PlanBytes: r.Pinned, Judgement: r.Judgement, PlannedAt: r.PlannedAt,
		}
		if err := w.json(evidence.PlanFile(strings.TrimSuffix(filepath.Base(file), ".json")), plan); err != nil {
			return err
		}
	}
	return nil
}

func (w Wanted) json(name string, v any) error {
	path := filepath.Join(w.Out, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return datadir.WriteJSON(path, v)
}

// rules writes the customer's guardrails and standing rules, and which release keys
// count for updates.
func (w Wanted) rules() error {
	files, err := filepath.Glob(filepath.Join(w.Dir.Guardrails(), "*"))
	if err != nil {
		return err
	}
	for _, file := range files {
		if info, err := os.Lstat(file); err != nil || !info.Mode().IsRegular() {
			continue
		}
		if err := copyFile(file, filepath.Join(w.Out, "guardrails", filepath.Base(file))); err != nil {
			return err
		}
	}
	store := consents.Store{Dir: w.Dir}
	signed, found, err := store.SignedRules()
	if err == nil && found {
		err = w.json("standing-rules.json", signed)
	}
	if err != nil {
		return err
	}
	if err := copyFile(w.Dir.ReleaseKeys(), filepath.Join(w.Out, "release-keys.json")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
