package toolchain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/Masterminds/semver/v3"

	"github.com/berth-dev/berth/pkg/tfprogram"
)

const (
	// TerraformVersion is what is fetched when no Terraform is found.
	TerraformVersion = tfprogram.Version

	// MinTerraformVersion is the oldest that is accepted: modules use
	// terraform_data (1.4), and 1.5 is the last line under an open source
	// license, so the oldest that people have a reason to stay on.
	MinTerraformVersion = "1.5.0"

	// vendorSite is where the vendor publishes its releases.
	vendorSite = "https://releases.hashicorp.com/terraform"
)

var (
	// ErrUnavailable says that no usable Terraform was found and none could
	// be fetched; the message has the remedy.
	ErrUnavailable = errors.New("terraform is not available")

	// ErrUntrusted says that an archive was found but is not what the vendor
	// signed. Nothing of it was unpacked.
	ErrUntrusted = tfprogram.ErrUntrusted
)

// Options says where to look. The zero value looks on PATH, in the user's
// cache directory and on the vendor's site.
type Options struct {
	// Binary is used when set, or the call fails; BERTH_TERRAFORM.
	Binary string
	// Mirror is a directory with the vendor's archive, list of checksums and
	// signature, used instead of the vendor's site; BERTH_TERRAFORM_MIRROR.
	Mirror string
	// CacheDir keeps what was fetched. Default: berth in the user's cache
	// directory.
	CacheDir string
	// LookPath finds a program on PATH. Default: exec.LookPath.
	LookPath func(name string) (string, error)
	// Site is the vendor's site, by its base URL.
	Site string
	// Client fetches from Site. Default: one that gives up on a site that
	// does not answer within 15 s.
	Client *http.Client
	// Key is the armored public key to trust. Default: the vendor's.
	Key string
	// Progress receives one line about each thing that takes long. Default: none is sent.
	Progress func(line string)
}

// OptionsFromEnv fills the options that have an environment variable.
func OptionsFromEnv() Options {
	return Options{Binary: os.Getenv("BERTH_TERRAFORM"), Mirror: os.Getenv("BERTH_TERRAFORM_MIRROR")}
}

// EnsureTerraform returns the path of a Terraform that Berth can use, fetching
// one only when none is found: Options.Binary, PATH, what was fetched earlier,
// the mirror, the vendor's site. It may be called again, and by several
// processes at once.
func EnsureTerraform(ctx context.Context, o Options) (string, error) {
	o, err := o.withDefaults()
	if err != nil {
		return "", err
	}
	if o.Binary != "" {
		if err := checkVersion(ctx, o.Binary); err != nil {
			return "", fmt.Errorf("%w: BERTH_TERRAFORM: %w", ErrUnavailable, err)
		}
		return o.Binary, nil
	}
	if found, err := o.LookPath("terraform"); err == nil {
		err := checkVersion(ctx, found)
		if err == nil {
			return found, nil
		}
		o.Progress(fmt.Sprintf("not using %s: %v", found, err))
	}

	var src source = siteSource{base: o.Site, client: o.Client}
	version := TerraformVersion
	if o.Mirror != "" {
		mirror := mirrorSource{dir: o.Mirror}
		src = mirror
		if version, err = mirror.version(); err != nil {
			return "", err
		}
	}
	target := filepath.Join(o.CacheDir, "terraform", version, "terraform")
	if info, err := os.Stat(target); err == nil && info.Mode().IsRegular() {
		return target, nil
	}
	o.Progress(fmt.Sprintf("fetching terraform %s from %s", version, src))
	if err := (tfprogram.Release{Of: tfprogram.Terraform, From: src, Version: version, Key: o.Key}).Fetch(ctx, target); err != nil {
		return "", fmt.Errorf("fetch terraform %s from %s: %w", version, src, err)
	}
	return target, nil
}

func (o Options) withDefaults() (Options, error) {
	if o.CacheDir == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			return o, fmt.Errorf("find a cache directory: %w", err)
		}
		o.CacheDir = filepath.Join(dir, "berth")
	}
	if o.LookPath == nil {
		o.LookPath = exec.LookPath
	}
	if o.Site == "" {
		o.Site = vendorSite
	}
	if o.Client == nil {
		o.Client = newClient()
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	return o, nil
}

// checkVersion asks the program which version it is.
func checkVersion(ctx context.Context, path string) error {
	cmd := exec.CommandContext(ctx, path, "version", "-json")
	cmd.Env = append(os.Environ(), "CHECKPOINT_DISABLE=1", "TF_CLI_ARGS=", "TF_CLI_ARGS_version=")
	raw, err := cmd.Output()
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no %s", path)
	}
	if err != nil {
		return fmt.Errorf("%s version: %w", path, err)
	}
	var answer struct {
		Version string `json:"terraform_version"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return fmt.Errorf("%s version: not terraform: %w", path, err)
	}
	v, err := semver.NewVersion(answer.Version)
	if err != nil {
		return fmt.Errorf("%s version: %q: %w", path, answer.Version, err)
	}
	if v.LessThan(semver.MustParse(MinTerraformVersion)) {
		return fmt.Errorf("%s is version %s; %s or newer is needed", path, v, MinTerraformVersion)
	}
	return nil
}

// remedy is what a person can do when nothing can be fetched.
func remedy(version string) string {
	return fmt.Sprintf("install terraform %s or newer, or set BERTH_TERRAFORM to it, or set BERTH_TERRAFORM_MIRROR to a directory with %s, terraform_%s_SHA256SUMS and terraform_%s_SHA256SUMS.sig",
		MinTerraformVersion, tfprogram.Terraform.ArchiveName(version), version, version)
}
