package enginepod

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/enrolcode"
	"github.com/berth-dev/berth/runner/agent/cluster"
)

// Config is how engines run in pods.
type Config struct {
	// Pod is the agent's own.
	Pod *cluster.Pod
	// Executable is the runner itself, in its image; Engine is the engine.
	Executable, Engine string
	// UID and GID are the engine's user, not 0.
	UID, GID int
	// MemoryBytes and MilliCPU are limits of one engine; 0 means none.
	MemoryBytes, MilliCPU int64
	// Grace is the time between asking an engine to stop and ending it.
	Grace time.Duration
	Log   *slog.Logger
}

// Pods makes Jobs of engines and follows them.
type Pods struct{ Config }

// Order is one attempt.
type Order struct {
	// Name is that of the attempt, of letters, digits, "_" and ".".
	Name   string
	Folder Folder
	// Image is the one that the engine is started in, "" for the runner's. What is
	// in Folder is then of Start.InImage.
	Image string
	// Dirs are what else of the data volume the engine sees, and may write to as
	// far as its user can. Closed are directories that it may only read, but for
	// the Dirs in them.
	Dirs, Closed []string
	// Limit is how long the engine may take, with all its grace.
	Limit time.Duration
	// Note gets what the pod waits for, in words for people.
	Note func(text string)
}

// SharesUser says that engines have the agent's own user, as in a namespace that
// takes no root. What they must not write to is then mounted read-only.
func (p *Pods) SharesUser() bool { return p.UID == os.Geteuid() }

// JobName is what the Job of an attempt is called.
func JobName(attempt string) string {
	return "berth-engine-" + strings.NewReplacer("_", "-", ".", "-").Replace(strings.ToLower(attempt))
}

// Start makes the Job of an attempt that no pod was made for yet; its folder is
// there. An error means that there is no engine and will be none. While the API
// server does not say whether it has the Job, there is a Run that finds out.
func (p *Pods) Start(ctx, life context.Context, o Order) (*Run, error) {
	own, err := p.own(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the runner's own pod: %w", err)
	}
	job, err := p.job(own, o)
	if err != nil {
		return nil, err
	}
	r := p.newRun(o)
	for told := false; ; {
		err := p.Pod.Post(ctx, p.path("/apis/batch/v1", "jobs"), job, nil)
		switch {
		case err == nil, cluster.IsStatus(err, http.StatusConflict): // made, perhaps by a call whose answer was lost
			go r.work(life)
			return r, nil
		case ctx.Err() != nil:
			r.Stop(0) // made or not: it must not go on
			go r.work(life)
			return r, nil //nolint:nilerr // the run finds out what became of it
		case refused(err):
			if _, never := giveUp(o.Folder.marker()); never != nil {
				return nil, errors.Join(err, never)
			}
			if cluster.IsStatus(err, http.StatusForbidden) {
				err = fmt.Errorf("%w: apply the manifest of this version, or give --engines process", err)
			}
			return nil, fmt.Errorf("make the Job of the engine: %w", err)
		case !told:
			o.Note("the cluster does not take the engine's Job, trying again: " + err.Error())
			told = true
		}
		pause(ctx)
	}
}

// own reads the agent's pod, waiting for an API server that is away.
func (p *Pods) own(ctx context.Context) (own ownPod, err error) {
	for {
		err = p.Pod.Get(ctx, p.path("/api/v1", "pods")+"/"+url.PathEscape(p.Pod.Name), &own)
		if err == nil || ctx.Err() != nil || refused(err) {
			return own, err
		}
		pause(ctx)
	}
}

// Adopt continues an attempt that an earlier agent called Start for.
func (p *Pods) Adopt(life context.Context, o Order) *Run {
	r := p.newRun(o)
	go r.work(life)
	return r
}

// refused tells whether the API server will not do this, however often it is
// asked.
func refused(err error) bool {
	var answer *cluster.StatusError
	return errors.As(err, &answer) && answer.Code/100 == 4 &&
		answer.Code != http.StatusTooManyRequests && answer.Code != http.StatusRequestTimeout && answer.Code != http.StatusUnauthorized
}

func (p *Pods) path(group, resource string) string {
	return group + "/namespaces/" + url.PathEscape(p.Pod.Namespace) + "/" + resource
}

