package toolchain

import (
	"os"
	"path/filepath"
	"regexp"
)

// Terraform's own variables, by which an operator gives it mirrors and a cache of
// providers. The last one lets it take from the cache what its lock file does not
// know.
const (
	ConfigVariable      = "TF_CLI_CONFIG_FILE"
	cacheVariable       = "TF_PLUGIN_CACHE_DIR"
	trustsCacheVariable = "TF_PLUGIN_CACHE_MAY_BREAK_DEPENDENCY_LOCK_FILE"
)

// Settings are the agent's settings for Terraform, for its engines.
func Settings() []string {
	var env []string
	for name, value := range map[string]string{
		ConfigVariable: os.Getenv(ConfigVariable), cacheVariable: namedFiles().cache, trustsCacheVariable: os.Getenv(trustsCacheVariable),
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
	for _, name := range []string{"SSL_CERT_FILE", "SSL_CERT_DIR", ConfigVariable} {
		files = append(files, filepath.SplitList(os.Getenv(name))...)
	}
	named := namedFiles()
	if named.cache != "" {
		files = append(files, named.cache)
	}
	return append(files, named.mirrors...)
}

// names are the directories that settings of Terraform name.
type names struct {
	mirrors []string
	cache   string // "" for none
}

// namedFiles reads the settings. A configuration that cannot be read names
// nothing: Terraform says what is wrong with it.
func namedFiles() names {
	config, _ := os.ReadFile(os.Getenv(ConfigVariable))
	named := namedIn(string(config))
	if cache := os.Getenv(cacheVariable); cache != "" {
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
func namedIn(config string) (named names) {
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
