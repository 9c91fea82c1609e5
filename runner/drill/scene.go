package drill

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/interpolate"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/pkg/seal"
	"github.com/berth-dev/berth/runner/agent/consents"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/guardrail"
)

// scene is a scratch install: a customer's data directory, a runner that works in it, and
// the control plane that attacks it. It is used by one attack at a time.
type scene struct {
	plane   *plane
	dir     datadir.Dir
	runner  Runner
	holder  signer // of the customer's consent
	vendor  signer // of releases, where they have to be signed
	log     *tail
	process *exec.Cmd
	ended   chan struct{}
	// accepted is what the runner was brought to accept, as a customer would.
	accepted []jobspec.Script
}

// shape is what the customer has set up in a scene.
type shape struct {
	// consent is the mode; "" for the vendor's.
	consent consent.Mode
	// guardrails are files of the customer's, by name. Without an answers file the
	// guardrails only warn: a scene is about one defence.
	guardrails map[string]string
	// strict keeps the guardrails as they are shipped.
	strict  bool
	scripts []jobspec.Script
	roles   []string
	// signed: only releases are taken that the vendor's key signed.
	signed bool
}

// Runner is what is attacked.
type Runner struct {
	// Executable is berth-runner; Args are flags for each of its starts, such as --engine.
	Executable string
	Args       []string
	// Env is added to the environment of the runner, which gets the path and nothing else.
	Env []string
}

// newScene sets an install up below base and starts its runner.
func newScene(ctx context.Context, base string, r Runner, sh shape) (s *scene, stop func(), err error) {
	dispatch, public, err := newSigner("key_dispatch")
	if err != nil {
		return nil, nil, err
	}
	holder, holderKey, err := newSigner("")
	if err != nil {
		return nil, nil, err
	}
	data := filepath.Join(base, "data")
	dir, err := datadir.At(data)
	if err != nil {
		return nil, nil, err
	}
	if err := errors.Join(os.MkdirAll(filepath.Join(data, "secrets"), 0o700), os.MkdirAll(dir.Guardrails(), 0o700)); err != nil {
		return nil, nil, err
	}
	p, end, err := startPlane(ctx, dispatch)
	if err != nil {
		return nil, nil, err
	}
	vendor, vendorKey, err := newSigner("")
	if err != nil {
		return nil, nil, err
	}
	s = &scene{plane: p, dir: dir, runner: r, holder: holder, vendor: vendor, log: &tail{}}
	trust := datadir.Trust{
		RunnerAPIURL: p.url, LogURL: p.url, Registry: p.url,
		DispatchKeys: []datadir.TrustedKey{{KeyID: dispatch.id, PublicKey: capsule.EncodePublicKey(public)}},
	}
	if sh.consent != "" {
		trust.Consent = &consent.Config{Mode: sh.consent, Holders: []consent.Holder{{Name: "ada", Keys: []string{capsule.EncodePublicKey(holderKey)}}}}
	}
	if sh.signed {
		trust.Vendor = &datadir.Vendor{AppID: vendorApp, Keys: []string{capsule.EncodePublicKey(vendorKey)}}
	}
	files := map[string]string{guardrail.AnswersFile: `{"only_warn": true, "reason": "the drill attacks something else here"}`}
	if sh.strict {
		files = map[string]string{}
	}
	for name, text := range sh.guardrails {
		files[name] = text
	}
	errs := []error{
		datadir.WriteJSON(dir.Trust(), trust),
		datadir.Write(dir.Enrolment(), []byte("ben_"+strings.Repeat("d", 43)+"\n")),
	}
	for name, text := range files {
		errs = append(errs, datadir.Write(filepath.Join(dir.Guardrails(), name), []byte(text)))
	}
	if err = errors.Join(errs...); err == nil {
		err = s.start(ctx)
	}
	stop = func() { s.stop(); end() }
	if err == nil {
		err = p.until(ctx, "the runner's first question for work", func() bool { return p.claims > 0 })
	}
	if err == nil && len(sh.scripts)+len(sh.roles) > 0 {
		err = s.accept(ctx, sh)
	}
	if err != nil {
		stop()
		return nil, nil, fmt.Errorf("set the scratch install up: %w\n%s", err, s.log)
	}
	return s, stop, nil
}

// start starts the runner's executable.
func (s *scene) start(ctx context.Context) error {
	args := append([]string{"run", "--data", s.dir.Path(), "--grace", "2s", "--terraform-downloads", "forbid"}, s.runner.Args...)
	cmd := exec.CommandContext(context.WithoutCancel(ctx), s.runner.Executable, args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir.Path(), "LANG=C.UTF-8"}, s.runner.Env...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = s.log, s.log, s.dir.Path()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	ready := make(chan error, 1)
	ended := make(chan struct{})
	go func() {
		runtime.LockOSThread() // the runner ends with the thread that started it
		err := cmd.Start()
		ready <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is in its log
		}
		close(ended)
	}()
	s.process, s.ended = cmd, ended
	return <-ready
}

