package job

import (
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/interpolate"
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
	state, err := j.State()
	if err != nil {
		return nil, err
	}
	names := map[string]string{
		"ORG_ID":       j.Spec.OrgID,
		"INSTALL_ID":   j.Spec.InstallID,
		"INSTALL_NAME": lookup(state, "name"),
		"APP_ID":       lookup(state, "app", "id"),
		"APP_NAME":     lookup(state, "app", "name"),
		"JOB_ID":       j.Spec.JobID,
	}
	if r := j.Spec.Resource; r != nil && r.Kind == "component" {
		names["COMPONENT_NAME"] = r.Name
	}
	if a := j.Spec.Action; a != nil {
		names["ACTION_NAME"] = a.Name
	}
	Named(env, names)
	return env, nil
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
