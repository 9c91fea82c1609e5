package job

import (
	"context"
	"path/filepath"
	"strings"
	"sync"

	"github.com/berth-dev/berth/pkg/plugin"
	"github.com/berth-dev/berth/runner/agent/hostproxy"
	"github.com/berth-dev/berth/runner/agent/plugins"
)

// openHosts gives a plugin that may reach certain hosts its way there, the same one as
// before when an earlier agent had opened it. The job's log says what goes over it.
func (j *job) openHosts(life context.Context) error {
	hosts, err := plugins.Hosts(j.spec)
	if err != nil || len(hosts) == 0 {
		return err
	}
	iso := j.attempt.Isolation
	listener, err := hostproxy.Listen(filepath.Join(j.dir.Engine(), plugin.HostsSocket), iso.UID, iso.GID)
	if err != nil {
		return err
	}
	serve, cancel := context.WithCancel(life)
	proxy := hostproxy.New(hostproxy.Config{Hosts: hosts, Tell: j.tellOfHosts()})
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := proxy.Serve(serve, listener); err != nil {
			j.log.ErrorContext(life, "way to a plugin's hosts ended", "err", err)
		}
	})
	j.closeHosts = func() {
		cancel()
		serving.Wait()
	}
	return nil
}

// tellOfHosts adds lines to the log that are the agent's own, and stay here when the
// customer keeps log bodies back: the plugin has chosen the names in them.
func (j *job) tellOfHosts() func(string) {
	lines := &withheld{secrets: j.logs.secrets, withholding: j.logs.withholding, log: j.log}
	return func(line string) {
		if text := strings.TrimSuffix(string(lines.Bytes([]byte(line+"\n"))), "\n"); text != "" {
			j.remark(text)
		}
	}
}
