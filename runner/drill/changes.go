package drill

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/runner/agent/guardrail"
)

// change is a planned script, which an attack grants with its own edits.
func change(who Adversary, name, try string, edits ...edit) Attack {
	mark := "change-" + name
	return Attack{Name: name, Adversary: who, Try: try, World: inFile(mark), run: func(ctx context.Context, s *scene) (finding, error) {
		spec := adHoc(mark)
		plan, err := s.plan(ctx, spec)
		if err != nil {
			return finding{}, err
		}
		apply, granted := applyOf(spec, plan)
		return ran(s, mark, func() (jobspec.Result, error) { return s.do(ctx, apply, append([]edit{granted}, edits...)...) })
	}}
}

// swapped is the grant of a plan with another script in the job's spec.
func swapped() Attack {
	a := change(Plane, "change-with-another-text", "the approved change with another script in its spec")
	a.World = inFile("swapped")
	a.run = func(ctx context.Context, s *scene) (finding, error) {
		spec := adHoc("approved")
		plan, err := s.plan(ctx, spec)
		if err != nil {
			return finding{}, err
		}
		apply, granted := applyOf(spec, plan)
		apply.Action = adHoc("swapped").Action
		apply.Action.Name = spec.Action.Name
		f, err := ran(s, "swapped", func() (jobspec.Result, error) { return s.do(ctx, apply, granted) })
		if f.rule == "" {
			f.rule = "the text of the plan is what runs"
		}
		return f, err
	}
	return a
}

// twice grants a plan as it is, and then once more with edits.
func twice(who Adversary, name, try string, edits ...edit) Attack {
	mark := "change-" + name
	return Attack{Name: name, Adversary: who, Try: try, World: fmt.Sprintf("a second line in the install's file %q", mark), run: func(ctx context.Context, s *scene) (finding, error) {
		spec := adHoc(mark)
		plan, err := s.plan(ctx, spec)
		if err != nil {
			return finding{}, err
		}
		apply, granted := applyOf(spec, plan)
		if result, err := s.do(ctx, apply, granted); err != nil || result.Outcome != jobspec.OutcomeSucceeded {
			return finding{}, fmt.Errorf("the first apply: %s %s: %w", result.Outcome, result.Error, err)
		}
		apply, granted = applyOf(spec, plan)
		return ran(s, mark, func() (jobspec.Result, error) { return s.do(ctx, apply, append([]edit{granted}, edits...)...) })
	}}
}

// changeGroup: with the dispatch key, changes that are not the ones that were planned.
func changeGroup() group {
	none := capsule.DigestBytes(nil)
	return group{
		name: "changes", shape: func() shape { return shape{} },
		allowed: change(Plane, "change", "a change as it was planned"),
		attacks: []Attack{
			change(Plane, "change-with-another-effect", "an order for another effect than the planned one", func(d *draft) { d.order.EffectDigest = none }),
			change(Plane, "change-with-other-bytes", "an order for other bytes than the plan kept", func(d *draft) { d.order.PlanBytesDigest = none }),
			change(Plane, "change-never-planned", "an order for a change that the runner never planned", func(d *draft) {
				d.spec.ChangeID = id.New(id.Change)
				d.order.ChangeID, d.order.OriginID = d.spec.ChangeID, d.spec.ChangeID
			}),
			change(Plane, "change-of-another-origin", "the plan under another origin, so that it counts again", func(d *draft) { d.order.OriginID = id.New(id.Change) }),
			swapped(),
			change(Database, "change-without-a-fence", "a change that holds no lock", func(d *draft) { d.fence = nil }),
			change(Database, "change-with-another-fence", "a change with a fence that was not signed", func(d *draft) { *d.fence++ }),
			twice(Plane, "change-twice", "one plan, a second time, with a fresh order"),
			twice(Plane, "change-twice-higher", "the same with a higher fence", func(d *draft) { *d.fence++; d.order.Fence++ }),
			twice(Plane, "change-behind-the-fence", "the same with a lower fence", func(d *draft) { *d.fence--; d.order.Fence-- }),
		},
	}
}

