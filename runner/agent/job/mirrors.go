package job

import (
	"os"
	"path/filepath"
	"regexp"
)

// Terraform's own variables, by which an operator gives it mirrors and a cache of
// providers. The last one lets it take from the cache what its lock file does not
// know.
const (
	terraformConfig      = "TF_CLI_CONFIG_FILE"
	terraformCache       = "TF_PLUGIN_CACHE_DIR"
	terraformTrustsCache = "TF_PLUGIN_CACHE_MAY_BREAK_DEPENDENCY_LOCK_FILE"
)

// terraformSettings are the agent's settings for Terraform, for its engines.
func terraformSettings() []string {
	var env []string
	for name, value := range map[string]string{
		terraformConfig: os.Getenv(terraformConfig), terraformCache: terraformFiles().cache, terraformTrustsCache: os.Getenv(terraformTrustsCache),
	} {
		if value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// EngineFiles are files and directories that engines read because the agent's
// environment names them, and those that Terraform's configuration does: its
// mirrors and its cache.
func EngineFiles() []string {
	var files []string
	for _, name := range []string{"SSL_CERT_FILE", "SSL_CERT_DIR", terraformConfig} {
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
	config, _ := os.ReadFile(os.Getenv(terraformConfig))
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
