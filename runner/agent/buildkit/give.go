package buildkit

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/modulekeys"
)

// Refusal is why a build cannot begin, with what to do about it.
type Refusal struct{ Message, Remedy string }

func (r *Refusal) Error() string { return r.Message }

func refuse(remedy, format string, args ...any) *Refusal {
	return &Refusal{Message: fmt.Sprintf(format, args...), Remedy: remedy}
}

// maxSecret bounds a build secret, in bytes; BuildKit takes no larger one.
const maxSecret = 500 << 10

// Give sees that there is a daemon for builds of the org, and puts into dir, which is
// in/build of the job, what docker asks for. It returns the environment of the engine. Its errors for
// people are of type *Refusal.
func (s *Service) Give(ctx context.Context, org, dir string, docker *jobspec.Docker) (env []string, err error) {
	if s == nil {
		return nil, refuse("", "only a Build Runner builds images")
	}
	if err := os.MkdirAll(filepath.Join(dir, "secrets"), 0o700); err != nil {
		return nil, err
	}
	for _, name := range docker.Secrets {
		value, err := s.secret(org, name)
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(dir, "secrets", name), value, 0o600); err != nil {
			return nil, err
		}
	}
	if err := s.credentials(org, dir); err != nil {
		return nil, err
	}
	address, err := s.daemon(ctx, org, dir)
	if err != nil {
		return nil, err
	}
	env = []string{"BERTH_BUILDKIT_ADDR=" + address, "BERTH_BUILDCTL=" + s.buildctl()}
	if s.cfg.Network == NetworkNone {
		env = append(env, "BERTH_BUILD_NETWORK="+NetworkNone)
	}
	return env, nil
}

// Hidden are the values among what Give put into dir that no log may show: a later
// agent asks again.
func Hidden(dir string) (values []string) {
	values = hiddenOfModules(dir)
	files, _ := filepath.Glob(filepath.Join(dir, "secrets", "*"))
	for _, file := range files {
		raw, _ := os.ReadFile(file)
		values = append(values, string(raw), strings.TrimSpace(string(raw)))
	}
	raw, _ := os.ReadFile(filepath.Join(dir, "config.json"))
	var docker dockerConfig
	_ = json.Unmarshal(raw, &docker) // Give wrote it
	for _, auth := range docker.Auths {
		for key, secret := range auth {
			if key == "username" || key == "email" {
				continue
			}
			values = append(values, secret)
			if raw, err := base64.StdEncoding.DecodeString(secret); err == nil && key == "auth" {
				_, password, _ := strings.Cut(string(raw), ":")
				values = append(values, password)
			}
		}
	}
	return slices.DeleteFunc(values, func(v string) bool { return v == "" })
}

// dockerConfig is what we take of Docker's config.json. Anything else in one would
// have buildctl start programs.
type dockerConfig struct {
	Auths map[string]map[string]string `json:"auths"`
}

// secret reads the value of a build secret. Each org has a directory of its own.
func (s *Service) secret(org, name string) ([]byte, error) {
	if !secretName.MatchString(name) {
		return nil, refuse("correct secrets", "%q cannot be the name of a build secret", name)
	}
	if name == modulekeys.File {
		return nil, refuse("correct secrets", "%q are the credentials of modules, and no build secret", name)
	}
	if s.cfg.Secrets == "" {
		return nil, refuse("ask the operator of this builder to set BERTH_BUILD_SECRETS, or remove it from secrets", "this builder has no build secrets, and %q is asked for", name)
	}
	file := filepath.Join(s.cfg.Secrets, org, "secrets", name)
	value, err := readPrivate(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, refuse("ask the operator of this builder to write it to "+file+", or remove it from secrets", "this builder has no build secret %q for this org", name)
	case err != nil:
		return nil, refuse("", "build secret %q: %v", name, err)
	}
	return value, nil
}

// readPrivate reads a file that not everybody may read. Kubernetes mounts secrets
// as links.
func readPrivate(file string) ([]byte, error) {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > maxSecret:
		return nil, fmt.Errorf("its file is none, or is larger than %d bytes", maxSecret)
	case info.Mode().Perm()&0o007 != 0:
		return nil, errors.New("its file may be read by everybody: chmod 600 it")
	}
	return os.ReadFile(file)
}

// credentials gives the job the org's credentials for base images, in the form of
// Docker's config.json.
func (s *Service) credentials(org, dir string) error {
	if s.cfg.Secrets == "" {
		return nil
	}
	text, err := readPrivate(filepath.Join(s.cfg.Secrets, org, "config.json"))
	if errors.Is(err, fs.ErrNotExist) { // Kubernetes mounts it as a directory of its own
		text, err = readPrivate(filepath.Join(s.cfg.Secrets, org, "registries", "config.json"))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return refuse("", "credentials of base images: %v", err)
	}
	var docker dockerConfig
	if json.Unmarshal(text, &docker) != nil { // its error may quote the file
		return refuse("write it as `docker login` does", "the credentials of base images are not what Docker's config.json is")
	}
	clean, err := json.Marshal(docker)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "config.json"), clean, 0o600)
}

// daemon is the address of the org's BuildKit, for an engine.
func (s *Service) daemon(ctx context.Context, org, dir string) (string, error) {
	if err := s.provideClient(); err != nil {
		return "", err
	}
	if s.cfg.Address == "" {
		return "unix://" + filepath.Join(s.cfg.Dir, "state", socket), s.start(ctx)
	}
	address := s.cfg.addressFor(org)
	if address == "" {
		return "", refuse("ask the operator of this builder for a BuildKit of this org's own", "the BuildKit of this builder is another org's")
	}
	if s.cfg.TLS == "" {
		return address, nil
	}
	if err := os.MkdirAll(filepath.Join(dir, "tls"), 0o700); err != nil {
		return "", err
	}
	for _, name := range []string{"ca.pem", "cert.pem", "key.pem"} {
		text, err := os.ReadFile(filepath.Join(s.cfg.TLS, name))
		if err != nil {
			return "", refuse("correct BERTH_BUILDKIT_TLS", "the keys for BuildKit: %v", err)
		}
		if err := os.WriteFile(filepath.Join(dir, "tls", name), text, 0o600); err != nil {
			return "", err
		}
	}
	return address, nil
}
