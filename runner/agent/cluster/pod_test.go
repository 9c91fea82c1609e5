package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-dev/berth/runner/engine/kubetest"
)

// patience is for what the cluster does by itself.
const patience = 30 * time.Second

// podIn is a pod of this name in a namespace of the real cluster, as the user
// that the kubeconfig says.
func podIn(t *testing.T, k *kubetest.Connection, namespace, name string) *Pod {
	t.Helper()
	access, err := File(k.Kubeconfig)(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	client, err := Connect(t.Context(), access)
	if err != nil {
		t.Fatal(err)
	}
	return &Pod{Client: client, Namespace: namespace, Name: name, UID: "uid-of-" + name, Node: "node-1", authority: access.Authority}
}

func TestInPodSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	env := map[string]string{
		"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443",
		"BERTH_POD_NAMESPACE": "berth-acme", "BERTH_POD_NAME": "runner", "BERTH_POD_UID": "u",
	}
	if _, err := inPod(func(name string) string { return env[name] }, t.TempDir()); err == nil || !strings.Contains(err.Error(), "authority") {
		t.Errorf("without the pod's files: %v", err)
	}
	delete(env, "BERTH_POD_UID")
	if _, err := inPod(func(name string) string { return env[name] }, t.TempDir()); err == nil || !strings.Contains(err.Error(), "--in-cluster") {
		t.Errorf("outside of a pod: %v", err)
	}
}

