package manifest

import (
	"errors"
	"io/fs"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/berth-dev/berth/pkg/footprint"
	"github.com/berth-dev/berth/runner/engine/documents"
	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/kube"
)

// intent is what a manifest wants and what is done for it, without what differs
// between two plans of the same thing: the canonical plan. It holds values in
// clear.
type intent struct {
	Namespace       string                       `json:"namespace"`
	CreateNamespace bool                         `json:"create_namespace"`
	Destroy         bool                         `json:"destroy"`
	FieldManager    string                       `json:"field_manager"`
	Objects         []*unstructured.Unstructured `json:"objects"` // in the order of applying
	Changes         []kube.Change                `json:"changes"`
}

// pinned is pinned/manifest.json: all that an apply needs.
type pinned struct {
	Format          int                          `json:"format"`
	Namespace       string                       `json:"namespace"`
	CreateNamespace bool                         `json:"create_namespace"`
	Destroy         bool                         `json:"destroy"`
	Objects         []*unstructured.Unstructured `json:"objects"`
	Changes         []kube.Pinned                `json:"changes"`
}

const (
	pinnedFormat = 1
	pinnedFile   = "manifest.json"
)

// readPinned reads what a plan pinned.
func readPinned(j *job.Job) (pinned, error) {
	var p pinned
	if err := job.ReadJSON(j.In("pinned", pinnedFile), &p); err != nil {
		return p, job.Refusef("plan again", "what the plan pinned cannot be read: %v", err)
	}
	if p.Format != pinnedFormat {
		return p, job.Refusef("plan again", "what the plan pinned has format %d, this engine knows %d", p.Format, pinnedFormat)
	}
	return p, nil
}

// previous are the changes of the plan that this one follows, if its outcome is
// uncertain and it is still there. One of another kind of plan helps nothing.
func previous(j *job.Job, namespace string) []kube.Change {
	var p pinned
	err := job.ReadJSON(j.In("previous", pinnedFile), &p)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		j.Logf("what the change before pinned cannot be read, so this plan starts from what is there: %v", err)
		return nil
	case p.Format != pinnedFormat || p.Destroy != j.Spec.Destroy || p.Namespace != namespace:
		return nil
	}
	return kube.Unpin(p.Changes)
}

// write writes everything that a plan leaves for the agent. known is for its footprint.
func (w intent) write(j *job.Job, rendered inputs, known footprint.Known) error {
	summary := kube.Summarise(w.Changes, j.Spec.DigestKey)
	judged, err := kube.Documents(j, w.Changes, w.Objects)
	return errors.Join(
		err,
		documents.Leave(j, judged),
		os.MkdirAll(j.Out("pinned"), 0o700),
		documents.LeaveKnown(j, known),
		job.WriteJSON(j.Out("pinned", pinnedFile), pinned{
			Format: pinnedFormat, Namespace: w.Namespace, CreateNamespace: w.CreateNamespace, Destroy: w.Destroy,
			Objects: w.Objects, Changes: kube.Pin(w.Changes),
		}),
		job.WriteJSON(j.Out("plan.canonical.json"), w),
		job.WriteJSON(j.Out("plan.summary.json"), summary),
		job.WriteJSON(j.Out("inputs.json"), rendered),
	)
}

// inputs are what was rendered. They may hold secrets.
type inputs struct {
	Namespace string `json:"namespace"`
	Manifest  string `json:"manifest,omitempty"` // none for a teardown
}
