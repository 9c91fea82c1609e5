package drill

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/customerrole"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
)

// groups are all attacks with their scenes. Those that wait for the clock come first.
func groups() []group {
	return []group{
		settingsGroup(), orderGroup(), scriptGroup(), changeGroup(), consentGroup(), releaseGroup(), denyGroup(), askGroup(), roleGroup(),
		engineGroup(), sealGroup(), switchGroup(), registryGroup(), hostGroup(), chainGroup(), diskGroup(),
	}
}

// check is a script of the vendor's that the runner accepts in a scene: it appends to a
// file of its own name.
func check(name string, lines ...string) jobspec.Script {
	text := strings.Join(append([]string{"#!/bin/sh", `echo ran >> "$BERTH_INSTALL_DIR/` + name + `"`}, lines...), "\n") + "\n"
	return jobspec.Script{TimeoutSeconds: 60, Action: jobspec.Action{
		Name: name, ReadOnly: true, Steps: []jobspec.ActionStep{{Name: "one", InlineContents: text}},
	}}
}

// run is the job that runs an accepted check.
func run(s jobspec.Script) jobspec.Spec {
	action := s.Action
	action.Steps = append([]jobspec.ActionStep(nil), action.Steps...)
	return jobspec.Spec{Kind: jobspec.KindAction, Operation: jobspec.OperationRun, Action: &action, TimeoutSeconds: s.TimeoutSeconds}
}

// adHoc is the plan of a script that is part of no release.
func adHoc(name string, lines ...string) jobspec.Spec {
	s := check(name, lines...)
	action := s.Action
	action.Name, action.AdHoc, action.ReadOnly = "script/"+name, true, false
	return jobspec.Spec{
		Kind: jobspec.KindAction, Operation: jobspec.OperationPlan, ChangeID: id.New(id.Change), Action: &action,
		Resource: &jobspec.Resource{ID: id.New(id.Resource), Kind: "component", Name: "api"},
	}
}

func rolesOf(names []string) (list []customerrole.Role) {
	for _, name := range names {
		list = append(list, customerrole.Role{Written: name, Name: name, Known: true})
	}
	return list
}

func stranger() signer {
	s, _, err := newSigner("")
	if err != nil {
		panic(err) // the machine has no random numbers
	}
	return s
}

