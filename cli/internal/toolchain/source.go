package toolchain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"

	"github.com/berth-dev/berth/pkg/tfprogram"
)

const (
	dialTimeout   = 10 * time.Second // a machine without a way out should hear of it soon
	answerTimeout = 15 * time.Second // to the first byte; the archive itself may take minutes
)

// A source has the vendor's files of a version: the archive, the list of
// checksums, and its signature. Its String is shown to people.
type source interface {
	fmt.Stringer
	tfprogram.Source
}

// siteSource is the vendor's site, or a copy of it with the same paths.
type siteSource struct {
	base   string
	client *http.Client
}

func newClient() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone() // keeps the proxy of the environment
	t.DialContext = (&net.Dialer{Timeout: dialTimeout}).DialContext
	t.ResponseHeaderTimeout = answerTimeout
	return &http.Client{Transport: t}
}

func (s siteSource) String() string { return s.base }

func (s siteSource) Open(ctx context.Context, version, name string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+"/"+version+"/"+name, nil)
	if err != nil {
		return nil, err
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%w: %w; %s", ErrUnavailable, err, remedy(version))
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("%w: %s answered %s; %s", ErrUnavailable, name, resp.Status, remedy(version))
	}
	return resp.Body, nil
}

// mirrorSource is a directory with the vendor's files. The list of checksums
// and its signature may also be called plainly SHA256SUMS and SHA256SUMS.sig.
type mirrorSource struct{ dir string }

func (m mirrorSource) String() string { return m.dir }

func (m mirrorSource) Open(_ context.Context, version, name string) (io.ReadCloser, error) {
	f, err := os.Open(filepath.Join(m.dir, name))
	if plain := strings.TrimPrefix(name, "terraform_"+version+"_"); errors.Is(err, os.ErrNotExist) && strings.HasPrefix(plain, "SHA256SUMS") {
		f, err = os.Open(filepath.Join(m.dir, plain))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: BERTH_TERRAFORM_MIRROR: %w", ErrUnavailable, err)
	}
	return f, nil
}

// version is TerraformVersion when the mirror has it, else the newest usable
// one that it has for this machine.
func (m mirrorSource) version() (string, error) {
	archives, err := filepath.Glob(filepath.Join(m.dir, tfprogram.Terraform.ArchiveName("*")))
	if err != nil {
		return "", err
	}
	prefix, suffix, _ := strings.Cut(tfprogram.Terraform.ArchiveName("*"), "*")
	best := semver.MustParse(MinTerraformVersion)
	found := false
	for _, archive := range archives {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(archive), prefix), suffix)
		v, err := semver.StrictNewVersion(name)
		if err != nil || v.LessThan(best) {
			continue
		}
		if best, found = v, true; name == TerraformVersion {
			break
		}
	}
	if !found {
		return "", fmt.Errorf("%w: BERTH_TERRAFORM_MIRROR %s has no %s or newer for this machine; %s",
			ErrUnavailable, m.dir, tfprogram.Terraform.ArchiveName(MinTerraformVersion), remedy(TerraformVersion))
	}
	return best.Original(), nil
}
