package kube

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
)

// Labels and annotations of what we keep in a cluster.
const (
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// LabelInventory is on inventories; its value is the kind of the component.
	LabelInventory      = "berth.dev/inventory"
	AnnotationFence     = "berth.dev/fence"
	AnnotationInstall   = "berth.dev/install"
	AnnotationComponent = "berth.dev/component"
)

// maxName is what label values and most names may have at most, in bytes.
const maxName = 63

// Inventory is the record of a component in its namespace, a ConfigMap: which
// objects are of it, and the highest fence that was granted for it. Methods
// must not be called concurrently.
type Inventory struct {
	Kind      jobspec.Kind
	Component string
	Install   string
	Namespace string

	cluster *Cluster
	fence   int64 // claimed
}

// Record is what an inventory holds.
type Record struct {
	Exists  bool
	Fence   int64
	Objects []Ref
}

// InventoryOf is the inventory of the component that a job is about.
func (c *Cluster) InventoryOf(j *job.Job, namespace string) *Inventory {
	return &Inventory{
		cluster: c, Kind: j.Spec.Kind, Component: j.Spec.Resource.Name,
		Install: j.Spec.InstallID, Namespace: namespace,
	}
}

// Name is the name of the ConfigMap: berth-kubernetes-manifest-web. A component
// whose name is none for Kubernetes gets a digest at its end.
func (i *Inventory) Name() string {
	plain := "berth-" + string(i.Kind) + "-" + i.Component
	name := strings.ReplaceAll("berth-"+string(i.Kind), "_", "-") + "-" + strings.ToLower(strings.ReplaceAll(i.Component, "_", "-"))
	if strings.HasSuffix(name, "-"+i.Component) && len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(plain))
	return name[:min(len(name), maxName-9)] + "-" + hex.EncodeToString(sum[:4])
}

// Ref names the ConfigMap.
func (i *Inventory) Ref() Ref {
	return Ref{Version: "v1", Kind: "ConfigMap", Namespace: i.Namespace, Name: i.Name()}
}

// Load reads it. Nothing is there before the first apply, which is no error. It
// refuses the record of another install.
func (i *Inventory) Load(ctx context.Context) (Record, error) {
	_, record, err := i.read(ctx)
	return record, err
}

// Claim writes our fence into it, by compare-and-set, and makes it when it is
// not there; its namespace must be. A higher fence in it is refused: there is a
// newer order. Calling it twice with one fence is fine.
func (i *Inventory) Claim(ctx context.Context, fence int64) (Record, error) {
	if fence <= 0 {
		return Record{}, job.Refusef("run a newer runner", "the order to change %s carries no fence", i.Component)
	}
	var record Record
	err := i.write(ctx, func(found *corev1.ConfigMap, r Record) error {
		if record = r; r.Fence > fence {
			return i.outrun(jobspec.OutcomeRefused, fence, r.Fence)
		}
		found.Annotations[AnnotationFence] = strconv.FormatInt(fence, 10)
		return nil
	})
	if err != nil {
		return Record{}, err
	}
	i.fence, record.Fence, record.Exists = fence, fence, true
	return record, nil
}

// Held is asked before each write: it fails when the claim is no longer ours.
func (i *Inventory) Held(ctx context.Context) error {
	_, record, err := i.read(ctx)
	if err != nil {
		return err
	}
	return i.held(record)
}

func (i *Inventory) held(r Record) error {
	if i.fence == 0 || r.Fence != i.fence {
		return i.outrun(jobspec.OutcomeFailed, i.fence, r.Fence)
	}
	return nil
}

// outrun is the failure of an order that is not the newest.
func (i *Inventory) outrun(outcome jobspec.Outcome, ours, stored int64) error {
	f := &job.Failure{
		Outcome: outcome,
		Message: fmt.Sprintf("this order to change %s is not the newest: its fence is %d, the cluster has %d", i.Component, ours, stored),
		Remedy:  "look at the newer change of it",
	}
	return f.Differing("fence", strconv.FormatInt(ours, 10), strconv.FormatInt(stored, 10))
}

// Save records the objects of the component, if the claim is still ours.
func (i *Inventory) Save(ctx context.Context, objects []Ref) error {
	data, err := job.Marshal(objects)
	if err != nil {
		return err
	}
	return i.write(ctx, func(found *corev1.ConfigMap, r Record) error {
		found.Data = map[string]string{objectsKey: string(data)}
		return i.held(r)
	})
}