// stop ends the runner and waits for it.
func (s *scene) stop() {
	if s.process == nil || s.process.Process == nil {
		return
	}
	_ = s.process.Process.Signal(syscall.SIGTERM) // it may be gone
	select {
	case <-s.ended:
	case <-time.After(20 * time.Second):
		_ = s.process.Process.Kill()
		<-s.ended
	}
	s.process = nil
}

// restart starts the runner again and waits until it asks for work.
func (s *scene) restart(ctx context.Context) error {
	s.stop()
	return s.begin(ctx)
}

func (s *scene) begin(ctx context.Context) error {
	s.plane.mu.Lock()
	before := s.plane.sessions
	s.plane.mu.Unlock()
	if err := s.start(ctx); err != nil {
		return err
	}
	return s.plane.until(ctx, "the runner after its restart", func() bool { return s.plane.sessions > before && s.plane.claims > 0 })
}

// tail keeps the end of what the runner wrote.
type tail struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.text.Len() > 1<<20 {
		t.text.Next(1 << 19)
	}
	return t.text.Write(b)
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// draft is a job before its order is signed.
type draft struct {
	spec     jobspec.Spec
	text     []byte // sent in the place of spec
	order    capsule.Order
	fence    *int64
	attempt  int
	unsigned bool
	signer   signer
}

// edit is what an attacker changes of a job.
type edit func(*draft)

// give queues a job with its order, after the attacker's edits, and returns its id.
func (s *scene) give(spec jobspec.Spec, edits ...edit) (job string, err error) {
	p := s.plane
	spec.Version, spec.OrgID, spec.InstallID = jobspec.Version, p.orgID, p.installID
	if spec.JobID == "" {
		spec.JobID = id.New(id.Job)
	}
	if spec.TimeoutSeconds == 0 {
		spec.TimeoutSeconds = 60
	}
	now := time.Now()
	d := draft{spec: spec, signer: p.signer, attempt: 1, order: capsule.Order{
		OrgID: p.orgID, InstallID: p.installID, RunnerID: p.runnerID, MachineKeyID: capsule.KeyID(p.machine), JobID: spec.JobID,
		Kind: string(spec.Kind), Operation: string(spec.Operation), ChangeID: spec.ChangeID, OriginID: spec.ChangeID,
		Starts: capsule.StartsOfReading, IssuedAt: now, ExpiresAt: now.Add(time.Hour),
	}}
	if spec.Resource != nil {
		d.order.ResourceID = spec.Resource.ID
	}
	if len(spec.State) > 0 {
		d.order.StateDigest = capsule.DigestBytes(spec.State)
	}
	for _, change := range edits {
		change(&d)
	}
	a := runnerapi.Assignment{
		JobID: spec.JobID, Attempt: d.attempt, Operation: string(d.spec.Operation), StreamID: id.New(id.Stream), Fence: d.fence,
		LogToken: "blt_" + strings.Repeat("d", 43), LeaseExpiresAt: now.Add(time.Minute), Spec: d.text,
	}
	if a.Spec == nil {
		if a.Spec, err = json.Marshal(d.spec); err != nil {
			return "", err
		}
	}
	if d.order.SpecDigest == "" {
		d.order.SpecDigest = capsule.DigestBytes(a.Spec)
	}
	if !d.unsigned {
		env, err := capsule.Sign(d.signer.key, d.signer.id, capsule.OrderType, d.order)
		if err != nil {
			return "", err
		}
		a.Order = &env
	}
	p.change(func() {
		delete(p.results, spec.JobID)
		p.queue = append(p.queue, a)
	})
	return spec.JobID, nil
}

