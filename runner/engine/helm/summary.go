package helm

import (
	"context"
	"fmt"
	"strings"

	"helm.sh/helm/v3/pkg/chart"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/documents"
	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/kube"
)

// write writes everything that a plan leaves behind.
func (p *planning) write(ctx context.Context) error {
	metadata := chart.Metadata{}
	if p.chart != nil {
		metadata = *p.chart.Metadata
	}
	err := job.WriteJSON(p.job.Out("pinned", pinnedFile), pinned{
		Format: pinnedFormat, Mode: p.mode, inputs: p.in,
		Chart: metadata, Sources: p.rendered.Sources, CRDs: crdFiles(p.rendered.CRDs), AllValues: p.rendered.Values,
		Manifest: p.rendered.Manifest, Hooks: p.hooks,
		Live: p.live, LastRevision: p.standing.last(), LastStatus: string(p.standing.lastStatus()),
		MovesFrom: p.movesFrom,
		Changes:   kube.Pin(p.changes),
	})
	if err != nil {
		return err
	}
	err = job.WriteJSON(p.job.Out("plan.canonical.json"), canonical{
		Mode: p.mode, Release: p.in.ReleaseName, Namespace: p.in.Namespace, CreateNamespace: p.in.CreateNamespace,
		StorageDriver: p.in.StorageDriver, MovesFrom: p.movesFrom, TakeOwnership: p.in.TakeOwnership, LiveRevision: p.live,
		CRDMode: p.in.CRDMode, MaxHistory: p.in.MaxHistory, Atomic: p.in.Atomic,
		Chart:  canonicalChart{metadata.Name, metadata.Version, metadata.AppVersion},
		Values: p.in.Values, Objects: p.objects, Hooks: p.hooks, CRDs: crdFiles(p.rendered.CRDs), Changes: p.changes,
	})
	if err != nil {
		return err
	}
	if err := job.WriteJSON(p.job.Out("inputs.json"), p.in); err != nil {
		return err
	}
	judged, err := p.documents()
	if err != nil {
		return err
	}
	if err := documents.Leave(p.job, judged); err != nil {
		return err
	}
	known, err := p.known(ctx)
	if err != nil {
		return err
	}
	if err := documents.LeaveKnown(p.job, known); err != nil {
		return err
	}
	return job.WriteJSON(p.job.Out("plan.summary.json"), p.summary())
}

// summary is what people are shown.
func (p *planning) summary() jobspec.PlanSummary {
	s := kube.Summarise(p.changes, p.job.Spec.DigestKey)
	s.NoChange = p.noChange
	if !p.noChange {
		s.Objects = append(s.Objects, p.releaseChange())
		s.Objects = append(s.Objects, hookChanges(p.hooks, p.mode, p.job.Spec.DigestKey)...)
	}
	if p.in.Atomic && p.mode == modeUpgrade && !p.noChange {
		p.notes = append(p.notes, putBackNote(p.live))
	}
	if about := p.standing.describe(); about != "" {
		p.notes = append(p.notes, fmt.Sprintf("release %s: %s", p.in.ReleaseName, about))
	}
	if !p.noChange {
		p.notes = append(p.notes, p.at.describe(p.in, p.movesFrom)...)
	}
	s.Text = p.text(s)
	return s
}

// releaseChange shows the release itself: what `helm list` will say.
func (p *planning) releaseChange() jobspec.ObjectChange {
	o := jobspec.ObjectChange{Address: "Release " + p.in.Namespace + "/" + p.in.ReleaseName, Action: string(p.mode), Reason: p.standing.describe()}
	field := func(path, before, after string) {
		if before != after {
			o.Fields = append(o.Fields, jobspec.FieldChange{Path: path, Before: before, After: after})
		}
	}
	var before, after [3]string
	if base := p.standing.Base; base != nil && base.Chart != nil && base.Chart.Metadata != nil {
		m := base.Chart.Metadata
		before = [3]string{m.Name, m.Version, m.AppVersion}
	}
	if p.mode != modeUninstall {
		after = [3]string{p.chart.Metadata.Name, p.chart.Metadata.Version, p.chart.Metadata.AppVersion}
	}
	for i, path := range []string{"chart.name", "chart.version", "chart.app_version"} {
		field(path, quoted(before[i]), quoted(after[i]))
	}
	if p.movesFrom != "" {
		field("storage_driver", quoted(p.movesFrom), quoted(p.in.StorageDriver))
	}
	return o
}

func quoted(s string) string {
	if s == "" {
		return ""
	}
	return fmt.Sprintf("%q", s)
}

// text is the plan in words: a line for each object, and what to know of it.
func (p *planning) text(s jobspec.PlanSummary) string {
	var b strings.Builder
	for _, o := range s.Objects {
		fmt.Fprintf(&b, "%s %s", o.Action, o.Address)
		if o.Reason != "" {
			fmt.Fprintf(&b, " (%s)", o.Reason)
		}
		b.WriteByte('\n')
	}
	if s.NoChange {
		b.WriteString("nothing to do\n")
	}
	for _, note := range p.notes {
		fmt.Fprintf(&b, "note: %s\n", note)
		p.job.Logf("note: %s", note)
	}
	return b.String()
}
