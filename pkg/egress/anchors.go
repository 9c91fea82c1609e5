package egress

import (
	"bufio"
	"fmt"
	"io"

	"github.com/berth-dev/berth/pkg/chain"
)

// Anchors are the heads of the ledger that a chain names, in its order. A machine that
// takes over begins a ledger of its own: those before the last handover are of ledgers
// that are not here. It checks nothing: verify the chain first.
func Anchors(chainFile io.Reader) (heads []Head, err error) {
	lines := bufio.NewScanner(chainFile)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		r, err := chain.ParseRecord(lines.Bytes())
		if err != nil {
			return nil, fmt.Errorf("chain: %w", err)
		}
		if r.Handover != nil {
			heads = nil
		}
		if r.Kind != chain.Event || r.What != AnchorWhat {
			continue
		}
		h, ok := ParseAnchor(r.Detail)
		if !ok {
			return nil, fmt.Errorf("record %d of the chain names no line of the egress ledger: %q", r.Seq, r.Detail)
		}
		heads = append(heads, h)
	}
	return heads, lines.Err()
}