// result waits for the report of a job.
func (s *scene) result(ctx context.Context, job string) (jobspec.Result, error) {
	p := s.plane
	if err := p.until(ctx, "the result of a job", func() bool { _, told := p.results[job]; return told }); err != nil {
		return jobspec.Result{}, fmt.Errorf("%w\n%s", err, s.log)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.results[job].Result, nil
}

// do gives a job and waits for its report.
func (s *scene) do(ctx context.Context, spec jobspec.Spec, edits ...edit) (jobspec.Result, error) {
	job, err := s.give(spec, edits...)
	if err != nil {
		return jobspec.Result{}, err
	}
	return s.result(ctx, job)
}

// plan gives a job that plans, which has to succeed.
func (s *scene) plan(ctx context.Context, spec jobspec.Spec) (runnerapi.Plan, error) {
	job, err := s.give(spec)
	if err != nil {
		return runnerapi.Plan{}, err
	}
	result, err := s.result(ctx, job)
	if err != nil {
		return runnerapi.Plan{}, err
	}
	if result.Outcome != jobspec.OutcomeSucceeded {
		return runnerapi.Plan{}, fmt.Errorf("the plan ended %s: %s", result.Outcome, result.Error)
	}
	return s.planOf(job), nil
}

// planOf is what a job handed in as its plan, nothing where it handed in none.
func (s *scene) planOf(job string) runnerapi.Plan {
	s.plane.mu.Lock()
	defer s.plane.mu.Unlock()
	return s.plane.plans[job]
}

// apply is the job that applies a plan.
func applyOf(spec jobspec.Spec, plan runnerapi.Plan) (jobspec.Spec, edit) {
	spec.JobID, spec.Operation, spec.Pinned, spec.State = id.New(id.Job), jobspec.OperationApply, plan.Pinned, nil
	return spec, func(d *draft) {
		fence := int64(5)
		if spec.Resource == nil {
			fence = 0
		}
		d.fence = &fence
		d.order.EffectDigest, d.order.PlanBytesDigest, d.order.Fence = plan.EffectDigest, plan.PlanBytesDigest, fence
		d.order.Nonce, d.order.Starts = capsule.NewNonce(), capsule.StartsOfMutation
	}
}

// accept brings the runner to accept a release, as its customer and vendor would.
func (s *scene) accept(ctx context.Context, sh shape) error {
	s.accepted = append(s.accepted, sh.scripts...)
	spec := jobspec.Spec{
		Kind: jobspec.KindRelease, Operation: jobspec.OperationPlan, ChangeID: id.New(id.Change),
		Release: &jobspec.Release{ID: id.New(id.Release), Number: firstRelease, Scripts: s.accepted, Roles: rolesOf(sh.roles)},
	}
	if sh.signed {
		if err := s.sign(spec.Release, s.vendor, asSigned); err != nil {
			return err
		}
	}
	plan, err := s.plan(ctx, spec)
	if err != nil {
		return err
	}
	if err := s.agree(spec.ChangeID, sh.consent); err != nil {
		return err
	}
	apply, granted := applyOf(spec, plan)
	result, err := s.do(ctx, apply, granted)
	if err == nil && result.Outcome != jobspec.OutcomeSucceeded {
		err = fmt.Errorf("the release was not accepted: %s: %s", result.Outcome, result.Error)
	}
	return err
}

// agree is the customer's consent, where the scene asks for one.
func (s *scene) agree(change string, mode consent.Mode) error {
	if mode == "" || mode == consent.ModeVendor {
		return nil
	}
	c, err := s.consents().Find(change)
	if err != nil {
		return err
	}
	return s.say(c, consent.Approve, s.holder)
}

func (s *scene) consents() consents.Store {
	return consents.Store{Dir: s.dir, InstallID: s.plane.installID, Machine: s.plane.machine, Now: time.Now}
}

// say signs an answer to a change with a key, and leaves it where answers belong.
func (s *scene) say(c consents.Change, answer consent.Answer, by signer) error {
	until := time.Time{}
	if answer == consent.Approve {
		until = time.Now().UTC().Add(time.Hour)
	}
	payload, err := s.consents().Statement(c, answer, "a drill", until).Bytes()
	if err != nil {
		return err
	}
	env, err := consent.Ed25519Signer(by.key).Sign(consent.ForStatement, consent.NewEnvelope(consent.ForStatement, payload))
	if err != nil {
		return err
	}
	return s.consents().Answer(env)
}

// sealed is the tree of an install whose input "secret" is sealed to the runner.
func (s *scene) sealed(secret string, edits ...func(*sealing)) (json.RawMessage, error) {
	p := s.plane
	how := sealing{org: p.orgID, install: p.installID, recipient: p.recipient}
	for _, edit := range edits {
		edit(&how)
	}
	tree := map[string]any{"inputs": map[string]any{"populated": true, "inputs": map[string]any{"secret": secret}}}
	at := interpolate.SealedLeaves(how.org, how.install, tree)
	out, err := seal.SealLeaves([]string{how.recipient}, tree, func(path []string) (seal.Purpose, bool) {
		purpose, ok := at(path)
		if how.purpose != nil {
			purpose = *how.purpose
		}
		return purpose, ok && path[2] == "secret"
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(out)
}

// sealing is to whom, and as what, a value is sealed.
type sealing struct {
	org, install, recipient string
	purpose                 *seal.Purpose
}

// mark is a file in the install's own directory, which scripts of the drill write.
func (s *scene) mark(name string) string { return filepath.Join(s.dir.Install(), name) }

// lines is how many lines a mark has: how often its script ran.
func (s *scene) lines(name string) (int, error) {
	raw, err := os.ReadFile(s.mark(name))
	if err != nil && !os.IsNotExist(err) {
		return 0, err
	}
	return strings.Count(string(raw), "\n"), nil
}