// ownPod is the agent's pod, as far as its engines' pods are like it.
type ownPod struct {
	Spec struct {
		Containers []struct {
			Name            string           `json:"name"`
			Image           string           `json:"image"`
			ImagePullPolicy string           `json:"imagePullPolicy"`
			VolumeMounts    []map[string]any `json:"volumeMounts"`
		} `json:"containers"`
		Volumes          []map[string]any `json:"volumes"`
		Tolerations      []map[string]any `json:"tolerations"`
		ImagePullSecrets []map[string]any `json:"imagePullSecrets"`
		NodeName         string           `json:"nodeName"`
	} `json:"spec"`
	Status struct {
		ContainerStatuses []struct {
			Name    string `json:"name"`
			ImageID string `json:"imageID"`
		} `json:"containerStatuses"`
	} `json:"status"`
}

// agentContainer is what the manifest calls the agent.
const agentContainer = "agent"

// image is what the agent runs from, always by digest: a tag may lead elsewhere
// by now. The manifest names one; of a pod of an older manifest the node tells it.
func (o ownPod) image() (name, pull string, err error) {
	for _, c := range o.Spec.Containers {
		if c.Name != agentContainer {
			continue
		}
		if enrolcode.CheckImage(c.Image) == nil {
			return c.Image, c.ImagePullPolicy, nil
		}
		for _, s := range o.Status.ContainerStatuses {
			if s.Name == agentContainer && strings.Contains(s.ImageID, "@sha256:") && !strings.Contains(s.ImageID, "://") && c.ImagePullPolicy != "Never" {
				return s.ImageID, "IfNotPresent", nil
			}
		}
		return "", "", fmt.Errorf("the runner's pod runs %s, and the node does not say which digest that is: apply the manifest again with --image by digest", c.Image)
	}
	return "", "", fmt.Errorf("the runner's pod has no container called %s: it is not of `berth-runner manifest`", agentContainer)
}

// mounts are those of an engine: the directories that it sees, out of the
// volumes that the agent has them from, and what the agent has from ConfigMaps.
// Nothing else of the agent's is taken over, no secret above all.
func (o ownPod) mounts(dirs, closed []string) (mounts, volumes []map[string]any, err error) {
	byName := map[string]map[string]any{}
	for _, v := range o.Spec.Volumes {
		name, _ := v["name"].(string)
		byName[name] = v
	}
	used := map[string]bool{}
	use := func(volume string, mount map[string]any) {
		if !used[volume] {
			used[volume] = true
			volumes = append(volumes, byName[volume])
		}
		mount["name"] = volume
		mounts = append(mounts, mount)
	}
	for _, dir := range slices.Concat(dirs, closed) {
		volume, sub := "", ""
		for _, m := range o.agentMounts() {
			at, _ := m["mountPath"].(string)
			below, inside := strings.CutPrefix(dir, strings.TrimSuffix(at, "/")+"/")
			if !inside {
				continue
			}
			name, _ := m["name"].(string)
			base, _ := m["subPath"].(string)
			volume, sub = name, path.Join(base, below)
		}
		if v := byName[volume]; v["persistentVolumeClaim"] == nil && v["hostPath"] == nil {
			return nil, nil, fmt.Errorf("%s is not on a volume that another pod can have: engines as Jobs need the runner's data on a claim or a directory of the node", dir)
		}
		mount := map[string]any{"mountPath": dir, "subPath": sub}
		if slices.Contains(closed, dir) {
			mount["readOnly"] = true
		}
		use(volume, mount)
	}
	// What is in another mount comes after it, or it would be hidden.
	slices.SortStableFunc(mounts, func(a, b map[string]any) int {
		return cmp.Compare(fmt.Sprint(a["mountPath"]), fmt.Sprint(b["mountPath"]))
	})
	for _, m := range o.agentMounts() {
		if name, _ := m["name"].(string); byName[name]["configMap"] != nil {
			use(name, map[string]any{"mountPath": m["mountPath"], "readOnly": true})
		}
	}
	return mounts, volumes, nil
}

func (o ownPod) agentMounts() []map[string]any {
	for _, c := range o.Spec.Containers {
		if c.Name == agentContainer {
			return c.VolumeMounts
		}
	}
	return nil
}
