package heads

import (
	"fmt"

	"github.com/berth-dev/berth/pkg/chain"
)

// State is what the chain is, compared with the heads that were kept.
type State string

// All states. Each but Continues stops mutations.
const (
	Continues State = ""        // it leads to each head that was kept
	Missing   State = "missing" // the runner had a chain, and there is none
	Behind    State = "behind"  // it ends before a head that was kept
	Forked    State = "forked"  // it has another record where a head was kept
	Damaged   State = "damaged" // it cannot be read to its end; the agent does not start
)

// Kept is a head of the chain that somebody kept.
type Kept struct {
	// By says who, for people.
	By string `json:"by"`
	chain.Head
}

// Facts are what Judge decides from.
type Facts struct {
	// Begun: the runner has an identity, so it once had a chain or was about to
	// begin one. It says so in the second copy before it takes the identity.
	Begun bool
	// Head is where the chain ends, the zero Head without one.
	Head chain.Head
	// At is the head that the chain had when a record was its last; false when the
	// chain is shorter.
	At func(seq int64) (chain.Head, bool)
	// Kept are the heads to compare with.
	Kept []Kept
	// GivenUp are heads that the customer decided to go on without.
	GivenUp []chain.Head
}

// Judge compares the chain with the heads that were kept. It does no I/O but At.
// The Kept that it returns is the one that the chain does not lead to.
func Judge(f Facts) (State, Kept) {
	if f.Begun && f.Head.Seq == 0 && len(f.Kept) == 0 {
		return Missing, Kept{}
	}
	state, worst := Continues, Kept{}
	for _, kept := range f.Kept {
		if kept.Seq == 0 || givenUp(f.GivenUp, kept.Head) {
			continue
		}
		at, found := f.At(kept.Seq)
		switch {
		case found && at == kept.Head:
		case found:
			return Forked, kept
		case kept.Seq > worst.Seq:
			state, worst = Behind, kept
		}
	}
	if state == Behind && f.Head.Seq == 0 {
		state = Missing
	}
	return state, worst
}

func givenUp(heads []chain.Head, head chain.Head) bool {
	for _, h := range heads {
		if h == head {
			return true
		}
	}
	return false
}

// Describe says in a sentence what is wrong.
func Describe(state State, head chain.Head, kept Kept) string {
	switch {
	case state == Missing && kept.Seq == 0:
		return "the chain of this install is missing, and so is the second copy of its head"
	case state == Missing:
		return fmt.Sprintf("the chain of this install is missing: %s knows %d records", kept.By, kept.Seq)
	case state == Behind:
		return fmt.Sprintf("the chain of this install ends at record %d: %s knows %d records", head.Seq, kept.By, kept.Seq)
	case state == Forked:
		return fmt.Sprintf("the chain of this install is another one: record %d differs from the one that %s knows", kept.Seq, kept.By)
	}
	return ""
}
