package job

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/interpolate"
	"github.com/berth-dev/berth/pkg/jobspec"
)

// passed are the variables of the engine's own environment that tools and
// scripts get too: where things are, and the way out of the customer's network.
var passed = []string{
	"PATH", "LANG", "LC_ALL", "TZ", "BERTH_INSTALL_DIR", "TRACEPARENT",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR",
}

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// BaseEnv is the environment that every tool and script starts from: a few
// variables of the engine's own, HOME and TMPDIR below work/, and the names of
// the install as NUON_* and BERTH_*. Nothing else of the engine's gets through.
func (j *Job) BaseEnv() (map[string]string, error) {
	env := map[string]string{"PATH": defaultPath}
	for _, name := range passed {
		if v := j.Env[name]; v != "" {
			env[name] = v
		}
	}
	for name, dir := range map[string]string{"HOME": j.Work("home"), "TMPDIR": j.Work("tmp")} {
		if given := j.Env[name]; strings.HasPrefix(given, j.Work()) {
			dir = given
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		env[name] = dir
	}
	names, err := j.names()
	if err != nil {
		return nil, err
	}
	names["ORG_ID"], names["INSTALL_ID"], names["JOB_ID"] = j.Spec.OrgID, j.Spec.InstallID, j.Spec.JobID
	if r := j.Spec.Resource; r != nil && r.Kind == "component" {
		names["COMPONENT_NAME"] = r.Name
	}
	if a := j.Spec.Action; a != nil {
		names["ACTION_NAME"] = a.Name
	}
	Named(env, names)
	return env, nil
}

// namesFile is what a plan keeps of the state for the environment of its apply,
// which gets no state.
const namesFile = "names.json"

// names are the variables that come from the state: for an apply from the one
// that its plan was made with.
func (j *Job) names() (map[string]string, error) {
	names := map[string]string{}
	if j.Spec.Operation == jobspec.OperationApply {
		if err := ReadJSON(j.In("pinned", namesFile), &names); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, Refusef("plan again", "what the plan pinned cannot be read: %v", err)
		}
		return names, nil
	}
	state, err := j.State()
	if err != nil {
		return nil, err
	}
	names["INSTALL_NAME"], names["APP_ID"], names["APP_NAME"] = lookup(state, "name"), lookup(state, "app", "id"), lookup(state, "app", "name")
	return names, nil
}

// PinNames completes what a plan pinned, if it did, with what the environment of
// its apply needs of the state.
func (j *Job) PinNames() error {
	if _, err := os.Stat(j.Out("pinned")); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	names, err := j.names()
	if err != nil {
		return err
	}
	return WriteJSON(j.Out("pinned", namesFile), names)
}

// Named adds variables under both prefixes, NUON_ and BERTH_. Empty ones are
// left out.
func Named(env, names map[string]string) {
	for name, value := range names {
		if value != "" {
			env["NUON_"+name] = value
			env["BERTH_"+name] = value
		}
	}
}

// Environ lists an environment as processes take it, sorted.
func Environ(env map[string]string) []string {
	list := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}

// lookup reads a string of the tree that templates read; "" when it is absent.
func lookup(state interpolate.State, path ...string) string {
	at := state["nuon"]
	for _, key := range path {
		m, _ := at.(map[string]any)
		at = m[key]
	}
	s, _ := at.(string)
	return s
}