// Keep records the objects of the component, unless the record says so already.
func (i *Inventory) Keep(ctx context.Context, r *Record, objects []Ref) error {
	if slices.Equal(objects, r.Objects) {
		return nil
	}
	if err := i.Save(ctx, objects); err != nil {
		return err
	}
	r.Objects = objects
	return nil
}

// Delete removes it, at the end of a teardown, if the claim is still ours. One
// that is gone is no error.
func (i *Inventory) Delete(ctx context.Context) error {
	remove := func() error {
		found, record, err := i.read(ctx)
		if err != nil || !record.Exists {
			return err
		}
		if err := i.held(record); err != nil {
			return err
		}
		err = i.cluster.Client.CoreV1().ConfigMaps(i.Namespace).Delete(ctx, found.Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &found.UID, ResourceVersion: &found.ResourceVersion},
		})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	return Explain(OnConflict(remove, ctx.Err), "remove the inventory of "+i.Component)
}

const objectsKey = "objects" // of the ConfigMap's data: a JSON list of Ref

// write reads the inventory, lets change say how it is to be, and writes that if
// nobody wrote in between; else it begins again.
func (i *Inventory) write(ctx context.Context, change func(*corev1.ConfigMap, Record) error) error {
	client := i.cluster.Client.CoreV1().ConfigMaps(i.Namespace)
	once := func() error {
		found, record, err := i.read(ctx)
		if err != nil {
			return err
		}
		if err := change(found, record); err != nil {
			return err
		}
		if !record.Exists {
			_, err = client.Create(ctx, found, metav1.CreateOptions{FieldManager: FieldManager})
		} else {
			_, err = client.Update(ctx, found, metav1.UpdateOptions{FieldManager: FieldManager})
		}
		return err
	}
	return Explain(OnConflict(once, func() error { return ctx.Err() }), "write the inventory of "+i.Component)
}

// read gives the ConfigMap, or one to create.
func (i *Inventory) read(ctx context.Context) (*corev1.ConfigMap, Record, error) {
	found, err := i.cluster.Client.CoreV1().ConfigMaps(i.Namespace).Get(ctx, i.Name(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return i.fresh(), Record{}, nil
	}
	doing := "read the inventory of " + i.Component
	if err != nil {
		return nil, Record{}, Explain(err, doing)
	}
	if owner := found.Annotations[AnnotationInstall]; owner != i.Install {
		return nil, Record{}, job.Refusef("give the component another namespace in one of the two installs",
			"component %s of another install (%s) is in namespace %s", i.Component, owner, i.Namespace).
			Differing("install", i.Install, owner)
	}
	record := Record{Exists: true}
	if record.Fence, err = strconv.ParseInt(found.Annotations[AnnotationFence], 10, 64); err != nil {
		return nil, Record{}, i.broken(found.Name, "its fence is no number")
	}
	if data := found.Data[objectsKey]; data != "" {
		if err := json.Unmarshal([]byte(data), &record.Objects); err != nil {
			return nil, Record{}, i.broken(found.Name, "its list of objects cannot be read")
		}
	}
	return found, record, nil
}

// Others are the objects of other components whose inventories are in the same
// namespace, each with the name of its component.
func (i *Inventory) Others(ctx context.Context) (map[Ref]string, error) {
	list, err := i.cluster.inventories(ctx, i.Namespace, i.Name())
	if err != nil {
		return nil, err
	}
	others := map[Ref]string{}
	for _, found := range list {
		var objects []Ref
		if data := found.Data[objectsKey]; data != "" {
			if err := json.Unmarshal([]byte(data), &objects); err != nil {
				return nil, i.broken(found.Name, "its list of objects cannot be read")
			}
		}
		for _, ref := range objects {
			others[ref.key()] = found.Annotations[AnnotationComponent]
		}
	}
	return others, nil
}

// OwnedBy looks an object up in what Others gave; "" when it is in none.
func (r Ref) OwnedBy(others map[Ref]string) string { return others[r.key()] }

func (i *Inventory) broken(name, why string) error {
	return job.Failf(fmt.Sprintf("correct ConfigMap %s in namespace %s: somebody edited it", name, i.Namespace),
		"the inventory of %s cannot be used: %s", i.Component, why)
}

func (i *Inventory) fresh() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: i.Name(), Namespace: i.Namespace,
		Labels: map[string]string{
			LabelManagedBy: FieldManager,
			LabelInventory: string(i.Kind),
		},
		Annotations: map[string]string{
			AnnotationInstall: i.Install, AnnotationComponent: i.Component,
		},
	}}
}
