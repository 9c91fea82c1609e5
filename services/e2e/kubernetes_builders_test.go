package e2e_test

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// builders is a system whose Build Runners are pods; its builder has the rights of
// deploy/k8s/builds and no others.
type builders struct {
	*shop
	namespace string
	front     *exec.Cmd
	rows      *pgxpool.Pool
}

// TestKubernetesBuilders: builds go through a pod that comes and goes.
func TestKubernetesBuilders(t *testing.T) {
	t.Parallel()
	b := newBuilders(t) // limits of age and idleness are package pods' to test
	app := folder(t, "testdata/probe")
	b.sync("probe", app)
	first := b.pod()

	t.Run("the pod has no right, no token and no secret", func(t *testing.T) {
		b := b.on(t)
		if account := b.kubectl("get", "pod", "--output", "jsonpath={.items[*].spec.serviceAccountName}"); !strings.HasPrefix(account, "build-runner-org") {
			t.Errorf("its account is %q", account)
		}
		if out, err := b.exec("ls", "/var/run/secrets"); err == nil {
			t.Errorf("it has %s", out)
		}
		b.eventually(time.Minute, "the Secret is deleted", func() error {
			if left := b.kubectl("get", "secrets", "--output", "name"); strings.TrimSpace(left) != "" {
				return errors.New("there is " + left)
			}
			return nil
		})
		b.eventually(2*time.Minute, "the secret is gone from the pod", func() error { // kubelets look every minute
			out, err := b.exec("ls", "/run/berth/given")
			if err == nil && strings.TrimSpace(out) != "" {
				err = errors.New("there is " + out)
			}
			return err
		})
		if out, err := b.exec("bash", "-c", "tr '\\0' '\\n' </proc/1/environ; tr '\\0' ' ' </proc/1/cmdline"); err != nil || strings.Contains(out, "ben_") {
			t.Errorf("%v: environment and arguments are %s", err, out)
		}
	})

	t.Run("a builder that was killed goes on with the same pod", func(t *testing.T) {
		b := b.on(t)
		b.change(app, 1<<10)
		b.signal(b.pid("builder"), syscall.SIGKILL)
		b.sync("probe", app)
		if now := b.pod(); now != first {
			t.Errorf("the pod is %s, was %s", now, first)
		}
	})

	t.Run("a build whose pod is lost is made again by itself", func(t *testing.T) {
		b := b.on(t)
		b.change(app, 8<<20) // enough to be caught in the middle
		result := b.submit("probe", app)
		lost := b.leased(result.Config.ID)
		if _, err := b.command("kubectl", "--namespace", b.namespace, "delete", "pods", "--all", "--force", "--grace-period", "0"); err != nil {
			t.Fatal(err)
		}
		b.hold(syscall.SIGCONT)
		b.eventually(2*time.Minute, "the build succeeds", func() error {
			var build ctlapi.Build
			b.get("/builds/"+lost, &build)
			if build.State != ctlapi.BuildStateSucceeded {
				return fmt.Errorf("it is %s: %v", build.State, build.Error)
			}
			var made struct{ Remade int }
			if err := json.Unmarshal(*build.Provenance, &made); err != nil || made.Remade != 1 {
				t.Errorf("it was begun again %d times, %v", made.Remade, err)
			}
			return nil
		})
	})

	t.Run("a pod that has ended comes back with the next build", func(t *testing.T) {
		b := b.on(t)
		var before time.Time
		if err := b.rows.QueryRow(t.Context(), `select now()`).Scan(&before); err != nil {
			t.Fatal(err)
		}
		b.kubectl("delete", "pods", "--selector", "app.kubernetes.io/name=build-runner")
		b.change(app, 1<<10)
		b.sync("probe", app)
		b.pod()
		var refused int
		if err := b.rows.QueryRow(t.Context(), `select count(*) from berth.runner_jobs where state = 'refused' and queued_at > $1`, before).Scan(&refused); err != nil || refused != 0 {
			t.Errorf("%d jobs were ordered of the machine before, %v", refused, err)
		}
	})
}

