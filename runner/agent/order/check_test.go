package order_test

import (
	"crypto/ed25519"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/order"
)

const dispatchKey = "key_dispatch"

var now = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

// scene is an order that is to be obeyed, with the facts that agree with it.
// Tests change one thing each.
type scene struct {
	order  capsule.Order
	facts  order.Facts
	effect order.EffectFacts
	signer ed25519.PrivateKey
	keys   order.Keys
}

// newScene is an order to apply.
func newScene(t *testing.T) *scene {
	t.Helper()
	public, private, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	spec := jobspec.Spec{
		Version: jobspec.Version, JobID: "job_1", OrgID: "org_1", InstallID: "ins_1", ChangeID: "chg_1",
		Kind: jobspec.KindTerraformModule, Operation: jobspec.OperationApply, Pinned: "sha256:pinned",
		Resource: &jobspec.Resource{ID: "res_1", Kind: "component", Name: "api"},
		Artifact: &jobspec.Artifact{Repository: "org_1/shop/api", Digest: "sha256:artifact"},
	}
	place := order.Place{Target: "machine:1", EngineDigest: "sha256:engine", TerraformDigest: "sha256:terraform", Lineage: "lin", Serial: 7}
	tool := capsule.Tool{Name: "terraform", Version: "1.9.0", Digest: "whatever the engine says"}
	effect, err := order.Planned(order.Base(spec, place, tool), []byte("salt"), []byte(`{"plan":1}`), []byte(`{"password":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	fence := int64(5)
	return &scene{
		order: capsule.Order{
			OrgID: "org_1", InstallID: "ins_1", RunnerID: "rnr_1", MachineKeyID: "ed25519:machine", JobID: "job_1",
			Kind: "terraform_module", Operation: "apply", ResourceID: "res_1", ChangeID: "chg_1", OriginID: "chg_0", ReleaseID: "rel_1",
			SpecDigest: "sha256:spec", Starts: 1, IssuedAt: now, ExpiresAt: now.Add(24 * time.Hour), MinRunnerVersion: "1.2.0", Actor: "acc_1",
			EffectDigest: effect.Digest(), PlanBytesDigest: "sha256:pinned", Fence: 5, Nonce: "n1",
		},
		facts: order.Facts{
			OrgID: "org_1", InstallID: "ins_1", RunnerID: "rnr_1", MachineKeyID: "ed25519:machine", RunnerVersion: "1.2.0",
			JobID: "job_1", Attempt: 1, Spec: spec, SpecDigest: "sha256:spec",
			Past:      func(string) order.Past { return order.Past{} },
			Spent:     func(string, string) order.Spent { return order.Spent{} },
			NonceUsed: func(string) bool { return false },
			Now:       now,
		},
		effect: order.EffectFacts{
			Spec: spec, Fence: &fence, HighestFence: 5,
			Planned: &order.Record{
				ChangeID: "chg_1", OriginID: "chg_0", Effect: effect, EffectDigest: effect.Digest(), Pinned: "sha256:pinned", Blob: "sha256:blob",
			},
			Effect:       order.Again(effect, order.Base(spec, place, tool)),
			PinnedDigest: "sha256:pinned",
		},
		signer: private,
		keys:   order.Keys{Dispatch: map[string]ed25519.PublicKey{dispatchKey: public}},
	}
}

// newCheck is an order to run a check.
func newCheck(t *testing.T) *scene {
	t.Helper()
	s := newScene(t)
	s.facts.Spec = jobspec.Spec{
		Version: jobspec.Version, JobID: "job_1", OrgID: "org_1", InstallID: "ins_1", Kind: jobspec.KindAction, Operation: jobspec.OperationRun,
		Action: &jobspec.Action{Name: "check"},
	}
	s.facts.StateDigest = "sha256:state"
	o := &s.order
	o.Kind, o.Operation, o.ResourceID, o.ChangeID, o.OriginID, o.StateDigest = "action", "run", "", "", "", "sha256:state"
	o.EffectDigest, o.PlanBytesDigest, o.Fence, o.Nonce, o.Starts = "", "", 0, "", 3
	return s
}

// newBuild is an order to build, for a Build Runner.
func newBuild(t *testing.T) *scene {
	t.Helper()
	s := newCheck(t)
	s.facts.Spec = jobspec.Spec{
		Version: jobspec.Version, JobID: "job_1", OrgID: "org_1", BuildID: "bld_1", Kind: jobspec.KindHelmChart, Operation: jobspec.OperationBuild,
	}
	s.facts.Build, s.facts.InstallID, s.facts.StateDigest = true, "", ""
	o := &s.order
	o.Kind, o.Operation, o.InstallID, o.BuildID, o.StateDigest = "helm_chart", "build", "", "bld_1", ""
	s.keys.Dispatch, s.keys.Builder = nil, s.keys.Dispatch
	return s
}

// judge is both looks at an order, as a job takes them.
func (s *scene) judge(t *testing.T) order.Verdict {
	t.Helper()
	v := order.Judge(s.keys, sign(t, s.signer, dispatchKey, capsule.OrderType, s.order), s.facts)
	if v.Outcome != "" || !v.Rule.Mutates {
		return v
	}
	return order.JudgeEffect(v.Order, s.effect)
}

func names(differs []jobspec.Difference) []string {
	var out []string
	for _, d := range differs {
		out = append(out, d.Field)
	}
	return out
}

func TestJudgeObeysWhatAgrees(t *testing.T) {
	t.Parallel()
	for name, scene := range map[string]*scene{"an apply": newScene(t), "a check": newCheck(t), "a build": newBuild(t)} {
		if v := scene.judge(t); v.Outcome != "" || len(v.Differs) > 0 {
			t.Errorf("%s: %+v, want it obeyed", name, v)
		}
	}
	again := newCheck(t)
	again.facts.Attempt, again.facts.Past = 3, func(string) order.Past { return order.Past{Starts: 2, Attempt: 2} }
	if v := again.judge(t); v.Outcome != "" {
		t.Errorf("a third start of three: %+v, want it obeyed", v)
	}
}

// Each field of the order, and each fact that it rests on, is changed alone.
func TestJudgeNamesWhatDiffers(t *testing.T) {
	t.Parallel()
	three := int64(3)
	past := func(p order.Past) func(*scene) {
		return func(s *scene) { s.facts.Past = func(string) order.Past { return p } }
	}
	spent := func(p order.Spent) func(*scene) {
		return func(s *scene) {
			s.facts.Spent = func(origin, effect string) order.Spent {
				if origin != "chg_0" || effect != s.order.EffectDigest {
					return order.Spent{}
				}
				return p
			}
		}
	}
	for _, tc := range []struct {
		name   string
		scene  func(*testing.T) *scene // an apply when nil
		change func(*scene)
		want   []string
		stale  bool
	}{
		// Who and what it is for.
		{name: "another org", change: func(s *scene) { s.order.OrgID = "org_2" }, want: []string{"org_id", "org_id"}},
		{name: "another install", change: func(s *scene) { s.order.InstallID = "ins_2" }, want: []string{"install_id", "install_id"}},
		{name: "no install", change: func(s *scene) { s.order.InstallID, s.facts.InstallID, s.facts.Spec.InstallID = "", "", "" }, want: []string{"install_id"}},
		{name: "another runner", change: func(s *scene) { s.order.RunnerID = "rnr_2" }, want: []string{"runner_id"}},
		{name: "the machine before this one", change: func(s *scene) { s.order.MachineKeyID = "ed25519:gone" }, want: []string{"machine_key_id"}},
		{name: "no machine", change: func(s *scene) { s.order.MachineKeyID, s.facts.MachineKeyID = "", "" }, want: []string{"machine_key_id"}},
		{name: "another job", change: func(s *scene) { s.order.JobID = "job_2" }, want: []string{"job_id", "job_id"}},
		{name: "another kind", change: func(s *scene) { s.order.Kind = "helm_chart" }, want: []string{"kind"}},
		{name: "another operation", change: func(s *scene) { s.order.Operation = "plan" }, want: []string{"operation", "effect_digest", "plan_bytes_digest", "fence", "nonce"}},
		{name: "work that nobody knows", change: func(s *scene) { s.order.Operation, s.facts.Spec.Operation = "obey", "obey" }, want: []string{"operation", "effect_digest", "plan_bytes_digest", "fence", "nonce"}},
		{name: "another resource", change: func(s *scene) { s.order.ResourceID = "res_2" }, want: []string{"resource_id"}},
		{name: "another change", change: func(s *scene) { s.order.ChangeID = "chg_2" }, want: []string{"change_id"}},
		{name: "a build", change: func(s *scene) { s.order.BuildID = "bld_1" }, want: []string{"build_id"}},
		{name: "a change without origin", change: func(s *scene) { s.order.OriginID = "" }, want: []string{"origin_id"}},
		{name: "another origin than the plan's", change: func(s *scene) { s.order.OriginID = "chg_1" }, want: []string{"origin_id"}},
		{name: "a plan of before, without origin", change: func(s *scene) { s.effect.Planned.OriginID = "" }, want: []string{"origin_id"}},
		{name: "another spec", change: func(s *scene) { s.facts.SpecDigest = "sha256:evil" }, want: []string{"spec_digest"}},
		{name: "another state", scene: newCheck, change: func(s *scene) { s.facts.StateDigest = "sha256:evil" }, want: []string{"state_digest"}},
		{name: "a state next to what was pinned", change: func(s *scene) { s.order.StateDigest, s.facts.StateDigest = "sha256:s", "sha256:s" }, want: []string{"state_digest"}},
		{name: "a newer runner is wanted", change: func(s *scene) { s.order.MinRunnerVersion = "2.0.0" }, want: []string{"min_runner_version"}},

		// When, and how often.
		{name: "never issued", change: func(s *scene) { s.order.IssuedAt = time.Time{} }, want: []string{"issued_at", "expires_at"}},
		{name: "issued five minutes ahead", change: func(s *scene) { s.order.IssuedAt = now.Add(5 * time.Minute) }},
		{name: "issued further ahead", change: func(s *scene) { s.order.IssuedAt = now.Add(5*time.Minute + time.Second) }, want: []string{"issued_at"}},
		{name: "good for longer than a day", change: func(s *scene) { s.order.ExpiresAt = now.Add(24*time.Hour + time.Second) }, want: []string{"expires_at"}},
		{name: "expired", change: func(s *scene) { s.facts.Now = s.order.ExpiresAt }, want: []string{"expires_at"}, stale: true},
		{name: "expired, of no change", scene: newCheck, change: func(s *scene) { s.facts.Now = s.order.ExpiresAt }, want: []string{"expires_at"}},
		{name: "expired before the clock went back", change: func(s *scene) { s.facts.Floor = s.order.ExpiresAt }, want: []string{"expires_at"}, stale: true},
		{name: "expired, and forged", change: func(s *scene) { s.facts.Now, s.order.RunnerID = s.order.ExpiresAt, "rnr_2" }, want: []string{"runner_id", "expires_at"}},
		{name: "no starts", change: func(s *scene) { s.order.Starts = 0 }, want: []string{"starts"}},
		{name: "more starts than a mutation may have", change: func(s *scene) { s.order.Starts = 2 }, want: []string{"starts"}},
		{name: "more starts than reading may have", scene: newCheck, change: func(s *scene) { s.order.Starts = 4 }, want: []string{"starts"}},
		{name: "begun once already", change: func(s *scene) { s.facts.Attempt = 2; past(order.Past{Starts: 1, Attempt: 1})(s) }, want: []string{"starts"}, stale: true},
		{name: "a check begun three times", scene: newCheck, change: func(s *scene) { s.facts.Attempt = 4; past(order.Past{Starts: 3, Attempt: 3})(s) }, want: []string{"starts"}},
		{name: "the same attempt again", scene: newCheck, change: past(order.Past{Starts: 1, Attempt: 1}), want: []string{"attempt"}},
		{name: "an ended job", scene: newCheck, change: func(s *scene) { s.facts.Attempt = 2; past(order.Past{Starts: 1, Attempt: 1, Ended: true})(s) }, want: []string{"job_id"}},

		// What only a mutation has.
		{name: "no nonce", change: func(s *scene) { s.order.Nonce = "" }, want: []string{"nonce"}},
		{name: "replayed", change: func(s *scene) { s.facts.NonceUsed = func(n string) bool { return n == "n1" } }, want: []string{"nonce"}},
		{name: "no effect", change: func(s *scene) { s.order.EffectDigest = "" }, want: []string{"effect_digest"}},
		{name: "an effect that is there", change: spent(order.Spent{Tries: 1, Applied: true}), want: []string{"effect_digest"}},
		{name: "an effect that was tried twice", change: spent(order.Spent{Tries: 2})},
		{name: "an effect that was tried three times", change: spent(order.Spent{Tries: 3}), want: []string{"effect_digest"}},
		{name: "a check with the papers of a mutation", scene: newCheck, change: func(s *scene) {
			s.order.EffectDigest, s.order.PlanBytesDigest, s.order.Fence, s.order.Nonce = "e", "p", 1, "n"
		}, want: []string{"effect_digest", "plan_bytes_digest", "fence", "nonce"}},

		// Builds are no business of an install's runner, nor the other way round.
		{name: "a build for an install", change: func(s *scene) { s.order.Operation, s.facts.Spec.Operation = "build", "build" }, want: []string{"operation", "effect_digest", "plan_bytes_digest", "fence", "nonce"}},
		{name: "an install's work for a Build Runner", scene: newBuild, change: func(s *scene) {
			s.order.Operation, s.facts.Spec.Operation = "plan", "plan"
		}, want: []string{"operation"}},

		// The order says something else than the runner planned.
		{name: "another fence", change: func(s *scene) { s.order.Fence = 6 }, want: []string{"fence"}},
		{name: "a fence below one that was seen", change: func(s *scene) { s.effect.Fence, s.order.Fence = &three, 3 }, want: []string{"fence"}},
		{name: "no fence in the assignment", change: func(s *scene) { s.effect.Fence = nil }, want: []string{"fence"}},
		{name: "another effect", change: func(s *scene) { s.order.EffectDigest = "sha256:evil" }, want: []string{"effect_digest"}},
		{name: "another plan file", change: func(s *scene) { s.order.PlanBytesDigest = "sha256:evil" }, want: []string{"plan_bytes_digest"}},
		{name: "the artifact is damaged", change: func(s *scene) { s.effect.ArtifactProblem = "blob is missing" }, want: []string{"artifact_digest"}},
		{name: "the pinned plan was changed on disk", change: func(s *scene) { s.effect.PinnedDigest = "sha256:evil" }, want: []string{"plan_bytes_digest", "plan_bytes_digest"}},
		{name: "the pinned plan is gone", change: func(s *scene) { s.effect.PinnedDigest = "" }, want: []string{"plan_bytes_digest", "plan_bytes_digest"}},
		{name: "the job names another pinned plan", change: func(s *scene) { s.effect.Spec.Pinned = "sha256:evil" }, want: []string{"pinned"}},
		{name: "the engine was replaced", change: func(s *scene) { s.effect.Effect.EngineDigest = "sha256:evil" }, want: []string{"engine_digest"}},
		{name: "terraform was replaced", change: func(s *scene) { s.effect.Effect.Tool.Digest = "sha256:evil" }, want: []string{"tool.digest"}},
		{name: "the machine is another one", change: func(s *scene) { s.effect.Effect.Target = "machine:2" }, want: []string{"target"}},
		{name: "a deploy became a teardown", change: func(s *scene) { s.effect.Effect.ChangeKind = "teardown" }, want: []string{"change_kind"}},
		{name: "this runner never made the plan", change: func(s *scene) { s.effect.Planned = nil }, want: []string{"plan"}},
		{
			name: "the record of the plan was changed on disk",
			change: func(s *scene) {
				s.effect.Planned.Effect.PlanDigest = "hmac-sha256:evil"
				s.effect.Effect.PlanDigest = "hmac-sha256:evil"
			},
			want: []string{"effect_digest"},
		},

		// Somebody else worked on the resource: no attack.
		{name: "the state moved", change: func(s *scene) { s.effect.Effect.Serial = 8 }, want: []string{"serial"}, stale: true},
		{name: "the state was made again", change: func(s *scene) { s.effect.Effect.Lineage, s.effect.Effect.Serial = "new", 1 }, want: []string{"lineage", "serial"}, stale: true},
		{name: "the state moved and the order is forged", change: func(s *scene) { s.effect.Effect.Serial, s.order.Fence = 8, 9 }, want: []string{"fence", "serial"}},
		{
			name:   "everything at once is named at once",
			change: func(s *scene) { s.order.OrgID, s.order.Starts, s.facts.SpecDigest = "org_2", 9, "gone" },
			want:   []string{"org_id", "org_id", "spec_digest", "starts"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if tc.scene == nil {
				tc.scene = newScene
			}
			s := tc.scene(t)
			tc.change(s)
			v := s.judge(t)
			want := jobspec.OutcomeRefused
			switch {
			case tc.stale:
				want = jobspec.OutcomeStale
			case tc.want == nil:
				want = ""
			}
			if v.Outcome != want {
				t.Errorf("outcome = %q, want %q", v.Outcome, want)
			}
			if diff := cmp.Diff(tc.want, names(v.Differs)); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}

func TestJudgeRefusesSignatures(t *testing.T) {
	t.Parallel()
	stranger, strangerKey, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name  string
		scene func(*testing.T) *scene
		env   func(*testing.T, *scene) *capsule.Envelope
		want  []string
	}{
		{"a key that nobody pinned", newScene, func(t *testing.T, s *scene) *capsule.Envelope {
			return sign(t, strangerKey, capsule.KeyID(stranger), capsule.OrderType, s.order)
		}, []string{"signature"}},
		{"a stranger under the name of the pinned key", newScene, func(t *testing.T, s *scene) *capsule.Envelope {
			return sign(t, strangerKey, dispatchKey, capsule.OrderType, s.order)
		}, []string{"signature"}},
		{"a payload that was changed", newScene, func(t *testing.T, s *scene) *capsule.Envelope {
			env := sign(t, s.signer, dispatchKey, capsule.OrderType, s.order)
			s.order.Fence++
			env.Payload = sign(t, s.signer, dispatchKey, capsule.OrderType, s.order).Payload
			return env
		}, []string{"signature"}},
		{"settings instead of an order", newScene, func(t *testing.T, s *scene) *capsule.Envelope {
			return sign(t, s.signer, dispatchKey, capsule.SettingsType, s.order)
		}, []string{"signature"}},
		{"no order at all", newScene, func(*testing.T, *scene) *capsule.Envelope { return nil }, []string{"order"}},
		{"the builder's key for an install", newCheck, func(t *testing.T, s *scene) *capsule.Envelope {
			s.keys.Dispatch, s.keys.Builder = nil, s.keys.Dispatch
			return sign(t, s.signer, dispatchKey, capsule.OrderType, s.order)
		}, []string{"signature"}},
		{"the dispatch key for a build", newBuild, func(t *testing.T, s *scene) *capsule.Envelope {
			s.keys.Dispatch, s.keys.Builder = s.keys.Builder, nil
			return sign(t, s.signer, dispatchKey, capsule.OrderType, s.order)
		}, []string{"signature"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := tc.scene(t)
			env := tc.env(t, s)
			v := order.Judge(s.keys, env, s.facts)
			if v.Outcome != jobspec.OutcomeRefused {
				t.Errorf("outcome = %q, want refused", v.Outcome)
			}
			if diff := cmp.Diff(tc.want, names(v.Differs)); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
			if v.Order != (capsule.Order{}) {
				t.Errorf("an unverified order got through: %+v", v.Order)
			}
		})
	}
}

func sign(t *testing.T, key ed25519.PrivateKey, id, payloadType string, payload any) *capsule.Envelope {
	t.Helper()
	env, err := capsule.Sign(key, id, payloadType, payload)
	if err != nil {
		t.Fatal(err)
	}
	return &env
}

func TestFencesSurvive(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/fences.json"
	f, err := order.OpenFences(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, fence := range []int64{4, 9, 6} {
		if err := f.Raise("res_1", fence); err != nil {
			t.Fatal(err)
		}
	}
	again, err := order.OpenFences(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := again.Highest("res_1"); got != 9 {
		t.Errorf("highest = %d, want 9", got)
	}
	if got := again.Highest("res_2"); got != 0 {
		t.Errorf("highest of another resource = %d, want 0", got)
	}
}
