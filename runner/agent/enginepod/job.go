package enginepod

import (
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"time"
)

// labelJob is on the Job of an attempt and on its pods; its value is the Job's
// name.
const labelJob = "berth.dev/engine"

// lateBy is how much longer than its engine a Job may take until Kubernetes
// ends it by itself; keptFor is how long Kubernetes keeps it after its end.
// Both matter only when there is no agent.
const (
	lateBy  = 2 * startWithin
	keptFor = time.Hour
)

type object = map[string]any

// job is the Job of an attempt.
func (p *Pods) job(own ownPod, o Order) (object, error) {
	image, pull, err := own.image()
	if err != nil {
		return nil, err
	}
	open, closed := append([]string{string(o.Folder)}, o.Dirs...), o.Closed
	if p.SharesUser() {
		open, closed = append(o.Folder.written(), o.Dirs...), append([]string{string(o.Folder)}, o.Closed...)
	}
	mounts, volumes, err := own.mounts(open, closed)
	if err != nil {
		return nil, err
	}
	const tmp, tools = "tmp", "berth-tools"
	mounts = append(mounts, object{"name": tmp, "mountPath": "/tmp"})
	volumes = append(volumes, object{"name": tmp, "emptyDir": object{"sizeLimit": "1Gi"}})
	limits := object{
		"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": object{"drop": []string{"ALL"}},
	}
	engine := object{
		"name": "engine", "image": image, "imagePullPolicy": pull,
		"command": []string{p.Executable, "engine-pod", string(o.Folder)},
		// The output of the engine is in files; what is left is ours.
		"terminationMessagePolicy": "FallbackToLogsOnError",
		"securityContext":          limits,
		"resources":                p.resources(),
	}
	var first []object
	if o.Image != "" {
		bring := maps.Clone(engine)
		bring["name"] = "tools"
		bring["command"] = []string{p.Executable, "engine-pod", "--bring", p.Executable, "--bring", p.Engine, toolsDir}
		bring["volumeMounts"] = []object{{"name": tools, "mountPath": toolsDir}}
		first = append(first, bring)
		// The image's own entry point is not used. Its name has a digest, so there is
		// nothing to pull twice.
		engine["image"], engine["imagePullPolicy"] = o.Image, "IfNotPresent"
		engine["command"] = []string{path.Join(toolsDir, filepath.Base(p.Executable)), "engine-pod", string(o.Folder)}
		mounts = append(mounts, object{"name": tools, "mountPath": toolsDir, "readOnly": true})
		volumes = append(volumes, object{"name": tools, "emptyDir": object{"sizeLimit": "1Gi"}})
	}
	engine["volumeMounts"] = mounts
	labels := object{labelJob: JobName(o.Name), "app": "berth-engine", "app.kubernetes.io/managed-by": "berth"}
	return object{
		"apiVersion": "batch/v1", "kind": "Job",
		"metadata": object{"name": JobName(o.Name), "namespace": p.Pod.Namespace, "labels": labels},
		"spec": object{
			"backoffLimit": 0, "completions": 1, "parallelism": 1, "podReplacementPolicy": "Failed",
			"activeDeadlineSeconds":   int64((o.Limit + lateBy) / time.Second),
			"ttlSecondsAfterFinished": int64(keptFor / time.Second),
			"template": object{
				"metadata": object{"labels": labels},
				"spec": object{
					"restartPolicy": "Never", "serviceAccountName": "berth-engine", "automountServiceAccountToken": false, "enableServiceLinks": false,
					"terminationGracePeriodSeconds": int64(p.Grace / time.Second),
					"affinity":                      onNode(own.Spec.NodeName), // where the volume is
					"tolerations":                   own.Spec.Tolerations,
					"imagePullSecrets":              own.Spec.ImagePullSecrets,
					"securityContext": object{
						"runAsNonRoot": true, "runAsUser": p.UID, "runAsGroup": p.GID, "seccompProfile": object{"type": "RuntimeDefault"},
					},
					"volumes":        volumes,
					"initContainers": first,
					"containers":     []object{engine},
				},
			},
		},
	}, nil
}

func onNode(name string) object {
	return object{"nodeAffinity": object{"requiredDuringSchedulingIgnoredDuringExecution": object{
		"nodeSelectorTerms": []object{{"matchFields": []object{{"key": "metadata.name", "operator": "In", "values": []string{name}}}}},
	}}}
}

// resources asks for little and allows what is set: engines mostly wait.
func (p *Pods) resources() object {
	const milliCPU, memory = 50, 64 << 20
	limits, requests := object{}, object{"cpu": fmt.Sprintf("%dm", milliCPU), "memory": fmt.Sprint(memory)}
	if p.MemoryBytes > 0 {
		limits["memory"] = fmt.Sprint(p.MemoryBytes)
		requests["memory"] = fmt.Sprint(min(memory, p.MemoryBytes))
	}
	if p.MilliCPU > 0 {
		limits["cpu"] = fmt.Sprintf("%dm", p.MilliCPU)
		requests["cpu"] = fmt.Sprintf("%dm", min(milliCPU, p.MilliCPU))
	}
	return object{"limits": limits, "requests": requests}
}
