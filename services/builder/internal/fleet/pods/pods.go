// Package pods keeps the Build Runners as pods: one per org, never shared, in a
// namespace of their own.
//
//	Ensure(org) ──▶ looked at ──▶ Decide ──▶ make │ leave │ tidy │ end │ replace
//	Run ──▶ pods by label ──┘        ▲                            │
//	                                 └──────── every 2 s ◀────────┘
//
// What is to be done follows from the pods and the rows alone, and everything
// that is made for an org has one name: a builder that was killed at any point is
// followed by one that goes on, and two builders would make nothing twice. Pods
// outlive the builder; a build goes on while it restarts.
//
// A pod keeps its identity in an emptyDir. With the pod it is gone, and the next
// one enrols in its place.
package pods

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/berth-dev/berth/services/builder/internal/fleet/roster"
)

// Config of a Fleet. Roster, Namespace, Image, the sizes and the limits are
// required.
type Config struct {
	// Roster's RunnerAPIURL is one address for polls, logs and artifacts.
	Roster *roster.Roster
	// Kubeconfig is the file of a cluster; empty: that in which builder runs.
	Kubeconfig string
	// Namespace of the pods. It belongs to this control plane alone.
	Namespace string
	// Image has /usr/local/bin/berth-runner and berth-engine.
	Image string
	// PullSecret of the image, in Namespace; empty for none.
	PullSecret string
	// Via is the name of a Service behind which the host of RunnerAPIURL is, for
	// pods; empty: they look that host up.
	Via string
	// CAFile has authorities to trust besides the system's, in PEM; there are none
	// when it is empty, or is not there.
	CAFile string
	// BuildKit builds images for pods.
	BuildKit BuildKit
	// BuildSecrets is the name of a Secret whose keys are build secrets, BuildRegistries
	// that of one with credentials of base images, of the type
	// kubernetes.io/dockerconfigjson; each may be "". OrgPlace stands for the org.
	BuildSecrets, BuildRegistries string
	// MaxAge is when a pod makes room for another, between two builds; MaxIdle is
	// how long it stays without a build.
	MaxAge, MaxIdle time.Duration
	// CPU and Memory are requested, MemoryLimit and Disk are the most; each is an
	// Amount.
	CPU, Memory, MemoryLimit, Disk string
	// Env of the runners, "NAME=value".
	Env []string
	Log *slog.Logger
}

const (
	// lookEvery is how often pods are looked at while there are any, or are to be.
	lookEvery = 2 * time.Second
	// restEvery is that while there are none. A build does not wait for it.
	restEvery = time.Minute
	// callTimeout is for all that is done for one org at a time.
	callTimeout = 30 * time.Second
	// A pod takes five calls.
	callsPerSecond, callsAtOnce = 50, 100
	// atOnce is how many orgs are looked at together.
	atOnce = 8
)

// Fleet of Build Runners. Ensure may be called before and during Run.
type Fleet struct {
	roster      *roster.Roster
	config      Config
	cluster     *client.CoreV1Client
	authorities []byte
	more        chan struct{}

	mu      sync.Mutex
	watched map[string]int         // org → how often Ensure asked for it
	pods    map[string]*corev1.Pod // org → its pod, as it was seen last
	tidied  map[types.UID]bool     // pods whose Secret is deleted
}

// BuildKit is one that runs elsewhere. The zero value is none.
type BuildKit struct {
	// Address is tcp://HOST:PORT; with OrgPlace in it each org has one of its own, else
	// it is that of Org alone.
	Address, Org string
	// Secret is the name of a Secret with ca.pem, cert.pem and key.pem. OrgPlace stands
	// for the org.
	Secret string
}

// isFor tells whether an org builds with it.
func (b BuildKit) isFor(orgID string) bool {
	return b.Address != "" && (strings.Contains(b.Address, OrgPlace) || b.Org == orgID)
}

// OrgPlace in the name of a Secret stands for the org's id, with hyphens in the place
// of underscores.
const OrgPlace = "{org}"

// Amount tells whether a text is an amount of something, above zero, as Kubernetes
// writes it: 500m, 2Gi.
func Amount(text string) bool {
	q, err := resource.ParseQuantity(text)
	return err == nil && q.Sign() > 0
}

// New makes a fleet; nothing runs before Run.
func New(config Config) (*Fleet, error) {
	if config.Log == nil {
		config.Log = slog.Default()
	}
	for _, amount := range []string{config.CPU, config.Memory, config.MemoryLimit, config.Disk} {
		if !Amount(amount) {
			return nil, fmt.Errorf("build runners: %q is no amount", amount)
		}
	}
	cluster, err := clusterOf(config.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("cluster of build runners: %w", err)
	}
	cluster.Timeout, cluster.QPS, cluster.Burst = callTimeout, callsPerSecond, callsAtOnce
	f := &Fleet{
		roster: config.Roster, config: config, more: make(chan struct{}, 1),
		watched: map[string]int{}, pods: map[string]*corev1.Pod{}, tidied: map[types.UID]bool{},
	}
	if f.cluster, err = client.NewForConfig(cluster); err != nil {
		return nil, fmt.Errorf("cluster of build runners: %w", err)
	}
	if config.CAFile != "" {
		f.authorities, err = os.ReadFile(config.CAFile)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("authorities for build runners: %w", err)
		}
	}
	return f, nil
}

// clusterOf is the cluster of a kubeconfig file, or the one around this process.
func clusterOf(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		return rest.InClusterConfig()
	}
	return clientcmd.BuildConfigFromFlags("", kubeconfig)
}

