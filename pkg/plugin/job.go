package plugin

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// searchPath is the PATH of plugins.
const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// WriteJob fills the job directory of a plugin: job.json, and for a plan each key
// of the config as a file of its own in in/config/, so that a shell script needs no
// parser. An apply gets no config: what it does is in in/pinned/, which the caller
// provides. The state of the install is never part of it.
func WriteJob(dir string, spec jobspec.Spec) error {
	spec.State, spec.StateVersion = nil, 0
	for _, name := range []string{"in", "work/home", "work/tmp", "out"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			return err
		}
	}
	given := jobspec.Plugin{}
	if spec.Plugin != nil {
		given = *spec.Plugin
	}
	if spec.Operation == jobspec.OperationApply {
		given.Config = nil
	}
	spec.Plugin = &given
	if err := writeConfig(filepath.Join(dir, "in", "config"), given.Config); err != nil {
		return err
	}
	raw, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "job.json"), raw, 0o400)
}

func writeConfig(dir string, config map[string]any) error {
	if config == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for name, value := range config {
		raw, isText := []byte(nil), false
		if text, ok := value.(string); ok {
			raw, isText = []byte(text), true
		}
		if !isText {
			if raw, err = json.Marshal(value); err != nil {
				return err
			}
		}
		if err := root.WriteFile(name, raw, 0o400); err != nil {
			return errors.Join(errors.New("write config key "+strconv.Quote(name)), err)
		}
	}
	return nil
}

// HostsSocket is where the engine of a plugin that may reach certain hosts finds the way
// there, in the directory of its own job. It speaks as an HTTP proxy.
const HostsSocket = "in/hosts.sock"

// ProxyEnv is how a plugin finds the way to its hosts: an HTTP proxy at an address of its
// own loopback, under the names that programs look at.
func ProxyEnv(address string) []string {
	var env []string
	for _, name := range []string{"HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"} {
		env = append(env, name+"=http://"+address)
	}
	return env
}

// Dirs are the directories of a plugin's job. Install and State are "" unless it
// may use them.
type Dirs struct {
	Job, Install, State string
}

// Environ is all that a plugin gets of an environment.
func Environ(dirs Dirs, spec jobspec.Spec) []string {
	env := []string{
		"PATH=" + searchPath,
		"HOME=" + filepath.Join(dirs.Job, "work", "home"),
		"TMPDIR=" + filepath.Join(dirs.Job, "work", "tmp"),
		"LANG=C.UTF-8",
		"BERTH_CONTRACT=" + strconv.Itoa(spec.Version),
		"BERTH_OPERATION=" + string(spec.Operation),
		"BERTH_DESTROY=" + strconv.FormatBool(spec.Destroy),
		"BERTH_INSTALL_ID=" + spec.InstallID,
	}
	if spec.Resource != nil {
		env = append(env, "BERTH_COMPONENT_NAME="+spec.Resource.Name)
	}
	if dirs.Install != "" {
		env = append(env, "BERTH_INSTALL_DIR="+dirs.Install)
	}
	if dirs.State != "" {
		env = append(env, "BERTH_STATE_DIR="+dirs.State)
	}
	return env
}