// consentGroup: the customer signs each change, and the control plane does without.
func consentGroup() group {
	const mode = consent.ModeEach
	// signed is a change with answers that the attacker or the customer left.
	signed := func(name, try string, answer func(context.Context, *scene, jobspec.Spec) error, edits ...edit) Attack {
		mark := "consent-" + name
		return Attack{Name: name, Adversary: Plane, Try: try, World: inFile(mark), run: func(ctx context.Context, s *scene) (finding, error) {
			spec := adHoc(mark)
			plan, err := s.plan(ctx, spec)
			if err != nil {
				return finding{}, err
			}
			if err := answer(ctx, s, spec); err != nil {
				return finding{}, err
			}
			apply, granted := applyOf(spec, plan)
			return ran(s, mark, func() (jobspec.Result, error) { return s.do(ctx, apply, append([]edit{granted}, edits...)...) })
		}}
	}
	agreed := func(_ context.Context, s *scene, spec jobspec.Spec) error { return s.agree(spec.ChangeID, mode) }
	return group{
		name: "consent", shape: func() shape { return shape{consent: mode} },
		allowed: signed("consent", "a change that the customer signed", agreed),
		attacks: []Attack{
			signed("consent-missing", "a change that the vendor approved and nobody else", func(context.Context, *scene, jobspec.Spec) error { return nil }),
			signed("consent-by-a-stranger", "an answer that no holder signed", func(_ context.Context, s *scene, spec jobspec.Spec) error {
				c, err := s.consents().Find(spec.ChangeID)
				if err != nil {
					return err
				}
				_ = s.say(c, consent.Approve, stranger()) // it may not be taken at all
				return nil
			}),
			signed("consent-to-another-effect", "a consent to another effect", func(_ context.Context, s *scene, spec jobspec.Spec) error {
				c, err := s.consents().Find(spec.ChangeID)
				if err != nil {
					return err
				}
				c.Effect = capsule.DigestBytes(nil)
				return s.say(c, consent.Approve, s.holder)
			}),
			signed("consent-of-another-origin", "a consent to the same effect in another line of changes", func(_ context.Context, s *scene, spec jobspec.Spec) error {
				c, err := s.consents().Find(spec.ChangeID)
				if err != nil {
					return err
				}
				c.OriginID = id.New(id.Change)
				return s.say(c, consent.Approve, s.holder)
			}),
			signed("consent-denied", "a change that the customer denied after agreeing", func(_ context.Context, s *scene, spec jobspec.Spec) error {
				c, err := s.consents().Find(spec.ChangeID)
				if err != nil {
					return err
				}
				if err := s.say(c, consent.Approve, s.holder); err != nil {
					return err
				}
				return s.say(c, consent.Deny, s.holder)
			}),
			signed("consent-with-another-effect", "a signed change, ordered with another effect", agreed, func(d *draft) { d.order.EffectDigest = capsule.DigestBytes(nil) }),
			{
				Name: "consent-twice", Adversary: Plane, Try: "one consent, used for a second effect", World: "a second line in the install's file \"consent-twice\"",
				run: func(ctx context.Context, s *scene) (finding, error) {
					spec := adHoc("consent-twice")
					plan, err := s.plan(ctx, spec)
					if err == nil {
						err = s.agree(spec.ChangeID, mode)
					}
					if err != nil {
						return finding{}, err
					}
					apply, granted := applyOf(spec, plan)
					if result, err := s.do(ctx, apply, granted); err != nil || result.Outcome != jobspec.OutcomeSucceeded {
						return finding{}, fmt.Errorf("the first apply: %s %s: %w", result.Outcome, result.Error, err)
					}
					// A plan made again in the same line has the same effect, and counts as consumed.
					again := spec
					again.JobID, again.ChangeID = "", id.New(id.Change)
					job, err := s.give(again, func(d *draft) { d.order.OriginID = spec.ChangeID })
					if err != nil {
						return finding{}, err
					}
					if result, err := s.result(ctx, job); err != nil || result.Outcome != jobspec.OutcomeSucceeded {
						return finding{}, fmt.Errorf("the second plan: %s %s: %w", result.Outcome, result.Error, err)
					}
					plan = s.planOf(job)
					apply, granted = applyOf(again, plan)
					return ran(s, "consent-twice", func() (jobspec.Result, error) {
						return s.do(ctx, apply, granted, func(d *draft) { d.order.OriginID = spec.ChangeID })
					})
				},
			},
			{
				Name: "consent-tried-for-ever", Adversary: Plane, Try: "one consent, for a change that fails, tried until it works", World: "a fourth line in the install's file \"consent-tries\"",
				run: func(ctx context.Context, s *scene) (f finding, err error) {
					spec := adHoc("consent-tries", "exit 1")
					plan, err := s.plan(ctx, spec)
					if err == nil {
						err = s.agree(spec.ChangeID, mode)
					}
					var last jobspec.Result
					for try := 0; err == nil && try < 4; try++ {
						apply, granted := applyOf(spec, plan)
						last, err = s.do(ctx, apply, granted)
					}
					if err != nil {
						return finding{}, err
					}
					n, err := s.lines("consent-tries")
					f = finding{effect: n > 3}
					if last.Outcome == jobspec.OutcomeRefused {
						f.rule = ruleOf(last)
					}
					return f, err
				},
			},
			{
				Name: "consent-to-scripts", Adversary: Plane, Try: "the acceptance of a release with a new script, without the customer", World: inFile("evil"),
				run: func(ctx context.Context, s *scene) (finding, error) {
					evil := check("evil")
					return s.brings(ctx, []jobspec.Script{evil}, evil, func(*jobspec.Release) {})
				},
			},
		},
	}
}

