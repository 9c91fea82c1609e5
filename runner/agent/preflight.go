package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/berth-dev/berth/runner/agent/cluster"
	"github.com/berth-dev/berth/runner/agent/control"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/process"
	"github.com/berth-dev/berth/runner/agent/users"
)

// Finding is one thing that an agent needs, and what is wrong with it.
type Finding struct {
	What string
	Err  error
	// Warning: the agent works all the same.
	Warning bool
}

// Preflight looks whether an agent could work here. It changes nothing.
func Preflight(ctx context.Context, cfg Config) []Finding {
	var findings []Finding
	found := func(what string, err error) { findings = append(findings, Finding{What: what, Err: err}) }
	done, err := cfg.Complete()
	found("configuration", err)
	if err != nil {
		return findings
	}
	dir, err := datadir.At(done.Data)
	if err != nil {
		found("data directory", err)
		return findings
	}
	trust, err := dir.LoadTrust()
	found("trust file", err)
	uid := first(sample(done.EngineUIDs), done.EngineUID)
	if done.Engines == EnginesJobs {
		uid = done.EngineUID
	}
	if uid > 0 && os.Geteuid() == 0 {
		found(fmt.Sprintf("engine can be reached by user %d", uid), process.Reachable(done.Engine, uid, uid))
		found(fmt.Sprintf("data directory can be reached by user %d", uid), process.Reachable(dir.Path(), uid, uid))
	}
	if os.Geteuid() != 0 && done.Engines == EnginesProcess && done.Pod == nil && done.EngineUIDs != users.Off {
		findings = append(findings, Finding{What: "engines are kept apart by user namespaces", Warning: true, Err: tryNamespaces(done)})
	}
	if err == nil && trust.Recovery == nil {
		findings = append(findings, Finding{What: "recovery key", Warning: true,
			Err: errors.New("there is none: a lost disk loses all states and outputs; make one with berth-runner recovery new")})
	}
	if done.Kubeconfig != "" {
		_, err := cluster.File(done.Kubeconfig)(ctx, 0)
		found("kubeconfig "+done.Kubeconfig, err)
	}
	if trust.RunnerAPIURL != "" {
		found("control plane at "+trust.RunnerAPIURL, reach(ctx, trust, done.CAFile))
	}
	return findings
}

// tryNamespaces does what an agent that is not root does at its start to find out
// whether engines can be kept apart.
func tryNamespaces(cfg Config) error {
	tmp, err := os.MkdirTemp("", "berth-preflight-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	a := agent{cfg: cfg}
	if a.dir, err = datadir.At(tmp); err != nil {
		return err
	}
	return a.hideFromItself()
}

// reach asks for anything: that somebody answers is enough.
func reach(ctx context.Context, trust datadir.Trust, caFile string) error {
	client, err := control.NewHTTP(first(caFile, trust.PrivateCAFile))
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, trust.RunnerAPIURL+"/chain/head", nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
