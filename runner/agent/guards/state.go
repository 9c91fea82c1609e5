package guards

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/dirwatch"
	"github.com/berth-dev/berth/runner/agent/guardrail"
)

// State is what there is to show of the guardrails.
type State struct {
	Guardrails  int  `json:"guardrails"`
	Own         int  `json:"own"` // how many of them are the customer's files
	OnlyWarn    bool `json:"only_warn,omitempty"`
	Development bool `json:"development,omitempty"`
	// Problems are why everything is in doubt.
	Problems []string  `json:"problems"`
	Digest   string    `json:"digest"`
	At       time.Time `json:"at"`
}

// StateOf is that of a set. wrong are files that the policy engine does not load.
func StateOf(s guardrail.Set, wrong []string, now time.Time) State {
	st := State{Guardrails: len(s.Rules), OnlyWarn: s.OnlyWarn, Development: s.Development, Digest: s.Digest(), Problems: []string{}, At: now}
	for _, r := range s.Rules {
		if r.Standard == nil {
			st.Own++
		}
	}
	for _, p := range s.Problems {
		st.Problems = append(st.Problems, p.String())
	}
	st.Problems = append(st.Problems, wrong...)
	return st
}

// probe is a document by which rules are tried, so that a file that does not load is found
// before a plan is in doubt for it.
func probe() policy.Document {
	body, err := json.Marshal(policy.Script{Action: "probe", Step: "probe", Accepted: true, Env: []string{}})
	if err != nil {
		panic(err) // texts and booleans only
	}
	return policy.Document{Form: policy.FormScript, Of: "action", Component: "probe", Name: "probe", Body: body}
}

// Unloaded are the files of a set that the policy engine does not load, as file:line: text.
func (g *Guards) Unloaded(ctx context.Context, s guardrail.Set) []string {
	reply, err := g.ask(ctx, s.Request(policy.Case{Documents: []policy.Document{probe()}}, true))
	if err != nil {
		return []string{"the policy engine gives no answer: " + err.Error()}
	}
	var wrong []string
	for _, v := range reply.Verdicts {
		isPlace := slices.ContainsFunc(s.Rules, func(r guardrail.Rule) bool { return strings.HasPrefix(v.Message, r.File+":") })
		if v.Result == policy.Error && isPlace {
			wrong = append(wrong, v.Message)
		}
	}
	return wrong
}

// Tell writes down how the guardrails stand, now and whenever a file of theirs changes, until
// ctx ends. Nothing waits for it: each decision reads the files itself.
func (g *Guards) Tell(ctx context.Context) error {
	return dirwatch.Teller[State]{
		Dir: g.Dir.Guardrails(),
		Read: func() (State, bool, error) {
			s := g.Set()
			return StateOf(s, g.Unloaded(ctx, s), time.Time{}), true, nil
		},
		Put: func(ctx context.Context, now State) error {
			for _, p := range now.Problems {
				g.Log.ErrorContext(ctx, "guardrails are in doubt, so every change asks", "problem", p)
			}
			now.At = g.Now().UTC()
			return datadir.WriteJSON(g.Dir.GuardrailsState(), now)
		},
		Failed: func(err error) { g.Log.ErrorContext(ctx, "state of the guardrails cannot be told", "err", err) },
	}.Tell(ctx)
}