// rewriter is accepted vendor code that loosens the customer's rules.
var rewriter = check("rewriter", `for f in "$BERTH_INSTALL_DIR"/../guardrails/*; do echo '{}' > "$f"; rm -f "$f"; done`, "true")

const (
	ruleFile = "no-dropping.rego"
	// allowScripts loosens the guardrail about scripts of nobody's.
	allowScripts = `{"answers": [{"guardrail": "ad-hoc-script", "answer": "allow", "reason": "a drill"}]}`
)

// deniedWord is in scripts that the guardrail of denyGroup denies.
const deniedWord = "drop-the-database"

// denyRule is a guardrail of the customer's, as they would write it.
const denyRule = `package berth

deny contains "scripts that drop the database are denied" if contains(input.script.text, "` + deniedWord + `")
`

// guarded is a change that a guardrail looks at.
func guarded(name, try, line string, edits ...edit) Attack {
	mark := "guarded-" + name
	return Attack{Name: name, Adversary: Plane, Try: try, World: inFile(mark), run: func(ctx context.Context, s *scene) (finding, error) {
		spec := adHoc(mark, line)
		job, err := s.give(spec)
		if err != nil {
			return finding{}, err
		}
		planned, err := s.result(ctx, job)
		if err != nil {
			return finding{}, err
		}
		plan := s.planOf(job)
		if plan.EffectDigest == "" {
			return finding{rule: ruleOf(planned)}, nil
		}
		// The control plane's database says that it was approved.
		apply, granted := applyOf(spec, plan)
		f, err := ran(s, mark, func() (jobspec.Result, error) { return s.do(ctx, apply, append([]edit{granted}, edits...)...) })
		if f.rule != "" && plan.Judgement != nil {
			for _, v := range plan.Judgement.Guardrails {
				if v.Result != policy.Fail {
					continue
				}
				f.rule += "; guardrail " + v.Policy + ": " + v.Message
			}
		}
		return f, err
	}}
}

