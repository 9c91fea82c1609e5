//go:build planted

package flow

import "github.com/berth-dev/berth/services/internal/planted"

func (c *Change) kept() bool {
	return c.ApprovedDigest != "" && (c.ApprovedDigest == c.EffectDigest || planted.Is(planted.KeptApproval))
}

func (c *Change) Enough() bool {
	return c.Missing == 0 || c.ApprovedDigest != "" && planted.Is(planted.KeptApproval)
}
