package up

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	// firstRegistry is how far the ports of registries are from the first of
	// the four. They lie in a row, below those that the system gives away.
	firstRegistry = 100

	// registryPorts is how many are tried.
	registryPorts = 400

	registryGrace = 15 * time.Second // pulls under way end
)

// runnerKindInstall are the runners that work in an install; the others build.
const runnerKindInstall = "install"

// chooseCluster decides which kubeconfig local installs get. One that was named
// before stays until another is named: a shell with another KUBECONFIG must not
// move installs to another cluster.
func (s *supervisor) chooseCluster(ctx context.Context) error {
	if named := s.Kubeconfig; named != nil && *named != "" {
		path, err := filepath.Abs(*named)
		if err != nil {
			return err
		}
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			return problem(err, "name the file by which kubectl reaches the cluster", "--kubeconfig: there is no file %s", path)
		}
		s.cluster = path
	} else if named == nil {
		s.cluster = kubeconfigOf(s.ledger.read().Kubeconfig, s.Getenv("KUBECONFIG"))
	}
	if s.cluster != "" {
		s.Say("  cluster       the one of " + s.cluster + ", for local installs; --kubeconfig names another")
	}
	return s.ledger.change(func(st *State) {
		st.Kubeconfig = s.cluster
		for id, r := range st.Runners {
			s.giveRegistry(ctx, st, &r)
			st.Runners[id] = r
		}
	})
}

// onCluster tells whether a runner works on the cluster of local installs.
func (s *supervisor) onCluster(r RunnerRecord) bool {
	return s.cluster != "" && r.Kind == runnerKindInstall
}

// hasRegistry tells whether a registry of its own is served for a runner.
func (s *supervisor) hasRegistry(r RunnerRecord) bool { return s.onCluster(r) && r.RegistryPort != 0 }

// giveRegistry chooses the port of an install's registry, once.
func (s *supervisor) giveRegistry(ctx context.Context, st *State, r *RunnerRecord) {
	if !s.onCluster(*r) || r.RegistryPort != 0 {
		return
	}
	taken := map[int]bool{}
	for _, other := range st.Runners {
		taken[other.RegistryPort] = true
	}
	for port := s.Port + firstRegistry; port < s.Port+firstRegistry+registryPorts; port++ {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", onLoopback(port))
		if taken[port] || err != nil {
			if err == nil {
				_ = listener.Close()
			}
			continue
		}
		_ = listener.Close()
		r.RegistryPort = port
		return
	}
	s.Say("! no port is free for the registry of " + r.Name + ": its images cannot be pulled; set BERTH_PORT to another range")
}

// registryPart gives the images of an install to the kubelets of this machine.
func (s *supervisor) registryPart(id string, r RunnerRecord) Part {
	return Part{
		Name:   "registry " + r.Name,
		Path:   filepath.Join(s.around.runners, exeRunner),
		Args:   []string{"registry", "--data", s.Layout.runnerDir(id), "--listen", onLoopback(r.RegistryPort)},
		Env:    s.around.env(map[string]string{}),
		Dir:    s.Layout.Shared,
		Log:    s.Layout.LogFile("registry-" + id),
		Polite: syscall.SIGTERM,
		Grace:  registryGrace,
		Ready:  answersAt(URL(r.RegistryPort), "/v2/"),
		Order:  runnerOrder,
	}
}

// kubeconfigOf is the file to use when none is named: the one of earlier starts
// as long as it is there, else the one of the environment.
func kubeconfigOf(before, environment string) string {
	if before != "" && fileExists(before) {
		return before
	}
	if list := filepath.SplitList(environment); len(list) == 1 && filepath.IsAbs(list[0]) && fileExists(list[0]) {
		return list[0]
	}
	return before
}