// orderGroup: jobs that look like ones, for a check that the runner accepted.
func orderGroup() group {
	good := check("checked")
	attack := func(who Adversary, name, try string, edits ...edit) Attack {
		return Attack{Name: name, Adversary: who, Try: try, World: inFile("checked"), run: func(ctx context.Context, s *scene) (finding, error) {
			return ran(s, "checked", func() (jobspec.Result, error) { return s.do(ctx, run(good), edits...) })
		}}
	}
	return group{
		name: "orders", shape: func() shape { return shape{scripts: []jobspec.Script{good}} },
		allowed: attack(Plane, "order", "a check that was accepted, as ordered"),
		attacks: []Attack{
			attack(Database, "order-missing", "a job without an order", func(d *draft) { d.unsigned = true }),
			attack(Database, "order-by-a-stranger", "an order that another key signed", func(d *draft) { d.signer = stranger() }),
			attack(Database, "order-under-a-false-name", "another key under the name of the pinned one", func(d *draft) {
				name := d.signer.id
				d.signer = stranger()
				d.signer.id = name
			}),
			attack(Database, "order-for-another-spec", "a signed order with another spec put under it", func(d *draft) { d.order.SpecDigest = capsule.DigestBytes([]byte("{}")) }),
			attack(Database, "order-written-otherwise", "the same values as were signed, in other bytes", func(d *draft) {
				text, err := json.Marshal(d.spec)
				if err == nil {
					d.order.SpecDigest = capsule.DigestBytes(text)
					d.text = []byte(strings.Replace(string(text), `"checked"`, `"\u0063hecked"`, 1))
				}
			}),
			{
				Name: "order-with-a-state", Adversary: Database, Try: "a state that was not ordered, whose values would be opened", World: inFile("checked"),
				run: func(ctx context.Context, s *scene) (finding, error) {
					state, err := s.sealed("an oracle")
					if err != nil {
						return finding{}, err
					}
					return ran(s, "checked", func() (jobspec.Result, error) {
						return s.do(ctx, run(good), func(d *draft) { d.spec.State = state })
					})
				},
			},
			attack(Database, "order-of-another-runner", "an order for another runner", func(d *draft) { d.order.RunnerID = id.New(id.Runner) }),
			attack(Database, "order-of-another-machine", "an order for the machine before", func(d *draft) { d.order.MachineKeyID = "ed25519:" + strings.Repeat("0", 32) }),
			attack(Database, "order-of-another-job", "the order of another job", func(d *draft) { d.order.JobID = id.New(id.Job) }),
			attack(Database, "order-of-another-install", "an order for another install", func(d *draft) { d.order.InstallID, d.spec.InstallID = id.New(id.Install), id.New(id.Install) }),
			attack(Database, "order-for-other-work", "the order of a plan, used to run a script", func(d *draft) { d.order.Operation = "plan" }),
			attack(Database, "order-of-yesterday", "an order that has expired", func(d *draft) {
				d.order.IssuedAt, d.order.ExpiresAt = time.Now().Add(-24*time.Hour), time.Now().Add(-time.Hour)
			}),
			attack(Plane, "order-of-tomorrow", "an order from the future", func(d *draft) {
				d.order.IssuedAt, d.order.ExpiresAt = time.Now().Add(12*time.Hour), time.Now().Add(13*time.Hour)
			}),
			attack(Plane, "order-for-ever", "an order that is good for 73 years", func(d *draft) { d.order.ExpiresAt = time.Now().AddDate(73, 0, 0) }),
			attack(Plane, "order-to-build", "a build, on the customer's machine", func(d *draft) {
				d.spec.Operation, d.order.Operation = jobspec.OperationBuild, "build"
			}),
			{
				Name: "order-again", Adversary: Database, Try: "a job that has ended, given out again", World: "a second line in the install's file \"checked\"",
				run: func(ctx context.Context, s *scene) (finding, error) {
					spec := run(good)
					spec.JobID = id.New(id.Job)
					if result, err := s.do(ctx, spec); err != nil || result.Outcome != jobspec.OutcomeSucceeded {
						return finding{}, fmt.Errorf("its first run: %s %s: %w", result.Outcome, result.Error, err)
					}
					return ran(s, "checked", func() (jobspec.Result, error) { return s.do(ctx, spec, func(d *draft) { d.attempt = 2 }) })
				},
			},
			{
				Name: "order-again-after-a-restart", Adversary: Database, Try: "the same, after the runner was restarted", World: "a second line in the install's file \"checked\"",
				run: func(ctx context.Context, s *scene) (finding, error) {
					spec := run(good)
					spec.JobID = id.New(id.Job)
					if result, err := s.do(ctx, spec); err != nil || result.Outcome != jobspec.OutcomeSucceeded {
						return finding{}, fmt.Errorf("its first run: %s %s: %w", result.Outcome, result.Error, err)
					}
					if err := s.restart(ctx); err != nil {
						return finding{}, err
					}
					return ran(s, "checked", func() (jobspec.Result, error) { return s.do(ctx, spec, func(d *draft) { d.attempt = 1000 }) })
				},
			},
		},
	}
}

