package engine_test

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// Of the scenes, those in which a person changed objects of the component, and those in which
// objects are gone. In all others nothing differs from what was deployed that anybody has to
// know of.
var (
	editedScenes = []string{
		"bad configuration", "command that is not there", "configuration edited, and still right", "image gone", "init container fails",
		"new image gone, the old pod still serves", "no node fits", "no node has so much", "rolled by hand", "scaled by hand", "scaled to nothing",
		"second replica does not fit next to the first", "Secret missing", "Service without an address", "volume missing",
	}
	goneScenes = []string{"account of the pods deleted", "configuration deleted", "Deployment deleted", "Service deleted"}
	// driftSlice are played in each run.
	driftSlice = []string{"Service deleted", "image gone", "nothing happens"}
)

// driftPlayed is what a look for drift made of a scene.
type driftPlayed struct{ name, want, class, why string }

// TestDriftOfCorpus holds looks for drift against the scenes of the fault corpus: what a person
// did is named with who did it, what is gone is found, and what controllers do is no drift.
func TestDriftOfCorpus(t *testing.T) {
	t.Parallel()
	image := misbehaving(t, deploy(t)) // skips without a cluster
	whole := os.Getenv("BERTH_FAULTS") == "all"
	var mu sync.Mutex
	var all []driftPlayed
	t.Run("scenes", func(t *testing.T) {
		for _, sc := range scenes() {
			if sc.alone || !whole && !slices.Contains(driftSlice, sc.name) {
				continue
			}
			t.Run(sc.name, func(t *testing.T) {
				t.Parallel()
				p := lookedForDrift(t, sc, image)
				mu.Lock()
				defer mu.Unlock()
				all = append(all, p)
			})
		}
	})
	slices.SortFunc(all, func(a, b driftPlayed) int { return cmp.Compare(a.name, b.name) })
	wrong := 0
	for _, p := range all {
		if p.class != p.want {
			wrong++
			t.Logf("%s: class %q, want %q: %s", p.name, p.class, p.want, p.why)
		}
	}
	if path := os.Getenv("BERTH_FAULTS_RECORD"); path != "" {
		if err := os.WriteFile(path+".drift.md", []byte(driftReport(all)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if wrong > 0 && !whole {
		t.Errorf("%d of %d scenes got a wrong class", wrong, len(all))
	}
}

// lookedForDrift plays a scene, and looks for drift as soon as controllers have done their part.
func lookedForDrift(t *testing.T, sc scene, image string) driftPlayed {
	t.Helper()
	s := &stage{deployed: deploy(t), image: image}
	s.state = withImage(image)
	if sc.before != nil {
		sc.before(t, s)
	}
	plan, _ := s.plan(t, strings.ReplaceAll(sc.manifest, "GROUP", s.namespace+".example.com"))
	apply := s.applyJob(t, plan)
	apply.spec.TimeoutSeconds = 240
	apply.must(t)
	if sc.inject != nil {
		sc.inject(t, s)
	}
	p := driftPlayed{name: sc.name}
	switch {
	case slices.Contains(editedScenes, sc.name):
		p.want = "human_edit"
	case slices.Contains(goneScenes, sc.name):
		p.want = "real"
	}
	time.Sleep(20 * time.Second)
	r := s.lookJob(t, plan).must(t)
	p.class = r.Drift.Class
	for _, object := range r.Drift.Objects {
		if object.Drifted && p.why == "" {
			p.why = strings.ReplaceAll(object.Address, s.namespace, "NS") + ": " + firstDrift(object)
		}
	}
	return p
}

func firstDrift(object jobspec.DriftObject) string {
	for _, d := range object.Differences {
		if d.Class == "human_edit" || d.Class == "real" {
			text := d.Path + ": " + d.Why
			if d.Manager != "" {
				text += " (" + d.Manager + ")"
			}
			return text
		}
	}
	return ""
}

// driftReport is the part of docs/reports/health-faults.md about drift.
func driftReport(all []driftPlayed) string {
	var b strings.Builder
	var tp, fp, fn, right int
	for _, p := range all {
		right += map[bool]int{true: 1}[p.class == p.want]
		switch {
		case p.want != "" && p.class != "":
			tp++
		case p.class != "":
			fp++
		case p.want != "":
			fn++
		}
	}
	fmt.Fprintf(&b, "\n## Drift\n\nThe same scenes, but for the cordoned node, and what a look for drift says 20 s later. %d of %d have the class that a person would give.\n\n", right, len(all))
	fmt.Fprintf(&b, "| | |\n|---|---|\n| precision of drift | %s (%d of %d) |\n| recall of drift | %s (%d of %d) |\n\n", share(tp, tp+fp), tp, tp+fp, share(tp, tp+fn), tp, tp+fn)
	b.WriteString("| scene | wanted | class | the first difference |\n|---|---|---|---|\n")
	for _, p := range all {
		if p.want == "" && p.class == "" {
			continue
		}
		mark := ""
		if p.class != p.want {
			mark = "**"
		}
		fmt.Fprintf(&b, "| %s | %s | %s%s%s | %s |\n", p.name, cmp.Or(p.want, "none"), mark, cmp.Or(p.class, "none"), mark, cell(p.why))
	}
	return b.String()
}