// Ensure returns the id of the org's Build Runner, made at the first time, and
// whether the machine that enrolled last is there. It sees that a pod is made when
// there is none.
func (f *Fleet) Ensure(ctx context.Context, orgID string) (runnerID string, ready bool, err error) {
	if runnerID, err = f.roster.Runner(ctx, orgID); err != nil {
		return "", false, err
	}
	f.watch(orgID)
	f.mu.Lock()
	pod := f.pods[orgID]
	f.mu.Unlock()
	if pod == nil || pod.Labels[labelRunner] != runnerID {
		return runnerID, false, nil
	}
	there, err := f.works(ctx, pod)
	if err != nil || !there {
		return runnerID, false, err
	}
	state, err := f.roster.Look(ctx, orgID, runnerID, enrolment(pod))
	return runnerID, state == roster.SecretUsed, err
}

// works tells whether a pod is still there and was not told to end: since look saw it,
// that may have changed, and a job for a machine that is gone is refused by the next.
func (f *Fleet) works(ctx context.Context, pod *corev1.Pod) (bool, error) {
	list, err := f.cluster.Pods(f.config.Namespace).List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, pod.Name).String()})
	if err != nil {
		return false, fmt.Errorf("look at pod %s: %w", pod.Name, err)
	}
	for i := range list.Items {
		if now := seen(&list.Items[i]); list.Items[i].UID == pod.UID {
			return now.EndsBy.IsZero() && !now.Over, nil
		}
	}
	return false, nil
}

func (f *Fleet) watch(orgID string) {
	f.mu.Lock()
	f.watched[orgID]++
	f.mu.Unlock()
	select {
	case f.more <- struct{}{}:
	default:
	}
}

// Run looks after the pods until ctx ends, and leaves them as they are then.
func (f *Fleet) Run(ctx context.Context) error {
	orgOf, err := f.roster.Recall(ctx, "build", nil)
	if err != nil && ctx.Err() == nil {
		return err
	}
	for _, orgID := range orgOf {
		f.watch(orgID)
	}
	for ctx.Err() == nil {
		pause := lookEvery
		switch there, err := f.look(ctx); {
		case ctx.Err() != nil:
		case err != nil:
			f.config.Log.WarnContext(ctx, "build runners cannot be looked at", "err", err)
		case there == 0:
			pause = restEvery
		}
		select {
		case <-ctx.Done():
		case <-f.more:
		case <-time.After(pause):
		}
	}
	return nil
}

// look does for every org what there is to do now, and returns how many orgs have
// a pod or are to have one.
func (f *Fleet) look(ctx context.Context) (there int, _ error) {
	asked := f.asked()
	list, err := f.cluster.Pods(f.config.Namespace).List(ctx, metav1.ListOptions{LabelSelector: labelName + "=" + name})
	if err != nil {
		return 0, fmt.Errorf("list pods: %w", err)
	}
	aliases, err := f.aliases(ctx)
	if err != nil {
		return 0, err
	}
	pods := map[string]*corev1.Pod{}
	for i := range list.Items {
		pods[list.Items[i].Labels[labelOrg]] = &list.Items[i]
	}
	f.see(pods)
	for orgID := range pods {
		if _, watched := asked[orgID]; !watched {
			asked[orgID] = 0
		}
	}
	var group errgroup.Group
	group.SetLimit(atOnce)
	for orgID, times := range asked {
		group.Go(func() error {
			o := &office{fleet: f, orgID: orgID, pod: pods[orgID], aliases: aliases, log: f.config.Log.With("org_id", orgID)}
			err := o.work(ctx)
			if err != nil && ctx.Err() == nil {
				o.log.WarnContext(ctx, "build runner cannot be looked after", "err", err)
			}
			if err == nil && o.done {
				f.unwatch(orgID, times)
			}
			return nil
		})
	}
	return len(asked), group.Wait()
}

// asked are the orgs for which Ensure was called, with how often.
func (f *Fleet) asked() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.watched)
}

// unwatch forgets an org, unless it was asked for again meanwhile.
func (f *Fleet) unwatch(orgID string, times int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.watched[orgID] == times {
		delete(f.watched, orgID)
	}
}

// see remembers the pods, and of others nothing.
func (f *Fleet) see(pods map[string]*corev1.Pod) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pods = make(map[string]*corev1.Pod, len(pods))
	living := map[types.UID]bool{}
	for orgID, pod := range pods {
		f.pods[orgID] = pod
		living[pod.UID] = f.tidied[pod.UID]
	}
	f.tidied = living
}

// aliases lead the host of RunnerAPIURL to the Service Via.
func (f *Fleet) aliases(ctx context.Context) ([]corev1.HostAlias, error) {
	if f.config.Via == "" {
		return nil, nil
	}
	u, err := url.Parse(f.roster.RunnerAPIURL)
	if err != nil {
		return nil, err
	}
	addresses, err := net.DefaultResolver.LookupHost(ctx, f.config.Via)
	if err != nil {
		return nil, fmt.Errorf("where build runners find %s: %w", u.Hostname(), err)
	}
	if len(addresses) == 0 {
		return nil, errors.New("where build runners find " + u.Hostname() + ": " + f.config.Via + " has no address")
	}
	slices.Sort(addresses)
	var aliases []corev1.HostAlias
	for _, address := range addresses {
		aliases = append(aliases, corev1.HostAlias{IP: address, Hostnames: []string{u.Hostname()}})
	}
	return aliases, nil
}
