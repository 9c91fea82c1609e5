package volumes

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	core "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestMissing(t *testing.T) {
	t.Parallel()
	retain := core.PersistentVolumeReclaimRetain
	classes := []*storage.StorageClass{
		{ObjectMeta: meta.ObjectMeta{Name: "local"}, Provisioner: Provisioner},
		{ObjectMeta: meta.ObjectMeta{Name: "kept"}, Provisioner: Provisioner, ReclaimPolicy: &retain},
		{ObjectMeta: meta.ObjectMeta{Name: "foreign"}, Provisioner: "example.org/disk"},
	}
	pending := func(uid, class string) *core.PersistentVolumeClaim {
		return &core.PersistentVolumeClaim{
			ObjectMeta: meta.ObjectMeta{UID: types.UID(uid)},
			Spec:       core.PersistentVolumeClaimSpec{StorageClassName: &class},
		}
	}
	with := func(c *core.PersistentVolumeClaim, change func(*core.PersistentVolumeClaim)) *core.PersistentVolumeClaim {
		change(c)
		return c
	}
	seen := state{
		classes: classes,
		claims: []*core.PersistentVolumeClaim{
			pending("1", "local"),
			pending("2", "kept"),
			pending("3", "foreign"),
			pending("has-one", "local"),
			with(pending("bound", "local"), func(c *core.PersistentVolumeClaim) { c.Spec.VolumeName = "mine" }),
			with(pending("going", "local"), func(c *core.PersistentVolumeClaim) { c.DeletionTimestamp = &meta.Time{} }),
			with(pending("none", ""), func(c *core.PersistentVolumeClaim) { c.Spec.StorageClassName = nil }),
		},
		volumes: []*core.PersistentVolume{{ObjectMeta: meta.ObjectMeta{Name: "pvc-has-one"}}},
	}
	got := map[string]core.PersistentVolumeReclaimPolicy{}
	for _, c := range seen.missing() {
		got[string(c.UID)] = c.reclaim
	}
	want := map[string]core.PersistentVolumeReclaimPolicy{
		"1": core.PersistentVolumeReclaimDelete,
		"2": core.PersistentVolumeReclaimRetain,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("claims that get a volume (-want +got):\n%s", diff)
	}
}

func TestReleased(t *testing.T) {
	t.Parallel()
	volume := func(name, by string, phase core.PersistentVolumePhase, policy core.PersistentVolumeReclaimPolicy) *core.PersistentVolume {
		return &core.PersistentVolume{
			ObjectMeta: meta.ObjectMeta{Name: name, Annotations: map[string]string{provisionedBy: by}},
			Spec:       core.PersistentVolumeSpec{PersistentVolumeReclaimPolicy: policy},
			Status:     core.PersistentVolumeStatus{Phase: phase},
		}
	}
	seen := state{volumes: []*core.PersistentVolume{
		volume("goes", Provisioner, core.VolumeReleased, core.PersistentVolumeReclaimDelete),
		volume("in use", Provisioner, core.VolumeBound, core.PersistentVolumeReclaimDelete),
		volume("kept", Provisioner, core.VolumeReleased, core.PersistentVolumeReclaimRetain),
		volume("made by hand", "", core.VolumeReleased, core.PersistentVolumeReclaimDelete),
	}}
	var got []string
	for _, v := range seen.released() {
		got = append(got, v.Name)
	}
	if diff := cmp.Diff([]string{"goes"}, got); diff != "" {
		t.Errorf("volumes that go (-want +got):\n%s", diff)
	}
}
