package pods

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/services/builder/internal/database"
	"github.com/berth-dev/berth/services/builder/internal/fleet/roster"
	"github.com/berth-dev/berth/services/builder/internal/orders"
	"github.com/berth-dev/berth/services/internal/logtest"
	"github.com/berth-dev/berth/services/internal/pgtest"
	"github.com/berth-dev/berth/services/internal/store"
)

// The fleet is tested with a real database and a real API server, as builder's
// service account with the rights of the manifests. Its pods never start: their
// image is nowhere. What a runner does in one is for the end-to-end test.
type yard struct {
	t         *testing.T
	db        *pgtest.DB
	admin     *kubernetes.Clientset
	rest      *rest.Config
	namespace string
	config    Config
	logs      *logtest.Log
}

func newYard(t *testing.T) *yard {
	t.Helper()
	if os.Getenv("KUBECONFIG") == "" {
		t.Skip("kubernetes: KUBECONFIG names no cluster; make kube starts one")
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.Burst = 100, 200
	admin, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	suffix := make([]byte, 4)
	_, _ = rand.Read(suffix) // never fails
	y := &yard{t: t, db: pgtest.New(t), admin: admin, rest: config, namespace: "pods-" + hex.EncodeToString(suffix), logs: &logtest.Log{}}
	keys, err := orders.Open(filepath.Join(t.TempDir(), "orders.key"))
	if err != nil {
		t.Fatal(err)
	}
	y.config = Config{
		Roster:     &roster.Roster{Store: database.New(y.db.AsRole(store.RoleBuilder)), Keys: keys, RunnerAPIURL: "https://front.example"},
		Kubeconfig: y.rights(), Namespace: y.namespace, Image: "127.0.0.1:1/none@sha256:" + strings.Repeat("0", 64),
		MaxAge: time.Hour, MaxIdle: time.Hour, CPU: "1m", Memory: "1Mi", MemoryLimit: "64Mi", Disk: "1Mi",
		Log: slog.New(slog.NewTextHandler(y.logs, nil)),
	}
	return y
}

// rights makes the namespace with builder's Role in it, and returns a kubeconfig
// of builder's service account.
func (y *yard) rights() string {
	t := y.t
	t.Helper()
	manifests, err := os.ReadFile("../../../../../deploy/k8s/builds/builds.yaml")
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	for _, document := range strings.Split(strings.ReplaceAll(string(manifests), "berth-builds", y.namespace), "\n---\n") {
		var kind metav1.TypeMeta
		decode := func(into any) {
			if err := yaml.Unmarshal([]byte(document), into); err != nil {
				t.Fatal(err)
			}
		}
		decode(&kind)
		switch kind.Kind {
		case "Namespace":
			var o corev1.Namespace
			decode(&o)
			_, err = y.admin.CoreV1().Namespaces().Create(ctx, &o, metav1.CreateOptions{})
			t.Cleanup(func() {
				if err := y.admin.CoreV1().Namespaces().Delete(context.WithoutCancel(ctx), y.namespace, metav1.DeleteOptions{}); err != nil {
					t.Error(err)
				}
			})
		case "Role":
			var o rbacv1.Role
			decode(&o)
			_, err = y.admin.RbacV1().Roles(y.namespace).Create(ctx, &o, metav1.CreateOptions{})
		case "RoleBinding":
			var o rbacv1.RoleBinding
			decode(&o)
			o.Subjects[0].Namespace = y.namespace // where builder is, here
			_, err = y.admin.RbacV1().RoleBindings(y.namespace).Create(ctx, &o, metav1.CreateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "builder"}}
	if _, err := y.admin.CoreV1().ServiceAccounts(y.namespace).Create(ctx, account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return y.kubeconfig("builder")
}

// kubeconfig is a file with a token of a service account.
func (y *yard) kubeconfig(account string) string {
	y.t.Helper()
	token, err := y.admin.CoreV1().ServiceAccounts(y.namespace).CreateToken(y.t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		y.t.Fatal(err)
	}
	config := api.NewConfig()
	config.Clusters["c"] = &api.Cluster{Server: y.rest.Host, CertificateAuthority: y.rest.CAFile, CertificateAuthorityData: y.rest.CAData}
	config.AuthInfos["u"] = &api.AuthInfo{Token: token.Status.Token}
	config.Contexts["x"] = &api.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	path := filepath.Join(y.t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		y.t.Fatal(err)
	}
	return path
}

// fleet runs until the returned function is called.
func (y *yard) fleet() (_ *Fleet, stop func()) {
	y.t.Helper()
	f, err := New(y.config)
	if err != nil {
		y.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(y.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			y.t.Errorf("fleet: %v", err)
		}
	})
	y.t.Cleanup(stop)
	return f, stop
}

func (y *yard) exec(sql string, args ...any) {
	y.t.Helper()
	if _, err := y.db.Admin().Exec(y.t.Context(), sql, args...); err != nil {
		y.t.Fatalf("%s: %v", sql, err)
	}
}

// org is one with a build that is queued.
func (y *yard) org(name string) string {
	y.t.Helper()
	org, app, component, revision := id.New(id.Org), id.New(id.App), id.New(id.Component), id.New(id.Revision)
	y.exec(`insert into orgs (org_id, name) values ($1, $2)`, org, name)
	y.exec(`insert into apps (id, org_id, name) values ($1, $2, 'app')`, app, org)
	y.exec(`insert into components (id, org_id, app_id, kind, name) values ($1, $2, $3, 'component', 'c')`, component, org, app)
	y.exec(`insert into component_revisions (id, org_id, component_id, type, spec, build_digest, deploy_digest) values ($1, $2, $3, 'helm_chart', '{}', 'd', 'd')`, revision, org, component)
	y.exec(`insert into builds (id, org_id, app_id, component_id, revision_id, build_digest, source, requested_by) values ($1, $2, $3, $4, $5, 'd', '{}', 'test')`,
		id.New(id.Build), org, app, component, revision)
	return org
}

// end ends the org's build.
func (y *yard) end(org string) {
	y.exec(`update builds set state = 'failed', finished_at = now() where org_id = $1`, org)
}

func (y *yard) ensure(f *Fleet, org string) string {
	y.t.Helper()
	runner, ready, err := f.Ensure(y.t.Context(), org)
	if err != nil || ready {
		y.t.Fatalf("ready %t without a machine that enrolled, %v", ready, err)
	}
	return runner
}

// pods are all by their org.
func (y *yard) pods() map[string]*corev1.Pod {
	y.t.Helper()
	list, err := y.admin.CoreV1().Pods(y.namespace).List(y.t.Context(), metav1.ListOptions{})
	if err != nil {
		y.t.Fatal(err)
	}
	pods := map[string]*corev1.Pod{}
	for i := range list.Items {
		pods[list.Items[i].Labels[labelOrg]] = &list.Items[i]
	}
	if len(pods) != len(list.Items) {
		y.t.Fatalf("%d pods of %d orgs", len(list.Items), len(pods))
	}
	return pods
}

func (y *yard) eventually(what string, is func() bool) {
	y.t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			y.t.Fatalf("never: %s\n%s", what, y.logs)
		}
	}
}

