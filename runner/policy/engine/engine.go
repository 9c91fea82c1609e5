// Package engine answers requests: it holds rules against documents and gives at least one
// verdict for each pair, whatever the rules do. It keeps compiled rules for the next request.
//
// A pair that panics, or takes longer than its time, gives the verdict error, and so does a
// file that does not load. What runs on after its time cannot be stopped here: Dirty says
// that the process should end after this reply. Memory, and a stack that overflows, end the
// process at once; who started it asks again (package judge of the runner).
package engine

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/pkg/version"
	"github.com/berth-dev/berth/runner/policy/kyverno"
	"github.com/berth-dev/berth/runner/policy/rego"
	"github.com/berth-dev/berth/runner/policy/rule"
)

const (
	// PairTimeout is for one policy and one document.
	PairTimeout = 3 * time.Second
	// loadTimeout is for compiling one file.
	loadTimeout = 20 * time.Second
	// strikes are how often one policy may run out of time in a request. What is left of it
	// is not tried any more.
	strikes = 2
	// maxKept is how many compiled files are kept, of maxKeptText bytes at most.
	maxKept     = 512
	maxKeptText = 16 << 20
	// shortMessage is the longest message in a reply that would be too long otherwise.
	shortMessage = 80
)

// Engine is safe for concurrent use.
type Engine struct {
	mu    sync.Mutex
	kept  map[[sha256.Size]byte]*loaded
	text  int // bytes of the files in kept
	dirty atomic.Bool
}

// loaded is a compiled file, or why there is none.
type loaded struct {
	set  rule.Set
	err  error
	text int
}

// New returns an engine that has compiled nothing yet.
func New() *Engine { return &Engine{kept: map[[sha256.Size]byte]*loaded{}} }

// Dirty says that something which ran out of time still runs.
func (e *Engine) Dirty() bool { return e.dirty.Load() }

// Name names the engine with the versions of its languages.
var Name = sync.OnceValue(func() string {
	of := map[string]string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			of[d.Path] = strings.TrimPrefix(d.Version, "v")
		}
	}
	return fmt.Sprintf("berth-policy %s (Kyverno %s, OPA %s)", version.Get().Version, of["github.com/kyverno/kyverno"], of["github.com/open-policy-agent/opa"])
})

// Load compiles a file.
func Load(ctx context.Context, r policy.Rules) (rule.Set, error) {
	type result struct {
		set rule.Set
		err error
	}
	done := make(chan result, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				done <- result{err: rule.Problems{{Line: 1, Text: fmt.Sprintf("the file brings its language down: %v", p)}}}
			}
		}()
		var set rule.Set
		var err error
		switch r.Language {
		case policy.Kyverno, "":
			set, err = kyverno.Load(r.Text)
		case policy.Rego:
			set, err = rego.Load(ctx, r.Text, r.RegoV0)
		default:
			err = rule.Problems{{Line: 1, Text: fmt.Sprintf("the language %q is not known: kyverno or opa", r.Language)}}
		}
		done <- result{set, err}
	}()
	select {
	case r := <-done:
		return r.set, r.err
	case <-time.After(loadTimeout):
		return nil, errTooLong
	}
}

var errTooLong = fmt.Errorf("it is not compiled within %s", loadTimeout)

// load is Load with what is kept.
func (e *Engine) load(ctx context.Context, r policy.Rules) *loaded {
	key := sha256.Sum256(fmt.Appendf(nil, "%s\x00%t\x00%s", r.Language, r.RegoV0, r.Text))
	e.mu.Lock()
	l := e.kept[key]
	e.mu.Unlock()
	if l != nil {
		return l
	}
	l = &loaded{text: len(r.Text)}
	if l.set, l.err = Load(ctx, r); errors.Is(l.err, errTooLong) {
		e.dirty.Store(true)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.kept) >= maxKept || e.text+l.text > maxKeptText { // rarely: who asks has few files
		clear(e.kept)
		e.text = 0
	}
	e.kept[key] = l
	e.text += l.text
	return l
}

// Judge answers a request.
func (e *Engine) Judge(ctx context.Context, r policy.Request) policy.Reply {
	began := time.Now()
	sets := make([]*loaded, len(r.Rules))
	for i, rules := range r.Rules {
		sets[i] = e.load(ctx, rules)
	}
	// A document is one worker's: so no two rules see it at once.
	verdicts := make([][][]policy.Verdict, len(r.Documents))
	struck := make([]atomic.Int32, len(r.Rules))
	var next atomic.Int32
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), max(1, len(r.Documents))) {
		workers.Go(func() {
			for {
				n := int(next.Add(1)) - 1
				if n >= len(r.Documents) {
					return
				}
				verdicts[n] = e.document(ctx, one{request: r, document: r.Documents[n], sets: sets, struck: struck, now: began})
			}
		})
	}
	workers.Wait()
	reply := policy.Reply{Engine: Name()}
	for i := range r.Rules {
		for n := range r.Documents {
			reply.Verdicts = append(reply.Verdicts, verdicts[n][i]...)
		}
	}
	return reply
}

// one is a document with all that is held against it.
type one struct {
	request  policy.Request
	document policy.Document
	sets     []*loaded
	struck   []atomic.Int32 // how often each policy ran out of time
	now      time.Time
}

