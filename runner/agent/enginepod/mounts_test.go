package enginepod

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/runner/agent/cluster"
)

// The pod of an engine has of the data what is named, what it was given to read
// only, and no Secret of the runner.
func TestMounts(t *testing.T) {
	t.Parallel()
	var own ownPod
	err := json.Unmarshal([]byte(`{"spec": {
		"containers": [{"name": "agent", "volumeMounts": [
			{"name": "data", "mountPath": "/data", "subPath": "acme"}, {"name": "code", "mountPath": "/run/berth/code"}, {"name": "contexts", "mountPath": "/run/berth/contexts"}, {"name": "ca", "mountPath": "/run/berth/ca"}]}],
		"volumes": [
			{"name": "data", "persistentVolumeClaim": {"claimName": "berth-runner-data"}},
			{"name": "code", "secret": {"secretName": "berth-runner-code"}}, {"name": "contexts", "secret": {"secretName": "clusters"}},
			{"name": "ca", "configMap": {"name": "berth-runner-ca"}}]}}`), &own)
	if err != nil {
		t.Fatal(err)
	}
	const attempt = "/data/jobs/job_a.1"
	mounts, volumes, err := own.mounts([]string{attempt + "/pod", attempt + "/engine", "/data/install"}, []string{attempt + "/engine/in"})
	if err != nil {
		t.Fatal(err)
	}
	want := []map[string]any{
		{"name": "data", "mountPath": "/data/install", "subPath": "acme/install"},
		{"name": "data", "mountPath": attempt + "/engine", "subPath": "acme/jobs/job_a.1/engine"},
		{"name": "data", "mountPath": attempt + "/engine/in", "subPath": "acme/jobs/job_a.1/engine/in", "readOnly": true},
		{"name": "data", "mountPath": attempt + "/pod", "subPath": "acme/jobs/job_a.1/pod"},
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

// An engine that has the agent's own user can write to the files that are for
// it, and cannot put others in their place: all around them is read-only.
func TestMountsOfOneUser(t *testing.T) {
	t.Parallel()
	var own ownPod
	err := json.Unmarshal([]byte(`{"spec": {"nodeName": "n",
		"containers": [{"name": "agent", "image": "r/i@sha256:`+strings.Repeat("0f", 32)+`", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
		"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "berth-runner-data"}}]}}`), &own)
	if err != nil {
		t.Fatal(err)
	}
	const attempt = "/data/jobs/job_a.1"
	for name, tc := range map[string]struct {
		uid  int
		want []string // ":ro" is read-only
	}{
		"the agent's user": {uid: os.Geteuid(), want: []string{attempt + "/out", attempt + "/pod:ro", attempt + "/pod/begun", attempt + "/pod/stderr.log", attempt + "/pod/stdout.log", "/tmp"}},
		"its own user":     {uid: os.Geteuid() + 1, want: []string{attempt + "/out", attempt + "/pod", "/tmp"}},
	} {
		p := &Pods{Config{Pod: &cluster.Pod{Namespace: "berth-acme"}, UID: tc.uid}}
		made, err := p.job(own, Order{Name: "job_a.1", Folder: attempt + "/pod", Dirs: []string{attempt + "/out"}})
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(made)
		if err != nil {
			t.Fatal(err)
		}
		var job struct {
			Spec struct {
				Template struct {
					Spec struct {
						Containers []struct {
							VolumeMounts []struct {
								MountPath string
								ReadOnly  bool
							}
						}
					}
				}
			}
		}
		if err := json.Unmarshal(text, &job); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range job.Spec.Template.Spec.Containers[0].VolumeMounts {
			if m.ReadOnly {
				m.MountPath += ":ro"
			}
			got = append(got, m.MountPath)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Engines run by digest: what a tag leads to may be another engine by then.
func TestImageByDigest(t *testing.T) {
	t.Parallel()
	digest := "@sha256:" + strings.Repeat("0f", 32)
	for name, tc := range map[string]struct{ image, id, want string }{
		"the manifest names one":               {image: "r/i:1" + digest, id: "other" + digest, want: "r/i:1" + digest},
		"the node knows what a tag was":        {image: "r/i:1", id: "r/i" + digest, want: "r/i" + digest},
		"nobody knows":                         {image: "r/i:1"},
		"the node has it from somewhere local": {image: "r/i:1", id: "docker://x" + digest},
	} {
		var own ownPod
		text := fmt.Sprintf(`{"spec": {"containers": [{"name": "agent", "image": %q}]}, "status": {"containerStatuses": [{"name": "agent", "imageID": %q}]}}`, tc.image, tc.id)
		if err := json.Unmarshal([]byte(text), &own); err != nil {
			t.Fatal(err)
		}
		got, _, err := own.image()
		if got != tc.want || (err != nil) != (tc.want == "") {
			t.Errorf("%s: %q, %v, want %q", name, got, err, tc.want)
		}
	}
}
