package enginepod

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The pod of an engine has of the data what is named, what it was given to read
// only, and no Secret of the runner.
func TestMounts(t *testing.T) {
	t.Parallel()
	var own ownPod
	err := json.Unmarshal([]byte(`{"spec": {
		"containers": [{"name": "agent", "volumeMounts": [
			{"name": "data", "mountPath": "/data", "subPath": "acme"}, {"name": "code", "mountPath": "/run/berth/code"}, {"name": "ca", "mountPath": "/run/berth/ca"}]}],
		"volumes": [
			{"name": "data", "persistentVolumeClaim": {"claimName": "berth-runner-data"}},
			{"name": "code", "secret": {"secretName": "berth-runner-code"}}, {"name": "ca", "configMap": {"name": "berth-runner-ca"}}]}}`), &own)
	if err != nil {
		t.Fatal(err)
	}
	const attempt = "/data/jobs/job_a.1"
	mounts, volumes, err := own.mounts([]string{attempt + "/pod", attempt + "/engine", "/data/install"}, []string{attempt + "/engine/in"})
	if err != nil {
		t.Fatal(err)
	}
	want := []map[string]any{
		{"name": "data", "mountPath": attempt + "/pod", "subPath": "acme/jobs/job_a.1/pod"},
		{"name": "data", "mountPath": attempt + "/engine", "subPath": "acme/jobs/job_a.1/engine"},
		{"name": "data", "mountPath": "/data/install", "subPath": "acme/install"},
		{"name": "data", "mountPath": attempt + "/engine/in", "subPath": "acme/jobs/job_a.1/engine/in", "readOnly": true},
		{"name": "ca", "mountPath": "/run/berth/ca", "readOnly": true},
	}
	if diff := cmp.Diff(want, mounts); diff != "" {
		t.Errorf("mounts (-want +got):\n%s", diff)
	}
	var names []any
	for _, v := range volumes {
		names = append(names, v["name"])
	}
	if diff := cmp.Diff([]any{"data", "ca"}, names); diff != "" {
		t.Errorf("volumes (-want +got):\n%s", diff)
	}
	if _, _, err := own.mounts([]string{"/elsewhere"}, nil); err == nil {
		t.Error("a directory that is on no volume was taken")
	}
}
