package volumes

import (
	core "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
)

// A state is what the cluster says of claims and volumes.
type state struct {
	claims  []*core.PersistentVolumeClaim
	classes []*storage.StorageClass
	volumes []*core.PersistentVolume
}

// A claim waits for a volume of ours.
type claim struct {
	*core.PersistentVolumeClaim
	reclaim core.PersistentVolumeReclaimPolicy // of its class
}

// missing decides which claims get a volume: those of our class that are
// neither bound, nor ask for a certain volume, nor are about to go.
func (s state) missing() []claim {
	reclaim := map[string]core.PersistentVolumeReclaimPolicy{}
	for _, class := range s.classes {
		if class.Provisioner == Provisioner {
			reclaim[class.Name] = core.PersistentVolumeReclaimDelete
			if class.ReclaimPolicy != nil {
				reclaim[class.Name] = *class.ReclaimPolicy
			}
		}
	}
	have := map[string]bool{}
	for _, volume := range s.volumes {
		have[volume.Name] = true
	}
	var missing []claim
	for _, c := range s.claims {
		if c.Spec.StorageClassName == nil || c.Spec.VolumeName != "" || c.DeletionTimestamp != nil || have[volumeName(c)] {
			continue
		}
		if policy, ours := reclaim[*c.Spec.StorageClassName]; ours {
			missing = append(missing, claim{c, policy})
		}
	}
	return missing
}

// released decides which volumes go with their data: those made by us whose
// claim is gone, if their class says so.
func (s state) released() []*core.PersistentVolume {
	var released []*core.PersistentVolume
	for _, volume := range s.volumes {
		if volume.Annotations[provisionedBy] == Provisioner &&
			volume.Status.Phase == core.VolumeReleased &&
			volume.Spec.PersistentVolumeReclaimPolicy == core.PersistentVolumeReclaimDelete {
			released = append(released, volume)
		}
	}
	return released
}

// volumeName is unique for each claim, also for one made again under the same
// name.
func volumeName(c *core.PersistentVolumeClaim) string {
	return "pvc-" + string(c.UID)
}
