package build

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
)

// unpack unpacks a chart of a chart repository and returns its directory. Helm's
// own unpacking refuses what leads out of it and what is too large.
func unpack(j *job.Job) (string, error) {
	want := j.Spec.Source.Chart
	packed := filepath.Join(j.In("source"), jobspec.ChartFile)
	if err := checkDigest(packed, want.Digest); err != nil {
		return "", job.Refusef("sync again", "%s: %v", describe(j.Spec.Source), err)
	}
	c, err := loader.LoadFile(packed)
	if err != nil {
		return "", job.Wrongf(correct(j, "helm_repo"), "%s cannot be unpacked: %v", describe(j.Spec.Source), err)
	}
	if c.Name() != want.Name || checkVersion(c, want.Version) != nil {
		return "", job.Wrongf(correct(j, "helm_repo"), "%s: what the repository gives is chart %s %s", describe(j.Spec.Source), c.Name(), c.Metadata.Version)
	}
	if want.Before != "" {
		j.Logf("note: version %s of chart %s is another chart than before: it was %s, its repository replaced it by %s", want.Version, want.Name, want.Before, want.Digest)
	}
	dir := j.Work("chart")
	if err := chartutil.ExpandFile(dir, packed); err != nil {
		return "", job.Wrongf(correct(j, "helm_repo"), "%s cannot be unpacked: %v", describe(j.Spec.Source), err)
	}
	j.Logf("chart %s %s, asked for as %q, digest %s, from %s", want.Name, want.Version, j.Spec.Source.Ref, want.Digest, withoutCredentials(j.Spec.Source.Repo))
	return filepath.Join(dir, c.Name()), nil
}

func checkDigest(file, want string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return err
	}
	if got := "sha256:" + hex.EncodeToString(hash.Sum(nil)); got != want {
		return fmt.Errorf("the packed chart has the digest %s instead of %s", got, want)
	}
	return nil
}
