package kube

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-dev/berth/runner/engine/job"
)

// LabelCreatedFor is on namespaces that we made; its value is the install for
// which that was.
const LabelCreatedFor = "berth.dev/created-for"

// namespaceObject is the namespace as EnsureNamespace makes it.
func namespaceObject(name, install string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	obj.SetName(name)
	obj.SetLabels(labelsOf(install))
	return obj
}

// labelsOf are those of a namespace that we make for an install. Pods that do not
// fit the level restricted are taken, with a warning and a line in the audit log:
// what else to enforce there is the customer's to say.
func labelsOf(install string) map[string]string {
	const restricted = "restricted"
	return map[string]string{
		LabelCreatedFor:                    install,
		"pod-security.kubernetes.io/warn":  restricted,
		"pod-security.kubernetes.io/audit": restricted,
	}
}

// NamespaceChange is what an apply does to the namespace of a component before
// everything else: ActionNone when it is there, ActionCreate when it is missing
// and create is set; else it is a failure.
func (c *Cluster) NamespaceChange(ctx context.Context, name, install string, create bool) (Change, error) {
	target := namespaceObject(name, install)
	live, err := c.Get(ctx, RefOf(target))
	if err != nil {
		return Change{}, Explain(err, "read namespace "+name)
	}
	switch {
	case live != nil && live.GetDeletionTimestamp() == nil:
		return Change{Object: RefOf(target), Live: live, UID: string(live.GetUID())}, nil
	case create:
		return Created(target), nil
	case live != nil:
		return Change{}, job.Failf("wait until it is gone, make it again, then try again", "namespace %s is just being deleted", name)
	}
	return Change{}, missingNamespace(name)
}

func missingNamespace(name string) error {
	return job.Failf("make it, or set create_namespace", "namespace %s does not exist", name)
}

// EnsureNamespace makes the namespace if it is missing and create is set, with
// a label that says for which install. One that is just being deleted is waited
// for.
func (c *Cluster) EnsureNamespace(ctx context.Context, name, install string, create bool) error {
	client := c.Client.CoreV1().Namespaces()
	found, err := client.Get(ctx, name, metav1.GetOptions{})
	if err == nil && found.DeletionTimestamp != nil && create {
		if err := c.untilGone(ctx, name, string(found.UID)); err != nil {
			return err
		}
		_, err = client.Get(ctx, name, metav1.GetOptions{})
	}
	switch {
	case err == nil:
		return nil
	case !apierrors.IsNotFound(err):
		return Explain(err, "read namespace "+name)
	case !create:
		return missingNamespace(name)
	}
	_, err = client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: labelsOf(install),
	}}, metav1.CreateOptions{FieldManager: FieldManager})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return Explain(err, "make namespace "+name)
	}
	return nil
}

// NamespaceRelease is what ReleaseNamespace would do once the inventory of this
// component is gone: ActionDelete; ActionKeep while other components are in the
// namespace, which goes with the last of them; ActionNone for one that we did
// not make.
func (c *Cluster) NamespaceRelease(ctx context.Context, inv *Inventory) (Change, error) {
	ref := RefOf(namespaceObject(inv.Namespace, inv.Install))
	live, err := c.Get(ctx, ref)
	if err != nil {
		return Change{}, Explain(err, "read namespace "+inv.Namespace)
	}
	if live == nil || live.GetLabels()[LabelCreatedFor] != inv.Install {
		return Change{Object: ref, Live: live}, nil
	}
	others, err := c.inventories(ctx, inv.Namespace, inv.Name())
	if err != nil {
		return Change{}, err
	}
	change := Deleted(ref, live)
	change.Reason = "made for this install, and this is the last component in it; everything in it goes with it"
	if len(others) > 0 {
		change.Action, change.Reason = ActionKeep, "other components are in it; it goes with the last of them"
	}
	return change, nil
}

// ReleaseNamespace removes the namespace of a component whose inventory is gone,
// if it was made for this install and no other inventory is in it, and waits
// until it is gone. Every other namespace stays. It reports whether it removed
// it.
func (c *Cluster) ReleaseNamespace(ctx context.Context, inv *Inventory) (bool, error) {
	var change Change
	remove := func() (err error) {
		if change, err = c.NamespaceRelease(ctx, inv); err != nil || change.Action != ActionDelete {
			return err
		}
		uid, version := types.UID(change.UID), change.Live.GetResourceVersion()
		err = c.Client.CoreV1().Namespaces().Delete(ctx, inv.Namespace, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version},
		})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	// Somebody may write to it in between, as the cluster itself does to one that an
	// attempt before this one began to remove: then all is looked at once more.
	if err := OnConflict(remove, ctx.Err); err != nil {
		return false, Explain(err, "remove namespace "+inv.Namespace)
	}
	if change.Action != ActionDelete {
		return false, nil
	}
	return true, c.untilGone(ctx, inv.Namespace, change.UID)
}

// KeepNamespace leaves a namespace that we made to the customer, because
// something in it is protected: no later teardown removes it.
func (c *Cluster) KeepNamespace(ctx context.Context, inv *Inventory) error {
	patch := []byte(`{"metadata":{"labels":{"` + LabelCreatedFor + `":null}}}`)
	_, err := c.Client.CoreV1().Namespaces().Patch(ctx, inv.Namespace, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: FieldManager})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return Explain(err, "keep namespace "+inv.Namespace)
}

// inventories are those in a namespace, without the one that is named.
func (c *Cluster) inventories(ctx context.Context, namespace, without string) ([]corev1.ConfigMap, error) {
	list, err := c.Client.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{LabelSelector: LabelInventory})
	if err != nil {
		return nil, Explain(err, "list the inventories in namespace "+namespace)
	}
	return slices.DeleteFunc(list.Items, func(m corev1.ConfigMap) bool { return m.Name == without }), nil
}

// goneEvery is how often it is asked whether a namespace is gone. Deleting one
// takes a few seconds.
const goneEvery = 250 * time.Millisecond

func (c *Cluster) untilGone(ctx context.Context, name, uid string) error {
	tick := time.NewTicker(goneEvery)
	defer tick.Stop()
	for {
		found, err := c.Client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && string(found.UID) != uid {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return stillThere(name, found, err)
		}
	}
}

// stillThere says why a namespace does not go.
func stillThere(name string, found *corev1.Namespace, err error) error {
	if err != nil {
		return Explain(err, "see whether namespace "+name+" is gone")
	}
	why := "something in it is still being removed"
	for _, c := range found.Status.Conditions {
		if c.Status == corev1.ConditionTrue && c.Message != "" {
			why = c.Message
		}
	}
	return job.Failf("see what in it has finalizers that nobody serves any more", "namespace %s does not go: %s", name, why)
}

// NamespaceOf is the namespace that a component means: the one that it wrote, and the
// install's without one. Ids of older installs have a "_", which no namespace may
// have, so there it is a "-".
func NamespaceOf(installID, written string) string {
	if written == "" {
		written = installID
	}
	if installID == "" {
		return written
	}
	return strings.ReplaceAll(written, installID, strings.ReplaceAll(installID, "_", "-"))
}
