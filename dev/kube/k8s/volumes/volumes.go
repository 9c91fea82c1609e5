// Package volumes gives a cluster of one node persistent volumes: each claim of
// our storage class gets a directory of the node, which goes when the claim
// does. What it does not do: sizes are written down, never enforced.
package volumes

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"

	"github.com/berth-dev/berth/dev/kube/k8s/watch"
)

const (
	// Provisioner is the name that a storage class asks for us by.
	Provisioner = "berth.dev/directory"

	// provisionedBy tells Kubernetes' own controller to leave the deletion of
	// a volume to us.
	provisionedBy = "pv.kubernetes.io/provisioned-by"
)

// Main provisions until it is asked to stop. args are a program's, name first.
func Main(args []string) int {
	flags := flag.NewFlagSet(args[0], flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "how to reach the API `file`")
	dir := flags.String("dir", "", "where the volumes are `directory`")
	_ = flags.Parse(args[1:]) // ExitOnError

	return watch.Main("volumes", func(ctx context.Context) error { return run(ctx, *kubeconfig, *dir) })
}

func run(ctx context.Context, kubeconfig, dir string) error {
	client, factory, err := watch.Connect(kubeconfig)
	if err != nil {
		return err
	}
	p := provisioner{client: client, dir: dir}
	claims, classes, volumes := factory.Core().V1().PersistentVolumeClaims(),
		factory.Storage().V1().StorageClasses(), factory.Core().V1().PersistentVolumes()
	changes, err := watch.Of(claims.Informer(), classes.Informer(), volumes.Informer())
	if err != nil {
		return err
	}
	if err := watch.Start(ctx, factory); err != nil {
		return err
	}
	slog.Info("volumes are provisioned", "dir", dir)
	changes.Each(ctx, "volumes not as they should be", func(ctx context.Context) error {
		seen := state{}
		seen.claims, _ = claims.Lister().List(labels.Everything()) // from memory: cannot fail
		seen.classes, _ = classes.Lister().List(labels.Everything())
		seen.volumes, _ = volumes.Lister().List(labels.Everything())
		return p.act(ctx, seen.missing(), seen.released())
	})
	return nil
}

// A provisioner makes and removes volumes.
type provisioner struct {
	client kubernetes.Interface
	dir    string
}

// act does what was decided; all of it may be done twice.
func (p provisioner) act(ctx context.Context, missing []claim, released []*core.PersistentVolume) error {
	for _, c := range missing {
		volume := p.volume(c)
		if err := os.MkdirAll(volume.Spec.HostPath.Path, 0o777); err != nil {
			return err
		}
		// Whatever user a pod runs as may write, whatever our umask is.
		if err := os.Chmod(volume.Spec.HostPath.Path, 0o777); err != nil {
			return err
		}
		_, err := p.client.CoreV1().PersistentVolumes().Create(ctx, volume, meta.CreateOptions{})
		if err != nil && !errors.IsAlreadyExists(err) {
			return fmt.Errorf("make volume %s: %w", volume.Name, err)
		}
	}
	for _, volume := range released {
		if err := os.RemoveAll(filepath.Join(p.dir, volume.Name)); err != nil {
			return err
		}
		err := p.client.CoreV1().PersistentVolumes().Delete(ctx, volume.Name, meta.DeleteOptions{})
		if err != nil && !errors.IsNotFound(err) {
			return fmt.Errorf("delete volume %s: %w", volume.Name, err)
		}
	}
	return nil
}

// volume is what a claim gets.
func (p provisioner) volume(c claim) *core.PersistentVolume {
	name := volumeName(c.PersistentVolumeClaim)
	kind := core.HostPathDirectory
	return &core.PersistentVolume{
		ObjectMeta: meta.ObjectMeta{Name: name, Annotations: map[string]string{provisionedBy: Provisioner}},
		Spec: core.PersistentVolumeSpec{
			Capacity:                      core.ResourceList{core.ResourceStorage: c.Spec.Resources.Requests[core.ResourceStorage]},
			AccessModes:                   c.Spec.AccessModes,
			PersistentVolumeReclaimPolicy: c.reclaim,
			StorageClassName:              *c.Spec.StorageClassName,
			VolumeMode:                    c.Spec.VolumeMode,
			ClaimRef: &core.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim",
				Namespace: c.Namespace, Name: c.Name, UID: c.UID,
			},
			PersistentVolumeSource: core.PersistentVolumeSource{
				HostPath: &core.HostPathVolumeSource{Path: filepath.Join(p.dir, name), Type: &kind},
			},
		},
	}
}
