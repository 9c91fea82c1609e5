package drill

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/consents"
)

// sealedOff is the rule that vendor code meets where the drill sees that it met one.
const sealedOff = "isolation of engines"

// tampers runs vendor code that should not be able to change a file.
func tampers(ctx context.Context, s *scene, script jobspec.Script, file string) (finding, error) {
	before, err := os.ReadFile(file)
	if err != nil {
		return finding{}, err
	}
	result, err := s.do(ctx, run(script))
	if err != nil {
		return finding{}, err
	}
	if n, err := s.lines(script.Action.Name); err != nil || n == 0 {
		return finding{}, fmt.Errorf("the script did not run: %s: %w", result.Error, err)
	}
	after, err := os.ReadFile(file)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return finding{effect: true}, nil
	case err != nil:
		return finding{}, err
	}
	return finding{effect: !bytes.HasPrefix(after, before), rule: sealedOff}, nil // the chain grows by itself
}

// sayAsMachine is the answer of a customer without holders.
func (s *scene) sayAsMachine(c consents.Change) error {
	keys, err := s.dir.Keys()
	if err != nil {
		return err
	}
	return s.say(c, consent.Approve, signer{key: keys.Sign})
}

// customer runs a command of the customer's on the scene's data directory.
func (s *scene) customer(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, s.runner.Executable, append(args, "--data", s.dir.Path())...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir.Path()}, s.runner.Env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return out, fmt.Errorf("berth-runner %s: %w: %s", args[0], err, out)
	}
	return out, nil
}

// saidOfSwitch is what the status says of a switch.
var saidOfSwitch = map[string]string{"run": "switch      run", "pause": "pause", "read-only": "read_only"}

// turn sets the customer's switch, and waits until the runner shows that it has seen it.
func (s *scene) turn(ctx context.Context, mode string) error {
	if _, err := s.customer(ctx, mode, "--reason", "a drill"); err != nil {
		return err
	}
	return s.shows(ctx, saidOfSwitch[mode])
}

// shows waits until the status has a word.
func (s *scene) shows(ctx context.Context, word string) error {
	deadline := time.Now().Add(patience)
	for {
		out, err := s.customer(ctx, "status")
		if err == nil && bytes.Contains(out, []byte(word)) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the status does not say %q: %s, %w", word, out, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// quiet is how long nothing has to happen for the runner to have left work alone.
const quiet = 4 * time.Second

// ignored looks whether a job that was given had its effect, when the runner may also leave
// it where it is, because of a rule that the status names.
func (s *scene) ignored(ctx context.Context, job, mark, rule string) (finding, error) {
	select {
	case <-ctx.Done():
		return finding{}, ctx.Err()
	case <-time.After(quiet):
	}
	n, err := s.lines(mark)
	if err != nil || n > 0 {
		return finding{effect: n > 0}, err
	}
	s.plane.mu.Lock()
	report, told := s.plane.results[job]
	s.plane.mu.Unlock()
	if told {
		return finding{rule: ruleOf(report.Result)}, nil
	}
	if err := s.shows(ctx, saidOfSwitch[rule]); err != nil {
		return finding{}, err
	}
	return finding{rule: "the customer's switch: " + rule}, nil
}

// publish hands signed settings to the runner and waits until it has asked for the next
// ones: then it has decided about these.
func (s *scene) publish(ctx context.Context, version int64, issued time.Time, schedule []jobspec.Scheduled, edits ...func(*jobspec.Settings, *signer)) error {
	p := s.plane
	settings := jobspec.Settings{
		Version: version, OrgID: p.orgID, InstallID: p.installID, IssuedAt: issued, ExpiresAt: issued.Add(24 * time.Hour), Schedule: schedule,
	}
	by := p.signer
	for _, edit := range edits {
		edit(&settings, &by)
	}
	env, err := capsule.Sign(by.key, by.id, capsule.SettingsType, settings)
	if err != nil {
		return err
	}
	p.mu.Lock()
	before := p.asked
	p.mu.Unlock()
	p.change(func() { p.settings = &runnerapi.SettingsVersion{Version: settings.Version, Envelope: env} })
	return p.until(ctx, "the runner's next question for settings", func() bool { return p.settings == nil && p.asked > before })
}

// recordsAfter are the texts of the records of the chain's copy after the first n.
func (s *scene) recordsAfter(n int) (texts []string) {
	s.plane.mu.Lock()
	defer s.plane.mu.Unlock()
	for _, line := range s.plane.chain[min(n, len(s.plane.chain)):] {
		var r struct{ What, Result, Detail string }
		if json.Unmarshal(line.Body, &r) == nil {
			texts = append(texts, r.What+": "+r.Detail)
		}
	}
	return texts
}

// development tells whether the runner says that it does not keep vendor code apart.
func (s *scene) development() bool {
	var status struct {
		Trust string `json:"trust"`
	}
	raw, err := os.ReadFile(s.dir.Status())
	return err != nil || json.Unmarshal(raw, &status) != nil || status.Trust == "development"
}