// has waits until the org has a pod that is not ending and that can enrol, or has
// enrolled, and returns it.
func (y *yard) has(org string) (pod *corev1.Pod) {
	y.t.Helper()
	y.eventually("a pod of "+org, func() bool {
		pod = y.pods()[org]
		if pod == nil || pod.DeletionTimestamp != nil {
			return false
		}
		state, err := y.config.Roster.Look(y.t.Context(), org, pod.Labels[labelRunner], enrolment(pod))
		return err == nil && state != roster.SecretDead
	})
	return pod
}

func (y *yard) hasAnother(org string, than *corev1.Pod) (pod *corev1.Pod) {
	y.t.Helper()
	y.eventually("another pod of "+org, func() bool { pod = y.has(org); return pod.UID != than.UID })
	return pod
}

// looks waits until the fleet has surely looked again.
func (y *yard) looks() {
	time.Sleep(3 * lookEvery) // it is nothing that could be waited for: that nothing happens
}

func TestOrgsAreApart(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	f, _ := y.fleet()
	one, two := y.org("one"), y.org("two")
	y.ensure(f, one)
	y.ensure(f, two)
	a, b := y.has(one), y.has(two)
	for _, pod := range []*corev1.Pod{a, b} {
		spec := pod.Spec
		if spec.ServiceAccountName != pod.Name || spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken {
			t.Errorf("%s has the account %s, with its token %v", pod.Name, spec.ServiceAccountName, spec.AutomountServiceAccountToken)
		}
		account, err := y.admin.CoreV1().ServiceAccounts(y.namespace).Get(t.Context(), spec.ServiceAccountName, metav1.GetOptions{})
		if err != nil || account.AutomountServiceAccountToken == nil || *account.AutomountServiceAccountToken {
			t.Errorf("its account mounts a token, %v", err)
		}
		var volumes []string
		for _, v := range spec.Volumes {
			switch {
			case v.EmptyDir != nil && v.EmptyDir.SizeLimit != nil:
				volumes = append(volumes, "own")
			case v.Secret != nil:
				volumes = append(volumes, v.Secret.SecretName)
			default:
				t.Errorf("%s has the volume %v", pod.Name, v)
			}
		}
		if diff := cmp.Diff([]string{"own", "own", pod.Name}, volumes); diff != "" {
			t.Errorf("volumes of %s (-want +got):\n%s", pod.Name, diff)
		}
	}
	if a.Name == b.Name {
		t.Error("two orgs have pods of one name")
	}
	secrets := map[string]string{}
	for _, pod := range []*corev1.Pod{a, b} {
		secret, err := y.admin.CoreV1().Secrets(y.namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		text := string(secret.Data[fileEnrolment])
		secrets[text] = string(secret.Data[fileTrust])
		if whole := fmt.Sprint(pod); strings.Contains(whole, strings.TrimSpace(text)) || strings.Contains(y.logs.String(), strings.TrimSpace(text)) {
			t.Error("the enrolment secret is in the pod or the log")
		}
	}
	if len(secrets) != 2 {
		t.Errorf("%d enrolment secrets", len(secrets))
	}
	trusts := map[string]bool{}
	for _, trust := range secrets {
		trusts[trust] = true
	}
	if len(trusts) != 2 {
		t.Error("two orgs trust one key")
	}
}

// Two builders, of which one dies while it works, make nothing twice and leave
// nothing undone.
func TestBuildersThatDie(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	org := y.org("one")
	first, stop := y.fleet()
	second, _ := y.fleet()
	y.ensure(first, org)
	y.ensure(second, org)
	pod := y.has(org)
	stop()
	y.looks()
	if now := y.has(org); now.UID != pod.UID {
		t.Error("the pod was replaced")
	}
	// The next builder knows nothing but the rows and the pods.
	if err := y.admin.CoreV1().Pods(y.namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		t.Fatal(err)
	}
	y.hasAnother(org, pod)
	var open int
	if err := y.db.Admin().QueryRow(t.Context(), `select count(*) from enrolments where org_id = $1 and state = 'open'`, org).Scan(&open); err != nil || open != 1 {
		t.Errorf("%d secrets work, want 1; %v", open, err)
	}
}

// A job for a machine that is gone would be refused by the next one.
func TestMachineThatIsGoneIsNotReady(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	org := y.org("one")
	f, stop := y.fleet()
	runner := y.ensure(f, org)
	pod := y.has(org)
	y.exec(`update enrolments set state = 'used', bound_key = 'K' where runner_id = $1`, runner)
	y.eventually("it is ready", func() bool {
		_, ready, err := f.Ensure(t.Context(), org)
		return err == nil && ready
	})
	stop() // it saw the pod, and looks no more
	if err := y.admin.CoreV1().Pods(y.namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		t.Fatal(err)
	}
	y.ensure(f, org)
}

func TestHalfMadePodIsFinished(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	org := y.org("one")
	f, err := New(y.config)
	if err != nil {
		t.Fatal(err)
	}
	runner := y.ensure(f, org)
	// Killed between the Secret and the pod.
	if _, err := f.cluster.ServiceAccounts(y.namespace).Create(t.Context(), f.account(org, runner), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{fileEnrolment: []byte("left over")}
	if _, err := f.cluster.Secrets(y.namespace).Create(t.Context(), f.secret(org, runner, files), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	y.fleet()
	pod := y.has(org)
	secret, err := y.admin.CoreV1().Secrets(y.namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
	if err != nil || strings.Contains(string(secret.Data[fileEnrolment]), "left over") {
		t.Errorf("the secret of before is used, %v", err)
	}
	state, err := y.config.Roster.Look(t.Context(), org, runner, roster.HashSecret(strings.TrimSpace(string(secret.Data[fileEnrolment]))))
	if err != nil || state != roster.SecretOpen {
		t.Errorf("the secret in the cluster is %s, %v", state, err)
	}
}

// A pod comes, is tidied up after, grows old, is left while it builds, and ends.
func TestLifeOfAPod(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	y.config.MaxAge, y.config.MaxIdle = 8*time.Second, 8*time.Second
	f, _ := y.fleet()
	org := y.org("one")
	runner := y.ensure(f, org)
	pod := y.has(org)

	y.exec(`update enrolments set state = 'used', bound_key = 'K' where runner_id = $1`, runner)
	y.exec(`update runners set public_key = 'K', state = 'active' where id = $1`, runner)
	y.eventually("its Secret is deleted", func() bool {
		_, err := y.admin.CoreV1().Secrets(y.namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	if _, ready, err := f.Ensure(t.Context(), org); err != nil || !ready {
		t.Errorf("the machine that enrolled is ready %t, %v", ready, err)
	}

	job := id.New(id.Job)
	y.exec(`insert into runner_jobs (id, org_id, runner_id, build_id, kind, operation, spec, timeout_seconds, state)
		select $1, org_id, $2, id, 'helm_chart', 'build', '{}', 60, 'leased' from builds where org_id = $3`, job, runner, org)
	time.Sleep(time.Until(pod.CreationTimestamp.Add(y.config.MaxAge)))
	y.looks()
	if now := y.has(org); now.UID != pod.UID {
		t.Fatal("it was replaced in the middle of a build")
	}
	y.exec(`update runner_jobs set state = 'queued' where id = $1`, job)
	next := y.hasAnother(org, pod)
	if !strings.Contains(y.logs.String(), "it is old") {
		t.Errorf("it was replaced for another reason:\n%s", y.logs)
	}
	var replaces int
	err := y.db.Admin().QueryRow(t.Context(), `select count(*) from enrolments where runner_id = $1 and state = 'open' and replaces`, runner).Scan(&replaces)
	if err != nil || replaces != 1 {
		t.Errorf("%d secrets replace the machine before, %v", replaces, err)
	}

	y.end(org)
	y.eventually("nothing is left", func() bool {
		_, noAccount := y.admin.CoreV1().ServiceAccounts(y.namespace).Get(t.Context(), next.Name, metav1.GetOptions{})
		_, noSecret := y.admin.CoreV1().Secrets(y.namespace).Get(t.Context(), next.Name, metav1.GetOptions{})
		return len(y.pods()) == 0 && apierrors.IsNotFound(noAccount) && apierrors.IsNotFound(noSecret)
	})
}

func TestRevokedRunnerLosesItsPod(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	f, _ := y.fleet()
	org := y.org("one")
	first := y.ensure(f, org)
	pod := y.has(org)
	y.exec(`update runners set state = 'revoked' where id = $1`, first)
	y.eventually("the pod ends", func() bool { return len(y.pods()) == 0 })
	if second := y.ensure(f, org); second == first {
		t.Error("the revoked runner came back")
	}
	y.hasAnother(org, pod)
}

// Another secret of builder is other keys, and another image another pod.
func TestChangedSettingsReachPods(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	f, stop := y.fleet()
	org := y.org("one")
	y.ensure(f, org)
	pod := y.has(org)
	stop()
	keys, err := orders.Open(filepath.Join(t.TempDir(), "orders.key"))
	if err != nil {
		t.Fatal(err)
	}
	y.config.Roster = &roster.Roster{Store: y.config.Roster.Store, Keys: keys, RunnerAPIURL: y.config.Roster.RunnerAPIURL}
	_, stop = y.fleet()
	pod = y.hasAnother(org, pod)
	stop()
	y.config.Image = "127.0.0.1:1/none@sha256:" + strings.Repeat("1", 64)
	y.fleet()
	if now := y.hasAnother(org, pod); now.Spec.Containers[0].Image != y.config.Image {
		t.Errorf("the image is %s", now.Spec.Containers[0].Image)
	}
}

// builder's service account can do what it needs, and nothing else: each verb on
// each of these, here and elsewhere.
func TestRightsOfBuilder(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	config, err := clientcmd.BuildConfigFromFlags("", y.config.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.Burst = 100, 500
	builder, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	may := map[string]string{"pods": "create delete list", "secrets": "create delete", "serviceaccounts": "create delete"}
	for _, namespace := range []string{y.namespace, "default", "kube-system", ""} {
		for _, resource := range []string{
			"pods", "pods/exec", "pods/attach", "pods/portforward", "pods/ephemeralcontainers", "pods/log", "secrets", "serviceaccounts", "serviceaccounts/token",
			"configmaps", "deployments.apps", "roles.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io", "clusterroles.rbac.authorization.k8s.io", "nodes", "namespaces",
		} {
			for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "escalate", "bind", "impersonate"} {
				name, sub, _ := strings.Cut(resource, "/")
				name, group, _ := strings.Cut(name, ".")
				review, err := builder.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{
					Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
						Namespace: namespace, Group: group, Resource: name, Subresource: sub, Verb: verb,
					}},
				}, metav1.CreateOptions{})
				if err != nil {
					t.Fatal(err)
				}
				want := namespace == y.namespace && strings.Contains(" "+may[resource]+" ", " "+verb+" ")
				if review.Status.Allowed != want {
					t.Errorf("%s %s in %q: allowed %t, want %t", verb, resource, namespace, review.Status.Allowed, want)
				}
			}
		}
	}
	// Not only said, but kept.
	if _, err := builder.CoreV1().Secrets(y.namespace).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("it reads secrets: %v", err)
	}
	if _, err := builder.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("it sees pods elsewhere: %v", err)
	}
	bad := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "root"}, Spec: corev1.PodSpec{HostNetwork: true, Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	if _, err := builder.CoreV1().Pods(y.namespace).Create(t.Context(), bad, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("it makes pods that are not restricted: %v", err)
	}
}