// newBuilders starts a system with a front that pods reach.
func newBuilders(t *testing.T) *builders {
	t.Helper()
	if os.Getenv("KUBECONFIG") == "" {
		t.Skip("no cluster: set KUBECONFIG")
	}
	image := runnerImage(t)
	suffix := make([]byte, 4)
	_, _ = rand.Read(suffix) // never fails
	b := &builders{namespace: "pods-" + hex.EncodeToString(suffix)}
	cluster := &system{t: t, env: append(os.Environ(), "KUBECONFIG="+os.Getenv("KUBECONFIG"))}
	b.shop = &shop{install: &install{system: cluster}, namespace: b.namespace}
	kubeconfig := b.rights()

	node := b.nodeAddress()
	address := freeAddress(t, node)
	_, port, _ := net.SplitHostPort(address)
	cert, key, authority := certificates(t)
	b.system = start(t, "KUBECONFIG="+os.Getenv("KUBECONFIG"),
		"BERTH_BUILD_RUNNERS=pods", "BERTH_BUILD_RUNNER_KUBECONFIG="+kubeconfig, "BERTH_BUILD_RUNNER_NAMESPACE="+b.namespace,
		"BERTH_BUILD_RUNNER_IMAGE="+image, "BERTH_BUILD_RUNNER_URL=https://"+net.JoinHostPort(vendorHost, port),
		"BERTH_BUILD_RUNNER_VIA="+node, "BERTH_BUILD_RUNNER_CA_FILE="+authority)
	b.slow = 4 * time.Minute // a pod has to start, on a node that has other work
	b.front = exec.Command(filepath.Join(b.bin, "berth"), "front", "--listen", address, "--tls-cert", cert, "--tls-key", key)
	b.front.Env = b.env
	if err := b.front.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.hold(syscall.SIGCONT)
		_ = b.front.Process.Signal(syscall.SIGTERM)
		if err := b.front.Wait(); err != nil {
			t.Errorf("berth front ended with %v", err)
		}
	})
	b.rows = b.database()
	return b
}

// rights makes the namespace and a service account with builder's Role, as the
// manifests have them, and returns a kubeconfig of it.
func (b *builders) rights() string {
	t := b.t
	t.Helper()
	manifests, err := os.ReadFile(filepath.Join("..", "..", "deploy", "k8s", "builds", "builds.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	// The front of this test is no pod, so network policies are for another test.
	text, _, _ := strings.Cut(string(manifests), "---\n# Nothing but what the others say")
	text = strings.NewReplacer("berth-builds", b.namespace, "namespace: berth}", "namespace: "+b.namespace+"}").Replace(text)
	text += "---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: builder, namespace: " + b.namespace + "}\n"
	t.Cleanup(func() {
		if _, err := b.command("kubectl", "delete", "namespace", b.namespace, "--wait=false"); err != nil {
			t.Error(err)
		}
	})
	file := filepath.Join(t.TempDir(), "rights.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := b.command("kubectl", "apply", "--filename", file); err != nil {
		t.Fatal(err)
	}
	token, err := b.command("kubectl", "--namespace", b.namespace, "create", "token", "builder", "--duration", "1h")
	if err != nil {
		t.Fatal(err)
	}
	flattened, err := b.command("kubectl", "config", "view", "--raw", "--minify", "--flatten", "--output", "json")
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	if err := json.Unmarshal([]byte(flattened), &config); err != nil {
		t.Fatal(err)
	}
	for _, user := range config["users"].([]any) {
		user.(map[string]any)["user"] = map[string]any{"token": strings.TrimSpace(token)}
	}
	raw, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (b *builders) on(t *testing.T) *builders {
	own := *b
	own.shop = b.shop.on(t)
	return &own
}

// pod is the one Build Runner that there is: its name and its uid.
func (b *builders) pod() string {
	b.t.Helper()
	pods := strings.Fields(b.kubectl("get", "pods", "--output", `jsonpath={range .items[*]}{.metadata.name}/{.metadata.uid}{"\n"}{end}`))
	if len(pods) != 1 {
		b.t.Fatalf("there are %d pods, want 1: %v", len(pods), pods)
	}
	return pods[0]
}

func (b *builders) exec(args ...string) (string, error) {
	name, _, _ := strings.Cut(b.pod(), "/")
	return b.command("kubectl", append([]string{"--namespace", b.namespace, "exec", name, "--"}, args...)...)
}

// change gives a source of the app other contents, of so many bytes that do not get
// smaller.
func (b *builders) change(app string, size int) {
	b.t.Helper()
	contents := make([]byte, size)
	_, _ = rand.Read(contents) // never fails
	if err := os.WriteFile(filepath.Join(app, "src", "work", "ballast"), contents, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// hold stops the front, or lets it go on.
func (b *builders) hold(signal syscall.Signal) { _ = b.front.Process.Signal(signal) }

// leased waits until a build of a config is being worked on, and stops the front
// in the middle of it.
func (b *builders) leased(config string) (build string) {
	b.t.Helper()
	working := func() error {
		return b.rows.QueryRow(b.t.Context(), `select b.id from berth.builds b join berth.runner_jobs j on j.id = b.job_id
			join berth.config_items i on i.build_id = b.id where i.config_id = $1 and j.state = 'leased' limit 1`, config).Scan(&build)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(2 * time.Millisecond) {
		err := working()
		if err == nil {
			b.hold(syscall.SIGSTOP)
			break
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("no build is being worked on: %v", err)
		}
	}
	time.Sleep(time.Second) // what the front passed on before it was stopped is done by then
	if err := working(); err != nil {
		b.t.Fatalf("%v: all builds ended before the front was stopped, so this proves nothing", err)
	}
	return build
}