// denyGroup: a rule of the customer's that denies.
func denyGroup() group {
	return group{
		name: "guardrails that deny",
		shape: func() shape {
			return shape{strict: true, scripts: []jobspec.Script{rewriter}, guardrails: map[string]string{
				ruleFile: denyRule, guardrail.AnswersFile: allowScripts,
			}}
		},
		allowed: guarded("guardrail", "a script that no rule denies", ":"),
		attacks: []Attack{
			guarded("guardrail-denies", "a script that a rule of the customer's denies, approved by the vendor", "# "+deniedWord),
			{
				Name: "guardrail-loosened", Adversary: Vendor, Try: "vendor code that rewrites the customer's rules", World: "the text of the rule's file",
				run: func(ctx context.Context, s *scene) (finding, error) {
					return tampers(ctx, s, rewriter, filepath.Join(s.dir.Guardrails(), ruleFile))
				},
			},
		},
	}
}

// askGroup: the guardrails as they are shipped.
func askGroup() group {
	return group{
		name: "guardrails that ask", shape: func() shape { return shape{strict: true, scripts: nil} },
		allowed: Attack{
			Name: "guardrails as shipped", Adversary: Plane, Try: "a change that the customer agreed to", World: inFile("asked"),
			run: func(ctx context.Context, s *scene) (finding, error) {
				spec := adHoc("asked")
				plan, err := s.plan(ctx, spec)
				if err != nil {
					return finding{}, err
				}
				c, err := s.consents().Find(spec.ChangeID)
				if err != nil {
					return finding{}, err
				}
				if err := s.sayAsMachine(c); err != nil {
					return finding{}, err
				}
				apply, granted := applyOf(spec, plan)
				return ran(s, "asked", func() (jobspec.Result, error) { return s.do(ctx, apply, granted) })
			},
		},
		attacks: []Attack{
			guarded("guardrail-asks", "a script of nobody's that the customer did not agree to", ":"),
		},
	}
}

// switchGroup: the customer has stopped changes.
func switchGroup() group {
	good := check("still-checked")
	stopped := func(name, try, mode string) Attack {
		mark := "switch-" + name
		return Attack{Name: name, Adversary: Plane, Try: try, World: inFile(mark), run: func(ctx context.Context, s *scene) (finding, error) {
			spec := adHoc(mark)
			plan, err := s.plan(ctx, spec)
			if err != nil {
				return finding{}, err
			}
			if err := s.turn(ctx, mode); err != nil {
				return finding{}, err
			}
			defer func() { _ = s.turn(context.WithoutCancel(ctx), "run") }()
			apply, granted := applyOf(spec, plan)
			job, err := s.give(apply, granted)
			if err != nil {
				return finding{}, err
			}
			return s.ignored(ctx, job, mark, mode)
		}}
	}
	return group{
		name: "switch", shape: func() shape { return shape{scripts: []jobspec.Script{good}} },
		allowed: change(Plane, "switch", "a change while the switch says run"),
		attacks: []Attack{
			stopped("switch-read-only", "a change, while the customer's switch says read-only", "read-only"),
			stopped("switch-paused", "a change, while the customer has paused the runner", "pause"),
			{
				Name: "switch-settings", Adversary: Plane, Try: "settings that would lift the customer's pause", World: inFile("switch-settings"),
				run: func(ctx context.Context, s *scene) (finding, error) {
					spec := adHoc("switch-settings")
					plan, err := s.plan(ctx, spec)
					if err != nil {
						return finding{}, err
					}
					if err := s.turn(ctx, "pause"); err != nil {
						return finding{}, err
					}
					defer func() { _ = s.turn(context.WithoutCancel(ctx), "run") }()
					if err := s.publish(ctx, 1, time.Now(), nil); err != nil {
						return finding{}, err
					}
					apply, granted := applyOf(spec, plan)
					job, err := s.give(apply, granted)
					if err != nil {
						return finding{}, err
					}
					return s.ignored(ctx, job, "switch-settings", "pause")
				},
			},
		},
	}
}
