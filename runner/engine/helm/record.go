package helm

import (
	"cmp"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"

	"github.com/berth-dev/berth/pkg/helmstate"
	"github.com/berth-dev/berth/runner/engine/job"
)

const (
	// maxRecord is how many bytes of data the API server takes in one ConfigMap
	// or Secret, which is where Helm's drivers keep one revision of a release.
	maxRecord = corev1.MaxSecretSize
	// recordReserve is for what a plan cannot know of a record, in bytes: the
	// times of hooks, and the error of an apply that fails.
	recordReserve = 8 << 10
)

// record is a release as it is stored. The templates and files of a literal
// chart only serve the action that installs it: they hold the manifest a second
// time, and the CRDs of all subcharts. Helm stores neither, and reads no
// template of a stored release. Releases that somebody made with Helm itself
// stay as they are.
func record(r *release.Release) *release.Release {
	if r.Labels[labelChange] == "" || r.Chart == nil {
		return r
	}
	stored := *r
	stored.Chart = &chart.Chart{Metadata: r.Chart.Metadata, Values: r.Chart.Values}
	return &stored
}

// record is what the planned apply will store, as far as that is known.
func (p *planning) record() *release.Release {
	return record(&release.Release{
		Name: p.in.ReleaseName, Namespace: p.in.Namespace, Version: p.standing.last() + 1,
		Chart:  &chart.Chart{Metadata: p.chart.Metadata, Values: p.rendered.Values},
		Config: p.in.Values, Manifest: p.rendered.Manifest, Hooks: p.rendered.Hooks,
		Info:   &release.Info{Status: release.StatusDeployed, Notes: p.rendered.Notes},
		Labels: map[string]string{labelChange: p.job.Spec.ChangeID},
	})
}

// recordSize is how many bytes a record takes: Helm's drivers store JSON, packed
// by gzip and written in base64.
func recordSize(r *release.Release) (int, error) {
	var packed counter
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return 0, err
	}
	if err := json.NewEncoder(w).Encode(r); err != nil {
		return 0, err
	}
	if err := w.Close(); err != nil {
		return 0, err
	}
	return base64.StdEncoding.EncodedLen(int(packed)), nil
}

// counter is a writer that only counts.
type counter int

func (c *counter) Write(p []byte) (int, error) { *c += counter(len(p)); return len(p), nil }

// fits fails when the release would be too large to be stored, which an apply
// would only find out after it has made the CRDs.
func (p *planning) fits() error {
	size, err := recordSize(p.record())
	if err != nil {
		return fmt.Errorf("measure the record of release %s: %w", p.in.ReleaseName, err)
	}
	if p.in.StorageDriver == driverHeld {
		return p.fitsHeld(size + recordReserve)
	}
	if err := p.fitsMoved(); err != nil {
		return err
	}
	if size+recordReserve <= maxRecord {
		return nil
	}
	return job.Wrongf("switch parts of the chart off by its values, or take its CRDs or dashboards out of it into a component of type kubernetes_manifest",
		"release %s is too large to be stored: its record has %s, and Kubernetes takes %s in one object; the largest templates of the chart are %s",
		p.in.ReleaseName, kib(size+recordReserve), kib(maxRecord), strings.Join(largest(p.rendered.Sources, 3), ", "))
}

// fitsHeld is the same where the control plane keeps all revisions, as one document.
func (p *planning) fitsHeld(size int) error {
	kept := cmp.Or(p.in.MaxHistory, maxHistory)
	all := size + p.held.Size(p.in.Namespace, p.in.ReleaseName, kept)
	if p.movesFrom != "" {
		for _, r := range p.at.history {
			moved, err := recordSize(r)
			if err != nil {
				return fmt.Errorf("measure revision %d of release %s: %w", r.Version, r.Name, err)
			}
			all += moved + recordReserve
		}
	}
	if all <= helmstate.MaxBytes {
		return nil
	}
	return job.Wrongf("lower history_limit, or switch parts of the chart off by its values",
		"release %s is too large to be kept: its last %d revisions have %s, and the control plane takes %s; the largest templates of the chart are %s",
		p.in.ReleaseName, kept, kib(all), kib(helmstate.MaxBytes), strings.Join(largest(p.rendered.Sources, 3), ", "))
}

// fitsMoved fails when a revision that moves into the cluster is too large for it.
func (p *planning) fitsMoved() error {
	if p.movesFrom == "" {
		return nil
	}
	for _, r := range p.at.history {
		size, err := recordSize(record(r))
		if err != nil {
			return fmt.Errorf("measure revision %d of release %s: %w", r.Version, r.Name, err)
		}
		if size > maxRecord {
			return job.Wrongf(fmt.Sprintf("keep storage_driver = %q", p.movesFrom),
				"revision %d of release %s cannot move into the cluster: its record has %s, and Kubernetes takes %s in one object", r.Version, r.Name, kib(size), kib(maxRecord))
		}
	}
	return nil
}

// largest names the n largest sources, with what they rendered to.
func largest(sources map[string]string, n int) []string {
	names := slices.SortedFunc(maps.Keys(sources), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(sources[b]), len(sources[a])), cmp.Compare(a, b))
	})
	names = names[:min(n, len(names))]
	for i, name := range names {
		names[i] = fmt.Sprintf("%s (%s rendered)", name, kib(len(sources[name])))
	}
	return names
}

func kib(bytes int) string { return fmt.Sprintf("%d KiB", (bytes+1023)/1024) }