// scriptGroup: with the dispatch key, scripts that nobody accepted.
func scriptGroup() group {
	good := check("accepted")
	other := func(name, try, mark string, change func(*jobspec.Spec)) Attack {
		return Attack{Name: name, Adversary: Plane, Try: try, World: inFile(mark), run: func(ctx context.Context, s *scene) (finding, error) {
			spec := run(good)
			change(&spec)
			return ran(s, mark, func() (jobspec.Result, error) { return s.do(ctx, spec) })
		}}
	}
	evil := check("evil")
	return group{
		name: "scripts", shape: func() shape { return shape{scripts: []jobspec.Script{good}} },
		allowed: other("script", "the accepted script", "accepted", func(*jobspec.Spec) {}),
		attacks: []Attack{
			other("script-never-accepted", "a signed order to run a new script", "evil", func(s *jobspec.Spec) { s.Action = run(evil).Action }),
			other("script-with-another-text", "an accepted script with a line more", "evil", func(s *jobspec.Spec) {
				s.Action.Steps[0].InlineContents += `echo ran >> "$BERTH_INSTALL_DIR/evil"` + "\n"
			}),
			other("script-with-another-step", "an accepted script with a step more", "evil", func(s *jobspec.Spec) {
				s.Action.Steps = append(s.Action.Steps, evil.Action.Steps...)
			}),
			other("script-with-another-environment", "an accepted script with a variable that loads code", "accepted", func(s *jobspec.Spec) {
				s.Action.Steps[0].EnvVars = map[string]string{"LD_PRELOAD": "/tmp/evil.so"}
			}),
			other("script-in-an-image", "an accepted script in an image of the attacker's", "accepted", func(s *jobspec.Spec) {
				s.Action.Image = "evil.example.com/image@sha256:" + strings.Repeat("0", 64)
			}),
			other("script-in-a-directory", "an accepted script in a directory of the attacker's", "accepted", func(s *jobspec.Spec) {
				s.Action.Steps[0].Artifact = &jobspec.Artifact{Repository: "org/evil", Digest: "sha256:" + strings.Repeat("0", 64)}
			}),
			other("script-as-a-change", "an accepted check, run as if it might change things", "accepted", func(s *jobspec.Spec) { s.Action.ReadOnly = false }),
			{
				Name: "script-by-another-release", Adversary: Plane, Try: "the acceptance of one release, with another one put in its place", World: inFile("evil"),
				run: func(ctx context.Context, s *scene) (finding, error) {
					harmless := append(slices.Clone(s.accepted), check("harmless"))
					return s.brings(ctx, harmless, evil, func(release *jobspec.Release) { release.Scripts = append(slices.Clone(s.accepted), evil) })
				},
			},
		},
	}
}

// brings has a release with these scripts planned, and accepted after the attacker's swap,
// without anybody's consent; then it runs the evil one.
func (s *scene) brings(ctx context.Context, scripts []jobspec.Script, evil jobspec.Script, swap func(*jobspec.Release)) (finding, error) {
	release := jobspec.Release{ID: id.New(id.Release), Number: 2, Scripts: scripts}
	spec := jobspec.Spec{Kind: jobspec.KindRelease, Operation: jobspec.OperationPlan, ChangeID: id.New(id.Change), Release: &release}
	plan, err := s.plan(ctx, spec)
	if err != nil {
		return finding{}, err
	}
	swapped := release
	swap(&swapped)
	spec.Release = &swapped
	apply, granted := applyOf(spec, plan)
	accepted, err := s.do(ctx, apply, granted)
	if err != nil {
		return finding{}, err
	}
	return ran(s, evil.Action.Name, func() (jobspec.Result, error) {
		result, err := s.do(ctx, run(evil))
		if accepted.Outcome != jobspec.OutcomeSucceeded {
			result = accepted
		}
		return result, err
	})
}

// roleGroup: an action that needs a role which the customer has off.
func roleGroup() group {
	repair := check("repaired")
	repair.Action.ReadOnly, repair.Action.BreakGlassRole = false, "repair"
	plain := check("plain")
	plain.Action.ReadOnly = false
	attack := func(name, try, mark string, script jobspec.Script, change func(*jobspec.Spec)) Attack {
		return Attack{Name: name, Adversary: Employee, Try: try, World: inFile(mark), run: func(ctx context.Context, s *scene) (finding, error) {
			spec := run(script)
			spec.Operation, spec.ChangeID = jobspec.OperationPlan, id.New(id.Change)
			plan, err := s.plan(ctx, spec)
			if err != nil {
				return finding{}, err
			}
			change(&spec)
			apply, granted := applyOf(spec, plan)
			return ran(s, mark, func() (jobspec.Result, error) { return s.do(ctx, apply, granted) })
		}}
	}
	return group{
		name: "roles", shape: func() shape {
			return shape{scripts: []jobspec.Script{repair, plain}, roles: []string{"repair", "other"}}
		},
		allowed: attack("role", "an accepted action that needs no role", "plain", plain, func(*jobspec.Spec) {}),
		attacks: []Attack{
			attack("role-off", "an action whose role the customer has off", "repaired", repair, func(*jobspec.Spec) {}),
			attack("role-left-out", "the same, with the role left out", "repaired", repair, func(s *jobspec.Spec) { s.Action.BreakGlassRole = "" }),
			attack("role-swapped", "the same, with the name of another role", "repaired", repair, func(s *jobspec.Spec) { s.Action.BreakGlassRole = "other" }),
			attack("role-as-if-switched", "the same, as if a switch of the customer's had started it", "repaired", repair, func(s *jobspec.Spec) {
				s.Action.SwitchedOff = id.New(id.RoleSwitch)
			}),
		},
	}
}
