// Package toolchain fetches the Terraform that the runner's image does not
// carry, since its license forbids that. Nothing is trusted for where it came
// from: the digest of the archive is compiled in.
package toolchain

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/berth-dev/berth/pkg/tfprogram"
)

const (
	vendorSite = "https://releases.hashicorp.com/terraform"

	answerTimeout = 15 * time.Second // to the first byte
)

// pins are the SHA256 of the vendor's archives of [tfprogram.Version], by platform.
var pins = map[string]string{
	"linux/amd64": "1ce994251c00281d6845f0f268637ba50c0005657eb3cf096b92f753b42ef4dc",
	"linux/arm64": "a43d1d0da9b9bab214a8305a39db0e40869572594ccf50c416a7756499143633",
}

// ErrUntrusted says that what the site sent is not the archive that it should
// be. Nothing of it was unpacked.
var ErrUntrusted = errors.New("not the archive that this runner was made for")

// Source is where Terraform comes from. The zero value is the vendor's site,
// and the pins of this package.
type Source struct {
	Site   string
	Client *http.Client
	Pins   map[string]string // SHA256 in hex, by OS/ARCH
}

// Terraform returns the path of Terraform below dir, fetching it when it is not
// there. It may be called again; a process killed on the way leaves nothing
// that is taken for whole.
func (s Source) Terraform(ctx context.Context, dir string) (string, error) {
	target := filepath.Join(dir, "terraform", tfprogram.Version, "terraform")
	if info, err := os.Stat(target); err == nil && info.Mode().IsRegular() {
		return target, nil
	}
	s = s.withDefaults()
	platform := runtime.GOOS + "/" + runtime.GOARCH
	want, ok := s.Pins[platform]
	if !ok {
		return "", fmt.Errorf("no terraform %s is known for %s", tfprogram.Version, platform)
	}
	// Engines of other users run it.
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return "", err
	}
	url := fmt.Sprintf("%s/%s/terraform_%s_%s_%s.zip", s.Site, tfprogram.Version, tfprogram.Version, runtime.GOOS, runtime.GOARCH)
	archive := filepath.Join(filepath.Dir(target), ".archive")
	defer func() { _ = os.Remove(archive) }()
	got, err := s.download(ctx, url, archive)
	if err != nil {
		return "", err
	}
	if got != want {
		return "", fmt.Errorf("%s: %w: its SHA256 is %s, want %s", url, ErrUntrusted, got, want)
	}
	return target, tfprogram.Unpack(archive, target)
}

func (s Source) withDefaults() Source {
	if s.Site == "" {
		s.Site = vendorSite
	}
	if s.Client == nil {
		t := http.DefaultTransport.(*http.Transport).Clone() // keeps the proxy of the environment
		t.ResponseHeaderTimeout = answerTimeout
		s.Client = &http.Client{Transport: t}
	}
	if s.Pins == nil {
		s.Pins = pins
	}
	return s
}

// download writes what a URL holds to a file and returns its SHA256 in hex.
func (s Source) download(ctx context.Context, url, to string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := s.Client.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s answered %s", url, resp.Status)
	}
	file, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(file, sum), io.LimitReader(resp.Body, tfprogram.MaxBytes))
	if err = errors.Join(err, file.Close()); err != nil {
		return "", fmt.Errorf("%s: %w", url, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
