package agent

import (
	"context"

	"github.com/berth-dev/berth/runner/agent/guards"
)

// openGuards opens the customer's guardrails.
func (a *agent) openGuards() {
	a.guards = &guards.Guards{
		Folder: guards.Folder{Dir: a.dir}, Registry: a.cfg.RegistryAddress, Development: a.iso.weak != "",
		Now: a.cfg.Now, Log: a.cfg.Log,
	}
}

// followClusterGuardrails copies the customer's ConfigMap to where guardrails are read from.
func (a *agent) followClusterGuardrails(life context.Context) error {
	return a.cfg.Pod.Follow(life, a.cfg.Log, guards.ConfigMap, func(files map[string]string) error {
		return a.guards.TakeConfigMap(files, a.cfg.Now().UTC())
	})
}
