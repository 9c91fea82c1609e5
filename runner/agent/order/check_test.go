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

// scene is an order that is to be obeyed, with the facts that agree with it.
// Tests change one thing each.
type scene struct {
	capsule capsule.Capsule
	facts   order.Facts
	signer  ed25519.PrivateKey
	trusted map[string]ed25519.PublicKey
}

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
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	return &scene{
		capsule: capsule.Capsule{
			EffectDigest: effect.Digest(), PlanBytesDigest: "sha256:pinned", JobID: "job_1", ResourceID: "res_1", Fence: 5,
			RunnerID: "rnr_1", MinRunnerVersion: "1.2.0", ExpiresAt: now.Add(time.Hour), Nonce: "n1",
			OrgID: "org_1", InstallID: "ins_1", Operation: "apply",
		},
		facts: order.Facts{
			RunnerID: "rnr_1", RunnerVersion: "1.2.0", Spec: spec, Fence: &fence, HighestFence: 5,
			Planned:      &order.Record{ChangeID: "chg_1", Effect: effect, EffectDigest: effect.Digest(), Pinned: "sha256:pinned", Blob: "sha256:blob"},
			Effect:       order.Again(effect, order.Base(spec, place, tool)),
			PinnedDigest: "sha256:pinned",
			NonceUsed:    func(string) bool { return false },
			Now:          now,
		},
		signer:  private,
		trusted: map[string]ed25519.PublicKey{dispatchKey: public},
	}
}

func (s *scene) judge(t *testing.T) order.Verdict {
	t.Helper()
	env, err := capsule.Sign(s.signer, dispatchKey, capsule.PayloadType, s.capsule)
	if err != nil {
		t.Fatal(err)
	}
	return order.Judge(s.trusted, &env, s.facts)
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
	if v := newScene(t).judge(t); v.Outcome != "" || len(v.Differs) > 0 {
		t.Errorf("Judge = %+v, want it obeyed", v)
	}
}

