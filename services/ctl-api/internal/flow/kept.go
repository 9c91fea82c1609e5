//go:build !planted

package flow

// kept tells whether what was approved of the change that this one replaces covers it: the
// effect is the same. kept_planted.go stands in for it in executables that have a bug on
// purpose.
func (c *Change) kept() bool { return c.ApprovedDigest != "" && c.ApprovedDigest == c.EffectDigest }

// Enough tells whether all approvals that the change needs are of this effect, and
// count.
func (c *Change) Enough() bool { return c.Missing == 0 }
