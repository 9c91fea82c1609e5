// Package mirrors knows which mirrors and caches of Terraform's providers the operator
// named, in the agent's environment and in Terraform's own configuration.
package mirrors

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// Config is Terraform's own variable that names its configuration.
const Config = "TF_CLI_CONFIG_FILE"

// Cache is Terraform's own variable that names its cache of providers.
const Cache = "TF_PLUGIN_CACHE_DIR"

// HasCache tells whether the operator gave Terraform a cache.
func HasCache() bool { return terraformFiles().cache != "" }

// Those by which an operator gives it a cache of providers. The second lets it take from
// the cache what its lock file does not know.
const (
	terraformCache       = Cache
	terraformTrustsCache = "TF_PLUGIN_CACHE_MAY_BREAK_DEPENDENCY_LOCK_FILE"
)

// Settings are the agent's settings for Terraform, for its engines: NAME=VALUE, sorted.
func Settings() []string {
	var env []string
	for name, value := range map[string]string{
		Config: os.Getenv(Config), terraformCache: terraformFiles().cache, terraformTrustsCache: os.Getenv(terraformTrustsCache),
	} {
		if value != "" {
			env = append(env, name+"="+value)
		}
	}
	slices.Sort(env)
	return env
}

// EngineFiles are files and directories that engines read because the agent's
// environment names them, and those that Terraform's configuration does: its
// mirrors and its cache.
func EngineFiles() []string {
	var files []string
	for _, name := range []string{"SSL_CERT_FILE", "SSL_CERT_DIR", Config} {
		files = append(files, filepath.SplitList(os.Getenv(name))...)
	}
	named := terraformFiles()
	if named.cache != "" {
		files = append(files, named.cache)
	}
	return append(files, named.mirrors...)
}

// terraformNames are the directories that settings of Terraform name.
type terraformNames struct {
	mirrors []string
	cache   string // "" for none
}

// terraformFiles reads the settings. A configuration that cannot be read names
// nothing: Terraform says what is wrong with it.
func terraformFiles() terraformNames {
	config, _ := os.ReadFile(os.Getenv(Config))
	named := namedIn(string(config))
	if cache := os.Getenv(terraformCache); cache != "" {
		named.cache = cache
	}
	return named
}

var (
	comment          = regexp.MustCompile(`(?m)^\s*(#|//).*$`)
	filesystemMirror = regexp.MustCompile(`filesystem_mirror\s*\{[^}]*?\bpath\s*=\s*"([^"$]+)"`)
	pluginCache      = regexp.MustCompile(`(?m)^\s*plugin_cache_dir\s*=\s*"([^"$]+)"`)
)

// namedIn are the directories, as absolute paths, that a configuration names.
func namedIn(config string) (named terraformNames) {
	config = comment.ReplaceAllString(config, "")
	for _, found := range filesystemMirror.FindAllStringSubmatch(config, -1) {
		if filepath.IsAbs(found[1]) {
			named.mirrors = append(named.mirrors, filepath.Clean(found[1]))
		}
	}
	if found := pluginCache.FindStringSubmatch(config); found != nil && filepath.IsAbs(found[1]) {
		named.cache = filepath.Clean(found[1])
	}
	return named
}