// The token of a pod is read for each call, and what is made of the answers is
// what kubectl would make.
func TestInPod(t *testing.T) {
	t.Parallel()
	k := kubetest.Cluster(t)
	namespace := k.Namespace(t)
	_, err := k.Client.CoreV1().ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: EngineAccount}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	admin := podIn(t, k, namespace, "runner-1")
	access, err := admin.Source()(t.Context(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if len(access.Secrets) != 1 || !strings.Contains(string(access.Kubeconfig), access.Secrets[0]) {
		t.Fatalf("the token is no secret of the job: %d", len(access.Secrets))
	}
	engine, err := Connect(t.Context(), access)
	if err != nil {
		t.Fatal(err)
	}
	var review struct {
		Status struct {
			UserInfo struct {
				Username string `json:"username"`
			} `json:"userInfo"`
		} `json:"status"`
	}
	ask := map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
	if err := engine.Post(t.Context(), "/apis/authentication.k8s.io/v1/selfsubjectreviews", ask, &review); err != nil {
		t.Fatal(err)
	}
	if want := "system:serviceaccount:" + namespace + ":" + EngineAccount; review.Status.UserInfo.Username != want {
		t.Errorf("the engine is %s, want %s", review.Status.UserInfo.Username, want)
	}
	// The same token as the file of a pod: as that account, which may do nothing.
	dir := t.TempDir()
	for name, text := range map[string]string{"ca.crt": string(access.Authority), "token": access.Secrets[0] + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	host, port, err := net.SplitHostPort(strings.TrimPrefix(access.Server, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{
		"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port,
		"BERTH_POD_NAMESPACE": namespace, "BERTH_POD_NAME": "runner", "BERTH_POD_UID": "u",
	}
	pod, err := inPod(func(name string) string { return env[name] }, dir)
	if err != nil {
		t.Fatal(err)
	}
	outputs, err := pod.Outputs(t.Context())
	if err != nil || outputs["namespace"] != namespace || !strings.HasPrefix(outputs["cluster_version"].(string), "v1.") {
		t.Errorf("outputs: %v, %v", outputs, err)
	}
	if _, err := pod.Source()(t.Context(), time.Hour); !IsStatus(err, http.StatusForbidden) {
		t.Errorf("a pod without rights got a token: %v", err)
	}
}

var quick = leaseTimes{duration: 3 * time.Second, every: 200 * time.Millisecond, renewWithin: time.Second, look: 50 * time.Millisecond}

func newLease(t *testing.T, k *kubetest.Connection) (namespace string) {
	t.Helper()
	namespace = k.Namespace(t)
	_, err := k.Client.CoordinationV1().Leases(namespace).Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: LeaseName}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return namespace
}

// One pod has the lease; the next gets it when it is given up, when its holder
// falls silent, and at once when its holder is shown dead.
func TestLease(t *testing.T) {
	t.Parallel()
	k := kubetest.Cluster(t)
	namespace := newLease(t, k)
	alive := LeaseConfig{Data: "1:2", Locked: func() bool { return true }, Log: slog.New(slog.DiscardHandler), times: quick}

	first, release, err := podIn(t, k, namespace, "one").Hold(t.Context(), alive)
	if err != nil {
		t.Fatal(err)
	}
	waiting := make(chan error, 1)
	got := make(chan func() (context.Context, func()), 1)
	go func() {
		held, release, err := podIn(t, k, namespace, "two").Hold(t.Context(), alive)
		got <- func() (context.Context, func()) { return held, release }
		waiting <- err
	}()
	select {
	case err := <-waiting:
		t.Fatalf("two pods have the lease: %v", err)
	case <-time.After(2 * quick.duration): // longer than the lease, which is renewed
	}
	if first.Err() != nil {
		t.Fatalf("the holder lost its lease: %v", context.Cause(first))
	}
	release()
	if err := within(t, waiting); err != nil {
		t.Fatal(err)
	}
	second, releaseSecond := (<-got)()

	// A third pod that sees nobody on the same volume takes over; the second
	// notices and stops.
	dead := alive
	dead.Locked = func() bool { return false }
	_, releaseThird, err := podIn(t, k, namespace, "three").Hold(t.Context(), dead)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-second.Done():
	case <-time.After(patience):
		t.Fatal("the pod that lost the lease goes on")
	}
	if cause := context.Cause(second); !errors.Is(cause, ErrLeaseLost) || !strings.Contains(cause.Error(), "three") {
		t.Errorf("it stopped because of %v", cause)
	}
	releaseSecond()
	releaseThird()
	now, err := k.Client.CoordinationV1().Leases(namespace).Get(t.Context(), LeaseName, metav1.GetOptions{})
	if err != nil || now.Spec.HolderIdentity != nil && *now.Spec.HolderIdentity != "" {
		t.Errorf("the lease was not given up: %+v, %v", now.Spec, err)
	}
}

// A holder that died without a word is waited for, as long as its lease lasts.
func TestLeaseOfTheSilent(t *testing.T) {
	t.Parallel()
	k := kubetest.Cluster(t)
	namespace := newLease(t, k)
	silent := &holder{
		pod: podIn(t, k, namespace, "gone"), me: "gone/uid", cfg: LeaseConfig{Data: "9:9", times: quick, Log: slog.New(slog.DiscardHandler)},
	}
	if other, err := silent.take(t.Context()); err != nil || other != "" {
		t.Fatalf("%s, %v", other, err)
	}
	began := time.Now()
	_, release, err := podIn(t, k, namespace, "next").Hold(t.Context(), LeaseConfig{
		Data: "1:2", Locked: func() bool { return false }, Log: slog.New(slog.DiscardHandler), times: quick,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if took := time.Since(began); took < quick.duration {
		t.Errorf("the lease was taken after %s, and lasts %s", took, quick.duration)
	}
}

// Who cannot say that it still lives stops before others may take over.
func TestLeaseThatCannotBeRenewed(t *testing.T) {
	t.Parallel()
	k := kubetest.Cluster(t)
	namespace := newLease(t, k)
	pod := podIn(t, k, namespace, "one")
	held, release, err := pod.Hold(t.Context(), LeaseConfig{Log: slog.New(slog.DiscardHandler), Locked: func() bool { return true }, times: quick})
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if err := k.Client.CoordinationV1().Leases(namespace).Delete(t.Context(), LeaseName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	select {
	case <-held.Done():
	case <-time.After(patience):
		t.Fatal("it goes on")
	}
	if cause := context.Cause(held); !errors.Is(cause, ErrLeaseLost) {
		t.Errorf("it stopped because of %v", cause)
	}
	if took := time.Since(began); took > quick.duration {
		t.Errorf("it stopped after %s, and its lease lasts %s", took, quick.duration)
	}
}

// The switch follows the ConfigMap: as it is, as it changes, and as it goes.
func TestFollowSwitch(t *testing.T) {
	t.Parallel()
	k := kubetest.Cluster(t)
	namespace := k.Namespace(t)
	maps := k.Client.CoreV1().ConfigMaps(namespace)
	_, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: SwitchName}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	seen := make(chan Switch, 16)
	done := make(chan error, 1)
	go func() {
		done <- podIn(t, k, namespace, "one").FollowSwitch(ctx, slog.New(slog.DiscardHandler), func(s Switch) error {
			seen <- s
			return nil
		})
	}()
	want := func(mode string) {
		t.Helper()
		for deadline := time.After(patience); ; {
			select {
			case s := <-seen:
				if s.Mode == mode {
					return
				}
			case <-deadline:
				t.Fatalf("the switch never stood at %q", mode)
			}
		}
	}
	want("")
	patch, err := json.Marshal(map[string]any{"data": map[string]string{"mode": "pause", "reason": "audit"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Patch(t.Context(), SwitchName, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	want("pause")
	if err := maps.Delete(t.Context(), SwitchName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	want("")
	cancel()
	if err := within(t, done); !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
}

func within[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}
