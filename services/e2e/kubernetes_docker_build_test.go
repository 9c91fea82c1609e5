package e2e_test

import (
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

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// TestKubernetesDockerBuild: a Build Runner that is a pod builds an image with a
// BuildKit elsewhere, over mutual TLS, with a build secret out of the cluster; the
// next pod takes over what the one before has built, also from another BuildKit.
func TestKubernetesDockerBuild(t *testing.T) {
	t.Parallel()
	tools := buildKit(t)
	b := newBuilders(t)
	var me ctlapi.Me
	b.get("/me", &me)
	node := b.nodeAddress()
	address, keys, forget := b.distantBuildKit(tools, node)
	name := strings.ReplaceAll(me.Org.ID, "_", "-")
	b.kubectl("create", "secret", "generic", "buildkit-"+name, "--from-file", keys)
	b.kubectl("create", "secret", "generic", "build-secrets-"+name, "--from-literal", "token=the-vendors-own-token-4711")
	b.signal(b.up.Process.Pid, syscall.SIGTERM) // the front stays
	<-b.ended
	b.env = append(b.env, "BERTH_BUILDKIT_ADDR="+address, "BERTH_BUILDKIT_ORG="+me.Org.ID,
		"BERTH_BUILD_RUNNER_BUILDKIT_TLS=buildkit-{org}", "BERTH_BUILD_RUNNER_BUILD_SECRETS=build-secrets-{org}")
	b.launch()

	app := folder(t, "testdata/probe")
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(busybox)
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(app, "src/web/busybox"), string(program))
	dockerfile := `FROM scratch AS build
COPY --chmod=755 busybox /bin/
SHELL ["/bin/busybox", "sh", "-euc"]
RUN --mount=type=secret,id=token echo "a long step" > /made; /bin/busybox test -s /run/secrets/token
COPY page /page
`
	put(t, filepath.Join(app, "src/web/Dockerfile"), dockerfile)
	put(t, filepath.Join(app, "src/web/page"), "one")
	put(t, filepath.Join(app, "components/web.toml"), "name = \"web\"\ntype = \"docker_build\"\ndockerfile = \"Dockerfile\"\nsecrets = [\"token\"]\n\n[berth]\nlocal_source = \"src/web\"\n")
	first := b.logOf(b.sync("probe", app), "web")
	for _, want := range []string{"no cache of earlier builds is kept", "pushed ", "kept the cache of this build"} {
		if !strings.Contains(first, want) {
			t.Errorf("no %q in the log:\n%s", want, first)
		}
	}

	// Another pod, and a BuildKit that has forgotten everything.
	b.kubectl("delete", "pods", "--selector", "app.kubernetes.io/name=build-runner")
	forget()
	put(t, filepath.Join(app, "src/web/page"), "two")
	second := b.logOf(b.sync("probe", app), "web")
	for _, want := range []string{"cache of earlier builds: ", ": cached"} {
		if !strings.Contains(second, want) {
			t.Errorf("no %q in the log:\n%s", want, second)
		}
	}
	if strings.Contains(first+second, "the-vendors-own-token-4711") {
		t.Error("the secret is in a log")
	}
	t.Logf("%s\n%s", first, second)
}

// logOf is the log of the build of a component.
func (b *builders) logOf(r ctlapi.Release, component string) string {
	b.t.Helper()
	for _, item := range r.Items {
		if item.Component == component {
			return b.must("logs", item.BuildID)
		}
	}
	b.t.Fatalf("release %d has no %s", r.Number, component)
	return ""
}

// distantBuildKit is one that pods reach on the node's address. keys is the directory
// of what a client needs; forget starts it again, without its cache.
func (b *builders) distantBuildKit(tools, node string) (address, keys string, forget func()) {
	t := b.t
	t.Helper()
	dir := t.TempDir()
	script := `set -e
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=authority -keyout ca.key -out ca.pem
for who in client server; do
  mkdir $who
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=$who -keyout $who/key.pem -out $who.csr
  printf "subjectAltName=IP:%s\nextendedKeyUsage=${who}Auth\n" "$1" >$who.ext
  openssl x509 -req -days 1 -in $who.csr -CA ca.pem -CAkey ca.key -CAcreateserial -extfile $who.ext -out $who/cert.pem
  cp ca.pem $who/
done`
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script, "bash", node)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("certificates: %v\n%s", err, out)
	}
	address = "tcp://" + freeAddress(t, node)
	server := filepath.Join(dir, "server")
	config := fmt.Sprintf("root = %q\n[grpc]\n  address = [%q]\n  [grpc.tls]\n    cert = %q\n    key = %q\n    ca = %q\n[otel]\n  socketPath = %q\n[worker.containerd]\n  enabled = false\n[worker.oci]\n  networkMode = \"host\"\n",
		filepath.Join(dir, "root"), address, server+"/cert.pem", server+"/key.pem", server+"/ca.pem", filepath.Join(dir, "otel"))
	file := filepath.Join(dir, "buildkitd.toml")
	put(t, file, config)
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	listens := func() error {
		conn, err := net.Dial("tcp", strings.TrimPrefix(address, "tcp://"))
		if err == nil {
			_ = conn.Close()
		}
		return err
	}
	var daemon *exec.Cmd
	begin := func() {
		daemon = exec.Command("unshare", "--pid", "--mount", "--fork", "--mount-proc", "--kill-child", filepath.Join(tools, "buildkitd"), "--config", file)
		daemon.Stdout, daemon.Stderr = log, log
		if err := daemon.Start(); err != nil {
			t.Fatal(err)
		}
		b.eventually(time.Minute, "BuildKit listens", listens)
	}
	end := func() {
		_ = daemon.Process.Kill()
		_ = daemon.Wait()
		// The kernel ends the daemon itself a moment after the one that started it.
		b.eventually(10*time.Second, "BuildKit listens no more", func() error {
			if listens() == nil {
				return errors.New("it listens though it was killed")
			}
			return nil
		})
	}
	begin()
	t.Cleanup(func() {
		end()
		_ = log.Close()
		if raw, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("log of BuildKit:\n%s", raw)
		}
	})
	return address, filepath.Join(dir, "client"), func() {
		end()
		if err := os.RemoveAll(filepath.Join(dir, "root")); err != nil {
			t.Fatal(err)
		}
		begin()
	}
}
