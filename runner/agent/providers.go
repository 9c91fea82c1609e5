package agent

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/berth-dev/berth/pkg/durable"
	"github.com/berth-dev/berth/runner/agent/mirrors"
	"github.com/berth-dev/berth/runner/agent/providers"
)

// provideProviders writes Terraform's configuration for the mirror of providers, where
// there is one. Engines read it and cannot write to it.
func (a *agent) provideProviders() error {
	if a.cfg.ProviderMirror == "" {
		return nil
	}
	text, err := mirrorConfig(a.cfg.ProviderMirror)
	if err != nil {
		return err
	}
	a.terraformConfig = filepath.Join(a.dir.Tools(), "cli", "terraform.rc")
	if err := os.MkdirAll(filepath.Dir(a.terraformConfig), 0o755); err != nil { // for engines of other users
		return err
	}
	return durable.WriteFile(a.terraformConfig, []byte(text), 0o644)
}

// providerCache is the runner's own cache of providers. There is none where the operator
// has one, where providers are in a directory already, and where engines are in pods,
// which do not see this machine's directories.
func (a *agent) providerCache() *providers.Cache {
	directory := a.cfg.ProviderMirror != "" && !strings.Contains(a.cfg.ProviderMirror, "://")
	if a.cfg.ProviderCache < 0 || directory || a.cfg.Engines == EnginesJobs || a.terraformConfig == "" && mirrors.HasCache() {
		return nil
	}
	return &providers.Cache{Dir: filepath.Join(a.dir.Tools(), "providers"), MaxBytes: a.cfg.ProviderCache, Now: a.cfg.Now}
}

// mirrorConfig has Terraform take all providers from a mirror: with a second way to get
// them it would ask that too, also for what the mirror has.
func mirrorConfig(mirror string) (string, error) {
	method, key := "filesystem_mirror", "path"
	if strings.Contains(mirror, "://") {
		method, key = "network_mirror", "url"
		mirror = strings.TrimSuffix(mirror, "/") + "/" // Terraform insists
	}
	quoted, err := json.Marshal(mirror)
	if err != nil {
		return "", err
	}
	literal := strings.NewReplacer("${", "$${", "%{", "%%{").Replace(string(quoted))
	return "provider_installation {\n  " + method + " {\n    " + key + " = " + literal + "\n  }\n}\n", nil
}
