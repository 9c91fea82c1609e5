package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Limits of a reply. An engine that says more has gone wrong.
const (
	MaxReply    = 32 << 20 // bytes
	MaxVerdicts = 100_000
	MaxMessage  = 2000 // bytes of one message
	// MaxOfOne is how many verdicts one policy may give about one document; what is
	// beyond is one verdict, error.
	MaxOfOne = 1000
)

// Reply is what the engine answers: for each pair of rules and a document that they look
// at, at least one verdict.
type Reply struct {
	// Engine names the engine and the versions of its languages.
	Engine   string    `json:"engine"`
	Verdicts []Verdict `json:"verdicts"`
}

// ReadReply reads a reply and checks that it answers a request: that nothing in it is
// unheard of, and that no pair of rules and document was left out.
func ReadReply(from io.Reader, request Request) (Reply, error) {
	var reply Reply
	raw, err := io.ReadAll(io.LimitReader(from, MaxReply+1))
	if err != nil {
		return reply, err
	}
	if len(raw) > MaxReply {
		return reply, fmt.Errorf("the policy engine answers with more than %d bytes", MaxReply)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if err := d.Decode(&reply); err != nil {
		return reply, fmt.Errorf("the policy engine's answer is no JSON of its contract: %w", err)
	}
	return reply, reply.check(request)
}

func (r *Reply) check(request Request) error {
	if r.Engine == "" {
		return errors.New("the policy engine does not say what it is")
	}
	if len(r.Verdicts) > MaxVerdicts {
		return fmt.Errorf("the policy engine gives %d verdicts, more than %d", len(r.Verdicts), MaxVerdicts)
	}
	type pair struct{ policy, component, document string }
	answered := map[pair]bool{}
	for i := range r.Verdicts {
		v := &r.Verdicts[i]
		switch v.Result {
		case Pass, Fail, Warning, Error, Skip, Unknown:
		default:
			return fmt.Errorf("the policy engine gives the result %q, which its contract does not know", v.Result)
		}
		if v.On != "" && !v.On.Valid() {
			return fmt.Errorf("the policy engine gives the answer %q, which its contract does not know", v.On)
		}
		v.Message = cut(v.Message)
		answered[pair{v.Policy, v.Component, v.Document}] = true
	}
	for _, rules := range request.Rules {
		for _, d := range request.Documents {
			if rules.Applies(d) && !answered[pair{rules.Name, d.Component, d.Name}] {
				return fmt.Errorf("the policy engine does not answer what policy %s says of %s", rules.Name, d.Name)
			}
		}
	}
	return nil
}

// cut shortens a message to MaxMessage.
func cut(text string) string {
	text = strings.ToValidUTF8(text, "")
	if len(text) <= MaxMessage {
		return text
	}
	const more = "…"
	return strings.ToValidUTF8(text[:MaxMessage-len(more)], "") + more
}
