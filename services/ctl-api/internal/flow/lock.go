package flow

import (
	"slices"
	"time"
)

// lockWait bounds a wait for another change of the same resource.
const lockWait = 24 * time.Hour

// Locks is who holds the resources of an install.
type Locks struct {
	// By names, per resource, the change that holds it, whatever workflow it is
	// of.
	By map[string]string
	// SandboxID is the resource that excludes all others; empty without one.
	SandboxID string
}

// Holder names the change that keeps a resource from being changed; empty when
// it is free. The sandbox excludes every other resource of the install and is
// excluded by each.
func (l Locks) Holder(resource string) string {
	if resource == "" {
		return ""
	}
	if by := l.By[resource]; by != "" {
		return by
	}
	if l.SandboxID == "" {
		return ""
	}
	if resource != l.SandboxID {
		return l.By[l.SandboxID]
	}
	var holders []string
	for _, by := range l.By {
		if by != "" {
			holders = append(holders, by)
		}
	}
	if len(holders) == 0 {
		return ""
	}
	return slices.Min(holders)
}
