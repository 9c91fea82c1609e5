package job

import (
	"context"
	"path/filepath"
	"sync"

	"github.com/berth-dev/berth/pkg/plugin"
	"github.com/berth-dev/berth/runner/agent/hostproxy"
	"github.com/berth-dev/berth/runner/agent/plugins"
)

// openHosts gives a plugin that may reach certain hosts its way there, the same one as
// before when an earlier agent had opened it. What goes over it is told in the job's log.
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
	proxy := hostproxy.New(hostproxy.Config{Hosts: hosts, Tell: j.remark})
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