// document gives the verdicts of each rules on a document; none where they do not look at it.
func (e *Engine) document(ctx context.Context, o one) [][]policy.Verdict {
	out := make([][]policy.Verdict, len(o.request.Rules))
	var decoded *rule.Document
	var err error
	for i, rules := range o.request.Rules {
		if !rules.Applies(o.document) {
			continue
		}
		if decoded == nil && err == nil {
			decoded, err = rule.Decode(o.document, o.request, o.now)
		}
		var verdicts []policy.Verdict
		switch {
		case o.sets[i].err != nil:
			verdicts = wrong(place(rules, o.sets[i].err))
		case err != nil:
			verdicts = wrong(err.Error())
		case o.struck[i].Load() >= strikes:
			verdicts = wrong(fmt.Sprintf("not tried: the policy took longer than %s with other documents", PairTimeout))
		default:
			var late bool
			if verdicts, late = e.pair(ctx, o.sets[i].set, decoded); late {
				o.struck[i].Add(1)
				decoded, err = nil, nil // what is late still reads it
			}
		}
		out[i] = named(verdicts, rules, o.document)
	}
	return out
}

// place says where in a file something is wrong.
func place(rules policy.Rules, err error) string {
	var problems rule.Problems
	if !errors.As(err, &problems) || len(problems) == 0 {
		return "the policy does not load: " + err.Error()
	}
	if rules.File == "" {
		return "the policy does not load: " + problems.Error()
	}
	text := fmt.Sprintf("%s:%d: %s", rules.File, problems[0].Line, problems[0].Text)
	if more := len(problems) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text
}

// pair holds one file of rules against one document. late: it took too long, and goes on.
func (e *Engine) pair(ctx context.Context, set rule.Set, d *rule.Document) (verdicts []policy.Verdict, late bool) {
	ctx, cancel := context.WithTimeout(ctx, PairTimeout)
	defer cancel()
	done := make(chan []policy.Verdict, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				done <- wrong(fmt.Sprintf("the policy brings its language down: %v", p))
			}
		}()
		done <- set.Judge(ctx, d)
	}()
	const grace = 200 * time.Millisecond // for what listens to ctx
	timer := time.NewTimer(PairTimeout + grace)
	defer timer.Stop()
	select {
	case verdicts = <-done:
	case <-timer.C:
		e.dirty.Store(true)
		return wrong(fmt.Sprintf("the policy takes longer than %s", PairTimeout)), true
	}
	switch {
	case ctx.Err() != nil: // also when the rules took that for an answer
		return wrong(fmt.Sprintf("the policy takes longer than %s", PairTimeout)), true
	case len(verdicts) > policy.MaxOfOne:
		return wrong(fmt.Sprintf("the policy gives more than %d results", policy.MaxOfOne)), false
	case len(verdicts) == 0:
		return wrong("the policy gives no result"), false
	}
	return verdicts, false
}

func wrong(message string) []policy.Verdict {
	return []policy.Verdict{{Result: policy.Error, Message: message}}
}

// named says in each verdict whose it is.
func named(verdicts []policy.Verdict, rules policy.Rules, d policy.Document) []policy.Verdict {
	for i := range verdicts {
		v := &verdicts[i]
		v.Policy, v.Document, v.Component = rules.Name, d.Name, d.Component
		v.Message = cut(v.Message, policy.MaxMessage)
		v.Rule = cut(v.Rule, policy.MaxMessage)
	}
	return verdicts
}

// cut shortens a text to so many bytes.
func cut(text string, most int) string {
	if text = strings.ToValidUTF8(text, ""); len(text) <= most {
		return text
	}
	const more = "…"
	return strings.ToValidUTF8(text[:most-len(more)], "") + more
}

// Encode is a reply in no more than policy.MaxReply bytes and policy.MaxVerdicts verdicts. One
// that would be longer loses the ends of its messages, then all but one verdict of each pair,
// which is an error.
func Encode(reply policy.Reply) ([]byte, error) {
	if len(reply.Verdicts) <= policy.MaxVerdicts {
		if raw, err := json.Marshal(reply); err != nil || len(raw) <= policy.MaxReply {
			return raw, err
		}
		for i := range reply.Verdicts {
			reply.Verdicts[i].Message = cut(reply.Verdicts[i].Message, shortMessage)
		}
		if raw, err := json.Marshal(reply); err != nil || len(raw) <= policy.MaxReply {
			return raw, err
		}
	}
	type pair struct{ policy, component, document string }
	seen := map[pair]int{}
	var single []policy.Verdict
	for _, v := range reply.Verdicts {
		of := pair{v.Policy, v.Component, v.Document}
		at, again := seen[of]
		if !again {
			seen[of] = len(single)
			v.Message, v.Rule = cut(v.Message, shortMessage), cut(v.Rule, shortMessage)
			single = append(single, v)
			continue
		}
		single[at] = policy.Verdict{
			Policy: v.Policy, Document: v.Document, Component: v.Component, Result: policy.Error,
			Message: "the reply would be too long with all results of this policy",
		}
	}
	reply.Verdicts = single
	raw, err := json.Marshal(reply)
	if err == nil && (len(raw) > policy.MaxReply || len(single) > policy.MaxVerdicts) {
		err = fmt.Errorf("%d documents and policies are too many for one request", len(single))
	}
	return raw, err
}
