package agent

import (
	"context"
	"path/filepath"

	"github.com/berth-dev/berth/runner/agent/guards"
	"github.com/berth-dev/berth/runner/agent/judge"
)

// policyProgram is the policy engine, which is where the other engine is.
const policyProgram = "berth-policy"

// openGuards opens the customer's guardrails.
func (a *agent) openGuards() (end func() error) {
	a.guards, end = a.openRules()
	return end
}

// openRules opens what holds rules against documents. The policy engine is started by the
// first question.
func (a *agent) openRules() (rules *guards.Guards, end func() error) {
	engine := judge.New(judge.Options{
		Executable: filepath.Join(filepath.Dir(a.cfg.Engine), policyProgram), Launcher: a.cfg.Executable,
		Users: a.iso.users, Dir: filepath.Join(a.dir.Path(), "judge"), UID: a.cfg.EngineUID, Log: a.cfg.Log,
	})
	rules = &guards.Guards{
		Folder: guards.Folder{Dir: a.dir}, Registry: a.cfg.RegistryAddress, Development: a.iso.weak != "",
		Engine: engine, Now: a.cfg.Now, Log: a.cfg.Log,
	}
	return rules, func() error { engine.Close(); return nil }
}

// followClusterGuardrails copies the customer's ConfigMap to where guardrails are read from.
func (a *agent) followClusterGuardrails(life context.Context) error {
	return a.cfg.Pod.Follow(life, a.cfg.Log, guards.ConfigMap, func(files map[string]string) error {
		return a.guards.TakeConfigMap(files, a.cfg.Now().UTC())
	})
}