// Each field of the order, and each fact that it rests on, is changed alone.
func TestJudgeNamesWhatDiffers(t *testing.T) {
	t.Parallel()
	three := int64(3)
	for _, tc := range []struct {
		name   string
		change func(*scene)
		want   []string
		stale  bool
	}{
		// The capsule says something else than the runner knows.
		{name: "another org", change: func(s *scene) { s.capsule.OrgID = "org_2" }, want: []string{"org_id"}},
		{name: "another install", change: func(s *scene) { s.capsule.InstallID = "ins_2" }, want: []string{"install_id"}},
		{name: "another runner", change: func(s *scene) { s.capsule.RunnerID = "rnr_2" }, want: []string{"runner_id"}},
		{name: "another job", change: func(s *scene) { s.capsule.JobID = "job_2" }, want: []string{"job_id"}},
		{name: "another resource", change: func(s *scene) { s.capsule.ResourceID = "res_2" }, want: []string{"resource_id"}},
		{name: "another fence", change: func(s *scene) { s.capsule.Fence = 6 }, want: []string{"fence"}},
		{name: "another operation", change: func(s *scene) { s.capsule.Operation = "plan" }, want: []string{"operation"}},
		{name: "another effect", change: func(s *scene) { s.capsule.EffectDigest = "sha256:evil" }, want: []string{"effect_digest"}},
		{name: "another plan file", change: func(s *scene) { s.capsule.PlanBytesDigest = "sha256:evil" }, want: []string{"plan_bytes_digest"}},
		{name: "no nonce", change: func(s *scene) { s.capsule.Nonce = "" }, want: []string{"nonce"}},
		{name: "a newer runner is wanted", change: func(s *scene) { s.capsule.MinRunnerVersion = "2.0.0" }, want: []string{"min_runner_version"}},
		{name: "expired", change: func(s *scene) { s.facts.Now = s.capsule.ExpiresAt }, want: []string{"expires_at"}},
		{name: "replayed", change: func(s *scene) { s.facts.NonceUsed = func(n string) bool { return n == "n1" } }, want: []string{"nonce"}},

		// What the runner has or finds is not what was approved.
		{name: "a fence below one that was seen", change: func(s *scene) { s.facts.Fence, s.capsule.Fence = &three, 3 }, want: []string{"fence"}},
		{name: "no fence in the assignment", change: func(s *scene) { s.facts.Fence = nil }, want: []string{"fence", "fence"}},
		{name: "the artifact is damaged", change: func(s *scene) { s.facts.ArtifactProblem = "blob is missing" }, want: []string{"artifact_digest"}},
		{name: "the pinned plan was changed on disk", change: func(s *scene) { s.facts.PinnedDigest = "sha256:evil" }, want: []string{"plan_bytes_digest", "plan_bytes_digest"}},
		{name: "the pinned plan is gone", change: func(s *scene) { s.facts.PinnedDigest = "" }, want: []string{"plan_bytes_digest", "plan_bytes_digest"}},
		{name: "the job names another pinned plan", change: func(s *scene) { s.facts.Spec.Pinned = "sha256:evil" }, want: []string{"pinned"}},
		{name: "the engine was replaced", change: func(s *scene) { s.facts.Effect.EngineDigest = "sha256:evil" }, want: []string{"engine_digest"}},
		{name: "terraform was replaced", change: func(s *scene) { s.facts.Effect.Tool.Digest = "sha256:evil" }, want: []string{"tool.digest"}},
		{name: "the machine is another one", change: func(s *scene) { s.facts.Effect.Target = "machine:2" }, want: []string{"target"}},
		{name: "a deploy became a teardown", change: func(s *scene) { s.facts.Effect.ChangeKind = "teardown" }, want: []string{"change_kind"}},
		{name: "this runner never made the plan", change: func(s *scene) { s.facts.Planned = nil }, want: []string{"effect_digest", "plan"}},
		{
			name: "the record of the plan was changed on disk",
			change: func(s *scene) {
				s.facts.Planned.Effect.PlanDigest = "hmac-sha256:evil"
				s.facts.Effect.PlanDigest = "hmac-sha256:evil"
			},
			want: []string{"effect_digest"},
		},

		// Somebody else worked on the resource: no attack.
		{name: "the state moved", change: func(s *scene) { s.facts.Effect.Serial = 8 }, want: []string{"serial"}, stale: true},
		{name: "the state was made anew", change: func(s *scene) { s.facts.Effect.Lineage, s.facts.Effect.Serial = "new", 1 }, want: []string{"lineage", "serial"}, stale: true},
		{name: "the state moved and the order is forged", change: func(s *scene) { s.facts.Effect.Serial, s.capsule.JobID = 8, "job_2" }, want: []string{"job_id", "serial"}},
		{
			name:   "everything at once is named at once",
			change: func(s *scene) { s.capsule.OrgID, s.capsule.Fence, s.facts.ArtifactProblem = "org_2", 9, "gone" },
			want:   []string{"org_id", "fence", "artifact_digest"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			tc.change(s)
			v := s.judge(t)
			want := jobspec.OutcomeRefused
			if tc.stale {
				want = jobspec.OutcomeStale
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
		name string
		env  func(*testing.T, *scene) *capsule.Envelope
		want []string
	}{
		{"a key that nobody pinned", func(t *testing.T, s *scene) *capsule.Envelope {
			return sign(t, strangerKey, capsule.KeyID(stranger), capsule.PayloadType, s.capsule)
		}, []string{"signature"}},
		{"a stranger under the name of the pinned key", func(t *testing.T, s *scene) *capsule.Envelope {
			return sign(t, strangerKey, dispatchKey, capsule.PayloadType, s.capsule)
		}, []string{"signature"}},
		{"a payload that was changed", func(t *testing.T, s *scene) *capsule.Envelope {
			env := sign(t, s.signer, dispatchKey, capsule.PayloadType, s.capsule)
			s.capsule.Fence++
			env.Payload = sign(t, s.signer, dispatchKey, capsule.PayloadType, s.capsule).Payload
			return env
		}, []string{"signature"}},
		{"settings instead of an order", func(t *testing.T, s *scene) *capsule.Envelope {
			return sign(t, s.signer, dispatchKey, capsule.SettingsType, s.capsule)
		}, []string{"signature"}},
		{"no order at all", func(*testing.T, *scene) *capsule.Envelope { return nil }, []string{"capsule"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			v := order.Judge(s.trusted, tc.env(t, s), s.facts)
			if v.Outcome != jobspec.OutcomeRefused {
				t.Errorf("outcome = %q, want refused", v.Outcome)
			}
			if diff := cmp.Diff(tc.want, names(v.Differs)); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
			if v.Capsule != (capsule.Capsule{}) {
				t.Errorf("an unverified capsule got through: %+v", v.Capsule)
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
