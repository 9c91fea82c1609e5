package agent

import (
	"context"
	"fmt"
	"maps"

	"github.com/berth-dev/berth/pkg/enrolcode"
	"github.com/berth-dev/berth/pkg/pause"
	"github.com/berth-dev/berth/runner/agent/cluster"
	"github.com/berth-dev/berth/runner/agent/control"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/power"
)

// takenCode recognises a code that was taken in, so that a restart does not
// take its used secrets for new ones.
type takenCode struct {
	Digest    string `json:"digest"`
	InstallID string `json:"install_id"`
}

// stackReport is the phone-home that is still to be delivered. Outputs are
// looked up once: the same report may be sent again, another one is refused.
type stackReport struct {
	Secret  string         `json:"secret"`
	Outputs map[string]any `json:"outputs,omitempty"`
}

// admit takes in the customer's code: what it says is written down as if the
// customer had written the files. A code that was taken in before changes
// nothing; a newer one for the same install moves the runner to what it says.
func (a *agent) admit() error {
	if a.cfg.Code == "" {
		return nil
	}
	code, err := enrolcode.Parse(a.cfg.Code)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrEnrolment, err)
	}
	var taken takenCode
	readSpare(context.Background(), a, a.dir.Code(), &taken) // without it, the code is taken in once more
	if taken.Digest == code.Digest() {
		return nil
	}
	runner, enrolled, err := a.dir.LoadRunner()
	switch {
	case err != nil:
		return err
	case enrolled && runner.InstallID != code.InstallID:
		return fmt.Errorf("%w: the code is for install %s (%s), and %s belongs to the runner of %s: give each install a volume of its own",
			ErrEnrolment, code.Install, code.InstallID, a.cfg.Data, runner.InstallID)
	case !enrolled && code.Expired(a.cfg.Now()):
		return fmt.Errorf("%w: the code expired at %s: ask for a new one", ErrEnrolment, code.ExpiresAt.Format("2006-01-02 15:04 MST"))
	}
	var before datadir.Trust // what the customer decides does not come with a code
	if _, err := datadir.ReadJSON(a.dir.Trust(), &before); err != nil {
		return err
	}
	trust := datadir.Trust{RunnerAPIURL: code.URL, OneHost: code.OneHost, Recovery: before.Recovery, Vouched: before.Vouched, Consent: before.Consent, Vendor: before.Vendor, Images: before.Images}
	for _, k := range code.DispatchKeys {
		trust.DispatchKeys = append(trust.DispatchKeys, datadir.TrustedKey{KeyID: k.KeyID, PublicKey: k.PublicKey})
	}
	if err := datadir.WriteJSON(a.dir.Trust(), trust); err != nil {
		return err
	}
	if err := datadir.Remove(a.dir.Hosts()); err != nil { // the customer said again where the control plane is
		return err
	}
	if !enrolled {
		if err := datadir.Write(a.dir.Enrolment(), []byte(code.EnrolmentSecret+"\n")); err != nil {
			return err
		}
	}
	if err := datadir.WriteJSON(a.dir.StackReport(), stackReport{Secret: code.PhoneHomeSecret}); err != nil {
		return err
	}
	// Last: an agent that dies before this takes the code in again.
	return datadir.WriteJSON(a.dir.Code(), takenCode{Digest: code.Digest(), InstallID: code.InstallID})
}

// phoneHome delivers the report of the stack, if there is one left.
func (a *agent) phoneHome(ctx context.Context) error {
	var report stackReport
	if !readSpare(ctx, a, a.dir.StackReport(), &report) {
		return nil
	}
	var err error
	if report.Outputs == nil {
		if report.Outputs, err = a.stackOutputs(ctx); err != nil {
			return err
		}
		if err := a.disk.Insist(func() error { return datadir.WriteJSON(a.dir.StackReport(), report) }); err != nil {
			a.cfg.Log.ErrorContext(ctx, "report of the stack waits for the next start", "err", err)
			return nil // nothing else has to wait for it
		}
	}
	var refused error
	err = control.Retry(ctx, a.cfg.Log, "phone home", func(ctx context.Context) error {
		err := a.api.PhoneHome(ctx, report.Secret, report.Outputs)
		if err != nil && !control.Away(err) {
			refused, err = err, nil
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case refused != nil:
		// Only a newer code helps, and it brings a secret of its own. The runner
		// itself is enrolled: its work continues.
		a.cfg.Log.ErrorContext(ctx, "the control plane does not take the report of the stack; ask for a new code", "err", refused)
	default:
		a.cfg.Log.InfoContext(ctx, "stack was reported")
	}
	return datadir.Remove(a.dir.StackReport())
}

// stackOutputs are what templates read as install_stack.outputs.
func (a *agent) stackOutputs(ctx context.Context) (map[string]any, error) {
	outputs := map[string]any{}
	for _, name := range []string{"hostname", "os", "arch"} {
		outputs[name] = a.facts()[name]
	}
	outputs["install_dir"] = a.dir.Install()
	if a.cfg.Pod == nil {
		return outputs, nil
	}
	for try := 0; ; try++ {
		of, err := a.cfg.Pod.Outputs(ctx)
		if err == nil {
			maps.Copy(outputs, of)
			return outputs, nil
		}
		if try == 0 {
			a.cfg.Log.WarnContext(ctx, "the cluster does not answer, trying again", "err", err)
		}
		if err := pause.For(ctx, control.Backoff(try)); err != nil {
			return nil, err
		}
	}
}

// followClusterSwitch copies the cluster's switch into its file, from where it
// is obeyed like the local one.
func (a *agent) followClusterSwitch(life context.Context) error {
	return a.cfg.Pod.FollowSwitch(life, a.cfg.Log, func(s cluster.Switch) error {
		return power.SetInCluster(a.dir, power.State{
			Mode: power.Mode(s.Mode), Reason: s.Reason, By: "ConfigMap " + cluster.SwitchName, At: a.cfg.Now().UTC(),
		})
	})
}
