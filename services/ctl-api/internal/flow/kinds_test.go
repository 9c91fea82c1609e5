package flow_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/internal/fault"
)

// shop is web, which needs api, which needs db, and assets; all are there.
func shop(kind flow.Kind) flow.PlanInput {
	return flow.PlanInput{
		Kind: kind, Install: "acme", HasSandbox: true,
		Components: []flow.PlanComponent{{Name: "web", Needs: []string{"api"}}, {Name: "api", Needs: []string{"db"}}, {Name: "db", MaxRetries: 2}, {Name: "assets"}},
		Made: []flow.PlanMade{
			{Name: "sandbox", Sandbox: true}, {Name: "web", Needs: []string{"api"}}, {Name: "api", Needs: []string{"db"}}, {Name: "db", MaxRetries: 2}, {Name: "assets"},
		},
	}
}

// reasons are the steps about resources, with why each is in.
func reasons(steps []flow.PlannedStep) []string {
	var out []string
	for _, s := range steps {
		if s.Resource != "" {
			out = append(out, string(s.Kind)+" "+s.Resource+": "+s.Reason)
		}
	}
	return out
}

func TestPlanOfEachKind(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		kind   flow.Kind
		change func(*flow.PlanInput)
		want   []string
	}{
		{
			name: "reprovision is a provision with its own points", kind: flow.KindReprovision,
			change: func(in *flow.PlanInput) {
				in.Components = in.Components[2:]
				in.Checks = []string{"up"}
				in.Hooks = []flow.PlanHook{{Action: "a", Trigger: "pre-reprovision"}, {Action: "z", Trigger: "post-reprovision"}, {Action: "no", Trigger: "post-provision"}}
			},
			want: []string{
				"stack", "runner <- stack", "release <- runner", "pre-reprovision/a <- runner", "sandbox <- pre-reprovision/a",
				"component/assets <- sandbox", "component/db <- sandbox", "post-reprovision/z <- component/assets component/db", "check/up <- post-reprovision/z release",
			},
		},
		{
			name: "secrets are copied after the sandbox and before components, between their points", kind: flow.KindReprovision,
			change: func(in *flow.PlanInput) {
				in.Components, in.Secrets, in.Copies = in.Components[3:], true, true
				in.Hooks = []flow.PlanHook{{Action: "a", Trigger: "pre-secrets-sync"}, {Action: "z", Trigger: "post-secrets-sync"}}
			},
			want: []string{
				"stack", "runner <- stack", "release <- runner", "secrets <- runner", "sandbox <- secrets", "pre-secrets-sync/a <- sandbox",
				"secrets-sync <- pre-secrets-sync/a", "post-secrets-sync/z <- secrets-sync", "component/assets <- post-secrets-sync/z",
			},
		},
		{
			name: "a reprovision has these points without copies too", kind: flow.KindReprovision,
			change: func(in *flow.PlanInput) {
				in.Components, in.Hooks = nil, []flow.PlanHook{{Action: "a", Trigger: "pre-secrets-sync"}}
			},
			want: []string{"stack", "runner <- stack", "release <- runner", "sandbox <- runner", "pre-secrets-sync/a <- sandbox"},
		},
		{
			name: "a deploy copies them before the components that it names", kind: flow.KindDeploy,
			change: func(in *flow.PlanInput) { in.Selected, in.Copies = []string{"sandbox", "assets"}, true },
			want:   []string{"runner", "release <- runner", "sandbox <- runner", "secrets-sync <- sandbox", "component/assets <- secrets-sync"},
		},
		{
			name: "a deploy without copies has no such points", kind: flow.KindDeploy,
			change: func(in *flow.PlanInput) {
				in.Selected, in.Hooks = []string{"assets"}, []flow.PlanHook{{Action: "a", Trigger: "pre-secrets-sync"}}
			},
			want: []string{"runner", "release <- runner", "component/assets <- runner"},
		},
		{
			name: "a release that has no copies any more takes away what is there", kind: flow.KindDeploy,
			change: func(in *flow.PlanInput) { in.Selected, in.CopiesMade = []string{"assets"}, true },
			want:   []string{"runner", "release <- runner", "secrets-sync <- runner", "component/assets <- secrets-sync"},
		},
		{
			name: "an input update copies them too: their names may refer to inputs", kind: flow.KindInputUpdate,
			change: func(in *flow.PlanInput) { in.Copies, in.Components[3].Refers = true, []string{"colour"} },
			want:   []string{"runner", "release <- runner", "secrets-sync <- runner", "component/assets <- secrets-sync"},
		},
		{
			name: "an update of the runner is about nothing else", kind: flow.KindRunnerUpdate,
			change: func(in *flow.PlanInput) { in.Secrets, in.Copies, in.Checks = true, true, []string{"up"} },
			want:   []string{"runner", "runner_update <- runner"},
		},
		{
			name: "a sync of secrets does nothing else", kind: flow.KindSyncSecrets,
			change: func(in *flow.PlanInput) {
				in.Secrets, in.Copies, in.Checks = true, true, []string{"up"}
				in.Hooks = []flow.PlanHook{{Action: "z", Trigger: "post-secrets-sync"}, {Action: "no", Trigger: "pre-deploy-all-components"}}
			},
			want: []string{"runner", "release <- runner", "secrets <- runner", "secrets-sync <- secrets", "post-secrets-sync/z <- secrets-sync"},
		},
		{
			name: "the sandbox is removed after the copies in its cluster", kind: flow.KindDeprovisionSandbox,
			change: func(in *flow.PlanInput) { in.Made, in.CopiesMade = in.Made[:1], true },
			want:   []string{"runner", "secrets-sync <- runner", "sandbox <- secrets-sync", "scripts <- sandbox"},
		},
		{
			name: "a deprovision removes copies even when nothing else is there", kind: flow.KindDeprovision,
			change: func(in *flow.PlanInput) { in.Made, in.CopiesMade = nil, true },
			want:   []string{"runner", "secrets-sync <- runner", "scripts <- secrets-sync"},
		},
		{
			name: "a sandbox reprovisioned takes the components along", kind: flow.KindReprovisionSandbox,
			change: func(in *flow.PlanInput) {
				in.Components = in.Components[3:]
				in.Hooks = []flow.PlanHook{
					{Action: "late", Trigger: "pre-reprovision-sandbox", Index: 2}, {Action: "soon", Trigger: "pre-reprovision-sandbox", Index: 1},
					{Action: "all", Trigger: "pre-deploy-all-components"}, {Action: "end", Trigger: "post-reprovision-sandbox"},
				}
			},
			want: []string{
				"runner", "release <- runner", "pre-reprovision-sandbox/soon <- runner", "pre-reprovision-sandbox/late <- pre-reprovision-sandbox/soon",
				"sandbox <- pre-reprovision-sandbox/late", "pre-deploy-all-components/all <- sandbox", "component/assets <- pre-deploy-all-components/all",
				"post-reprovision-sandbox/end <- component/assets",
			},
		},
		{
			name: "or leaves them alone", kind: flow.KindReprovisionSandbox,
			change: func(in *flow.PlanInput) {
				in.WithoutComponents = true
				in.Hooks = []flow.PlanHook{{Action: "end", Trigger: "post-reprovision-sandbox"}}
			},
			want: []string{"runner", "release <- runner", "sandbox <- runner", "post-reprovision-sandbox/end <- sandbox"},
		},
		{
			name: "teardown of what nothing needs", kind: flow.KindTeardown,
			change: func(in *flow.PlanInput) {
				in.Selected = []string{"web"}
				in.Hooks = []flow.PlanHook{{Action: "drain", Trigger: "pre-teardown-component", Component: "web"}, {Action: "all", Trigger: "pre-teardown-all-components"}}
			},
			want: []string{"runner", "pre-teardown-component/web/drain <- runner", "component/web <- pre-teardown-component/web/drain"},
		},
		{
			name: "teardown with dependents goes in reverse", kind: flow.KindTeardown,
			change: func(in *flow.PlanInput) { in.Selected, in.WithDependents = []string{"db"}, true },
			want:   []string{"runner", "component/web <- runner", "component/api <- runner component/web", "component/db <- runner component/api"},
		},
		{
			name: "teardown of several that need each other asks for no more", kind: flow.KindTeardown,
			change: func(in *flow.PlanInput) { in.Selected = []string{"api", "web"} },
			want:   []string{"runner", "component/web <- runner", "component/api <- runner component/web"},
		},
		{
			name: "teardown of all leaves the sandbox", kind: flow.KindTeardownAll,
			change: func(in *flow.PlanInput) {
				in.Made = in.Made[:3]
				in.Hooks = []flow.PlanHook{{Action: "a", Trigger: "pre-teardown-all-components"}, {Action: "z", Trigger: "post-teardown-all-components"}, {Action: "no", Trigger: "pre-deprovision"}}
			},
			want: []string{
				"runner", "pre-teardown-all-components/a <- runner", "component/web <- pre-teardown-all-components/a",
				"component/api <- pre-teardown-all-components/a component/web", "post-teardown-all-components/z <- component/web component/api",
			},
		},
		{
			name: "orphans go, dependents first, and nothing else", kind: flow.KindRemoveOrphans,
			change: func(in *flow.PlanInput) {
				in.Made = append(in.Made, flow.PlanMade{Name: "old", Orphan: true}, flow.PlanMade{Name: "older", Orphan: true, Needs: []string{"old"}})
			},
			want: []string{"runner", "component/older <- runner", "component/old <- runner component/older"},
		},
		{
			name: "no orphan, nothing to do", kind: flow.KindRemoveOrphans,
			want: []string{"runner"},
		},
		{
			name: "a deploy never removes an orphan", kind: flow.KindDeploy,
			change: func(in *flow.PlanInput) {
				in.Components = in.Components[3:]
				in.Made = []flow.PlanMade{{Name: "old", Orphan: true}}
			},
			want: []string{"runner", "release <- runner", "component/assets <- runner"},
		},
		{
			name: "a sandbox on which nothing stands", kind: flow.KindDeprovisionSandbox,
			change: func(in *flow.PlanInput) {
				in.Made = in.Made[:1]
				in.Hooks = []flow.PlanHook{{Action: "a", Trigger: "pre-deprovision-sandbox"}, {Action: "z", Trigger: "post-deprovision-sandbox"}}
			},
			want: []string{
				"runner", "pre-deprovision-sandbox/a <- runner", "sandbox <- pre-deprovision-sandbox/a", "post-deprovision-sandbox/z <- sandbox",
				"scripts <- post-deprovision-sandbox/z",
			},
		},
		{
			name: "a sandbox with what stands on it", kind: flow.KindDeprovisionSandbox,
			change: func(in *flow.PlanInput) { in.Made, in.WithDependents = in.Made[:2], true },
			want:   []string{"runner", "component/web <- runner", "sandbox <- component/web", "scripts <- sandbox"},
		},
		{
			name: "deploy with dependents", kind: flow.KindDeploy,
			change: func(in *flow.PlanInput) { in.Selected, in.WithDependents = []string{"api"}, true },
			want:   []string{"runner", "release <- runner", "component/api <- runner", "component/web <- runner component/api"},
		},
		{
			name: "inputs that nothing refers to only run the actions", kind: flow.KindInputUpdate,
			change: func(in *flow.PlanInput) {
				in.Hooks = []flow.PlanHook{{Action: "a", Trigger: "pre-update-inputs"}, {Action: "z", Trigger: "post-update-inputs"}}
			},
			want: []string{"runner", "release <- runner", "pre-update-inputs/a <- runner", "post-update-inputs/z <- pre-update-inputs/a"},
		},
		{
			name: "an input that the sandbox refers to takes everything", kind: flow.KindInputUpdate,
			change: func(in *flow.PlanInput) { in.SandboxRefers, in.Components = []string{"region"}, in.Components[2:] },
			want:   []string{"runner", "release <- runner", "sandbox <- runner", "component/assets <- sandbox", "component/db <- sandbox"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in := shop(tt.kind)
			if tt.change != nil {
				tt.change(&in)
			}
			steps, err := flow.Plan(in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, edges(tt.kind, steps)); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}

// Each step says why it is in.
func TestReasonsOfSteps(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		in   func() flow.PlanInput
		want []string
	}{
		{
			name: "inputs", in: func() flow.PlanInput {
				in := shop(flow.KindInputUpdate)
				in.Components[1].Refers = []string{"replicas", "size"}
				in.Components[3].Overridden = true
				return in
			},
			want: []string{"deploy assets: what the install overrides of it changed", "deploy api: refers to inputs replicas, size", "deploy web: needs api"},
		},
		{
			name: "an input of what is off", in: func() flow.PlanInput {
				in := shop(flow.KindInputUpdate)
				in.Components[0].Refers, in.Components[0].Off = []string{"replicas"}, true
				return in
			},
		},
		{
			name: "an input of the sandbox", in: func() flow.PlanInput {
				in := shop(flow.KindInputUpdate)
				in.SandboxRefers, in.Components = []string{"region"}, in.Components[3:]
				return in
			},
			want: []string{"deploy sandbox: refers to input region", "deploy assets: every component of the release is deployed"},
		},
		{
			name: "a teardown", in: func() flow.PlanInput {
				in := shop(flow.KindTeardown)
				in.Selected, in.WithDependents = []string{"api"}, true
				return in
			},
			want: []string{"teardown web: needs api", "teardown api: asked for"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			steps, err := flow.Plan(tt.in())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, reasons(steps)); diff != "" {
				t.Errorf("reasons (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRemovalsThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		kind       flow.Kind
		change     func(*flow.PlanInput)
		kindOf     error
		code, want string
	}{
		{"of what is needed, over others too", flow.KindTeardown, func(in *flow.PlanInput) { in.Selected = []string{"db"} }, fault.ErrConflict, "has_dependents", `component "api" needs "db", component "web" needs "api"`},
		{"of a typo", flow.KindTeardown, func(in *flow.PlanInput) { in.Selected = []string{"wbe"} }, fault.ErrInvalid, "nothing_there", "did you mean web?"},
		{"of nothing", flow.KindTeardown, nil, fault.ErrInvalid, "", "names its components"},
		{"of what is not there", flow.KindTeardown, func(in *flow.PlanInput) { in.Made, in.Selected = nil, []string{"db"} }, fault.ErrInvalid, "nothing_there", `nothing of component "db" is there`},
		{"of an orphan that is needed", flow.KindRemoveOrphans, func(in *flow.PlanInput) { in.Made[2].Orphan = true }, fault.ErrConflict, "has_dependents", `component "web" needs "api"`},
		{"of no orphan", flow.KindRemoveOrphans, func(in *flow.PlanInput) { in.Selected = []string{"web"} }, fault.ErrInvalid, "not_orphaned", `"web" of install acme is not orphaned`},
		{"of a sandbox with components", flow.KindDeprovisionSandbox, nil, fault.ErrConflict, "has_dependents", "api, assets, db, web"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in := shop(tt.kind)
			if tt.change != nil {
				tt.change(&in)
			}
			_, err := flow.Plan(in)
			if !errors.Is(err, tt.kindOf) || !strings.Contains(err.Error(), tt.want) || tt.code != "" && fault.From(err).Code != tt.code {
				t.Errorf("Plan: %v (%s), want %q (%s)", err, fault.From(err).Code, tt.want, tt.code)
			}
		})
	}
}

// A removal is tried as often as a deploy of the component.
func TestRetriesOfARemoval(t *testing.T) {
	t.Parallel()
	steps, err := flow.Plan(shop(flow.KindTeardownAll))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range steps {
		if s.Resource == "db" && s.MaxRetries != 2 {
			t.Errorf("the removal of db is tried again %d times, want 2", s.MaxRetries)
		}
	}
}

// What decides on a step when it starts is the toggle of its component.
func TestTogglesOfSteps(t *testing.T) {
	t.Parallel()
	in := shop(flow.KindDeploy)
	in.Components, in.Made = []flow.PlanComponent{{Name: "api"}, {Name: "db", Off: true}}, []flow.PlanMade{{Name: "db"}}
	in.Hooks = []flow.PlanHook{
		{Action: "seed", Trigger: "post-deploy-component", Component: "api"}, {Action: "drain", Trigger: "pre-teardown-component", Component: "db"},
		{Action: "all", Trigger: "post-deploy-all-components"},
	}
	steps, err := flow.Plan(in)
	if err != nil {
		t.Fatal(err)
	}
	type toggle struct {
		Component string
		Off       bool
	}
	got := map[string]toggle{}
	for _, s := range steps {
		got[s.Name] = toggle{s.Toggle, s.SwitchedOff}
	}
	want := map[string]toggle{
		"runner": {}, "release": {}, "pre-teardown-component/db/drain": {"db", true}, "component/db": {"db", true}, "component/api": {"api", false},
		"post-deploy-component/api/seed": {"api", false}, "post-deploy-all-components/all": {},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("toggles (-want +got):\n%s", diff)
	}
	in = shop(flow.KindTeardown) // somebody asked for it, whatever the toggles say
	in.Selected = []string{"web"}
	if steps, err = flow.Plan(in); err != nil || steps[1].Toggle != "" {
		t.Errorf("a teardown that was asked for has the toggle %q, %v", steps[1].Toggle, err)
	}
}
