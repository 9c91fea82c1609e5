package guards

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/runner/agent/guardrail"
)

// Engine is the policy engine.
type Engine interface {
	Ask(ctx context.Context, r policy.Request) (policy.Reply, error)
}

// Guards are the guardrails of an install. Safe for concurrent use; nil has none.
type Guards struct {
	Folder
	// Registry is that of the install as kubelets name it, "" for none.
	Registry    string
	Development bool
	// Engine is nil where there is none: that is doubt.
	Engine Engine
	Now    func() time.Time
	Log    *slog.Logger

	mu  sync.Mutex
	ran map[string]policy.Judgement // of runs without a plan, by set and script
}

// errNoEngine: the runner was put together without one.
var errNoEngine = errors.New("this runner has no policy engine: berth-policy belongs next to berth-runner")

// Set is the guardrails as they stand now.
func (g *Guards) Set() guardrail.Set {
	files, err := g.Read()
	s := guardrail.Load(files, guardrail.Options{Registry: g.Registry, Development: g.Development, Now: g.Now()})
	if err != nil {
		s.Problems = append(s.Problems, guardrail.Problem{File: "guardrails", Text: err.Error()})
	}
	return s
}

// Judged is what came of holding rules against a plan.
type Judged struct {
	Judgement policy.Judgement
	// Digest is of the set of guardrails, Verdict is the word on the judgement: both are
	// part of the effect.
	Digest, Verdict string
	// Kinds are those that who agrees is not asked about again.
	Kinds []guardrail.Kind
}

// Plan is what is to be judged.
type Plan struct {
	policy.Case
	// Guarded says whether the guardrails are asked too.
	Guarded bool
	// Doubts are what is wrong with the documents.
	Doubts []string
}

// Judge holds the vendor's rules and the guardrails against a plan, by one question. What
// cannot be judged is in doubt: it is never an error of this function.
func (g *Guards) Judge(ctx context.Context, p Plan) Judged {
	set := g.Set()
	if !p.Guarded {
		set.Rules, set.Problems = nil, nil
	}
	agreed, err := g.Agreed()
	if err != nil {
		p.Doubts = append(p.Doubts, err.Error())
	}
	asked := guardrail.Asked{Case: p.Case, Guarded: p.Guarded, Doubts: p.Doubts, Agreed: func(name, kind string) bool {
		return slices.ContainsFunc(agreed, func(a Agreed) bool { return a.Guardrail == name && a.Kind.Kind == kind })
	}}
	asked.Reply, asked.Failed = g.ask(ctx, set.Request(p.Case, p.Guarded))
	j := set.Judge(asked)
	return Judged{Judgement: j, Digest: set.Digest(), Verdict: guardrail.Verdict(j), Kinds: guardrail.Onces(j, p.Documents)}
}

// ask asks about rules that look at a document; without any, nobody is asked.
func (g *Guards) ask(ctx context.Context, r policy.Request) (policy.Reply, error) {
	if !slices.ContainsFunc(r.Rules, func(rules policy.Rules) bool { return slices.ContainsFunc(r.Documents, rules.Applies) }) {
		return policy.Reply{}, nil
	}
	if g.Engine == nil {
		return policy.Reply{}, errNoEngine
	}
	began := time.Now()
	reply, err := g.Engine.Ask(ctx, r)
	if err != nil {
		g.Log.ErrorContext(ctx, "policy engine gave no answer", "err", err)
		return reply, err
	}
	g.Log.DebugContext(ctx, "rules were held against documents", "rules", len(r.Rules), "documents", len(r.Documents), "took", time.Since(began))
	return reply, nil
}

// maxRan is how many answers about scripts are kept.
const maxRan = 1000

// Run judges the scripts of a run that has no plan. script is their digest: while the
// guardrails are the same, the same scripts are not judged again, but for rules that look at
// the clock.
func (g *Guards) Run(ctx context.Context, script string, documents []policy.Document) policy.Judgement {
	set := g.Set()
	key := set.Digest() + " " + script
	g.mu.Lock()
	known, found := g.ran[key]
	g.mu.Unlock()
	if found && !set.Timed() {
		return known
	}
	j := g.Judge(ctx, Plan{Case: policy.Case{Documents: documents}, Guarded: true}).Judgement
	if slices.ContainsFunc(j.Guardrails, func(v policy.Verdict) bool { return v.Result == policy.Error }) {
		return j // it may pass
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ran == nil || len(g.ran) >= maxRan {
		g.ran = map[string]policy.Judgement{}
	}
	g.ran[key] = j
	return j
}
