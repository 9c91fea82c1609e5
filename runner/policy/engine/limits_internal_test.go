package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/runner/policy/rule"
)

// rules are a set that does what a test wants.
type rules func(ctx context.Context) []policy.Verdict

func (r rules) Judge(ctx context.Context, _ *rule.Document) []policy.Verdict { return r(ctx) }

func TestPair(t *testing.T) {
	t.Parallel()
	many := make([]policy.Verdict, policy.MaxOfOne+1)
	for _, tc := range []struct {
		name  string
		rules rules
		says  string
		late  bool
	}{
		{"a panic", func(context.Context) []policy.Verdict { panic("cannot deep copy int") }, "cannot deep copy int", false},
		{"nothing said", func(context.Context) []policy.Verdict { return nil }, "no result", false},
		{"too much said", func(context.Context) []policy.Verdict { return many }, "more than 1000 results", false},
		{"what stops when it is told", func(ctx context.Context) []policy.Verdict { <-ctx.Done(); return many[:1] }, "takes longer", true},
		{"what never stops", func(context.Context) []policy.Verdict { <-make(chan int); return nil }, "takes longer", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			e := New()
			began := time.Now()
			verdicts, late := e.pair(t.Context(), tc.rules, &rule.Document{})
			if len(verdicts) != 1 || verdicts[0].Result != policy.Error || !strings.Contains(verdicts[0].Message, tc.says) || late != tc.late {
				t.Errorf("got %v, late %t; want one error that says %q, late %t", verdicts, late, tc.says, tc.late)
			}
			if took := time.Since(began); took > 2*PairTimeout {
				t.Errorf("it took %s", took)
			}
			if e.Dirty() != (tc.name == "what never stops") {
				t.Errorf("dirty: %t", e.Dirty())
			}
		})
	}
}

func TestEncode(t *testing.T) {
	t.Parallel()
	reply := func(documents, each, message int) policy.Reply {
		r := policy.Reply{Engine: "x"}
		for d := range documents {
			for n := range each {
				r.Verdicts = append(r.Verdicts, policy.Verdict{Policy: "p", Document: fmt.Sprint(d), Rule: fmt.Sprint(n), Result: policy.Fail, Message: strings.Repeat("m", message)})
			}
		}
		return r
	}
	request := func(documents int) policy.Request {
		r := policy.Request{Rules: []policy.Rules{{Name: "p"}}}
		for d := range documents {
			r.Documents = append(r.Documents, policy.Document{Name: fmt.Sprint(d)})
		}
		return r
	}
	for _, tc := range []struct {
		name                     string
		documents, each, message int
		want                     int // verdicts
		result                   policy.Result
	}{
		{"one that fits", 10, 10, 100, 100, policy.Fail},
		{"messages that are too long together", 200, 100, 2000, 20_000, policy.Fail},
		{"too many verdicts", 200, 1000, 10, 200, policy.Error},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			raw, err := Encode(reply(tc.documents, tc.each, tc.message))
			if err != nil {
				t.Fatal(err)
			}
			got, err := policy.ReadReply(strings.NewReader(string(raw)), request(tc.documents))
			if err != nil || len(got.Verdicts) != tc.want || got.Verdicts[0].Result != tc.result {
				t.Errorf("%d verdicts, %v", len(got.Verdicts), err)
			}
		})
	}
}
