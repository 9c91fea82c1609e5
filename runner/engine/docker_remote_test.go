package engine_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/buildkit"
	"github.com/berth-dev/berth/runner/agent/buildkit/buildkittest"
)

// authority signs certificates of one BuildKit and of those who may use it.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := authority{key: key, cert: &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "tests"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}}
	return a
}

// give writes what somebody gets of the authority: ca.pem, and cert.pem and key.pem
// that it has signed.
func (a authority) give(t *testing.T, usage x509.ExtKeyUsage) (dir string) {
	t.Helper()
	dir = t.TempDir()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "leaf"}, NotBefore: a.cert.NotBefore, NotAfter: a.cert.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	write := func(name, kind string, der []byte, err error) {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, a.cert, a.cert, a.key.Public(), a.key)
	write("ca.pem", "CERTIFICATE", der, err)
	der, err = x509.CreateCertificate(rand.Reader, leaf, a.cert, key.Public(), a.key)
	write("cert.pem", "CERTIFICATE", der, err)
	der, err = x509.MarshalECPrivateKey(key)
	write("key.pem", "EC PRIVATE KEY", der, err)
	return dir
}

// A distant is a BuildKit that the operator runs, and that Build Runners know by its
// address.
type distant struct {
	address string
	cmd     *exec.Cmd
}

// newDistant starts one that takes whom the authority knows.
func newDistant(t *testing.T, a authority) *distant {
	t.Helper()
	programs := buildkittest.Programs(t)
	dir, tls := t.TempDir(), a.give(t, x509.ExtKeyUsageServerAuth)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &distant{address: "tcp://" + l.Addr().String()}
	_ = l.Close()
	config := fmt.Sprintf("root = %q\n[grpc]\n  address = [%q]\n  [grpc.tls]\n    cert = %q\n    key = %q\n    ca = %q\n[otel]\n  socketPath = %q\n[worker.containerd]\n  enabled = false\n[worker.oci]\n  networkMode = \"host\"\n",
		filepath.Join(dir, "root"), d.address, tls+"/cert.pem", tls+"/key.pem", tls+"/ca.pem", filepath.Join(dir, "otel"))
	file := filepath.Join(dir, "buildkitd.toml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	// With it end its RUN steps and mounts.
	d.cmd = exec.Command("unshare", "--pid", "--mount", "--fork", "--mount-proc", "--kill-child", filepath.Join(programs, "buildkitd"), "--config", file)
	d.cmd.Stdout, d.cmd.Stderr = log, log
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d.end()
		if raw, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("log of the daemon:\n%s", raw)
		}
		_ = log.Close()
	})
	wait(t, "BuildKit listens", func() bool {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(d.address, "tcp://"))
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	return d
}

func (d *distant) end() {
	_ = d.cmd.Process.Kill()
	_ = d.cmd.Wait()
}

// A Build Runner builds with a BuildKit that it knows by address, over mutual TLS:
// the image is the one that its own BuildKit would make. Who shows no certificate, or
// one of another authority, builds nothing; a BuildKit that goes away in the middle
// costs the build, and says so.
func TestDockerBuildByAddress(t *testing.T) {
	t.Parallel()
	files := map[string]string{"Dockerfile": shell + "RUN echo made > /b\n"}
	own := newAuthority(t)
	there := newDistant(t, own)
	settings := buildkit.Settings{Address: there.address, Org: "org_1", TLS: own.give(t, x509.ExtKeyUsageClientAuth)}

	k := newKitchen(t, settings)
	j := k.job(t, jobspec.Docker{}, files)
	j.must(t)
	local := newKitchen(t, buildkit.Settings{}).job(t, jobspec.Docker{}, files)
	local.must(t)
	if got, want := j.image(t).digest, local.image(t).digest; got != want {
		t.Errorf("the BuildKit elsewhere made %s, the runner's own one %s", got, want)
	}

	t.Run("strangers", func(t *testing.T) {
		other := newAuthority(t)
		mixed := own.give(t, x509.ExtKeyUsageClientAuth) // knows the daemon, which does not know it
		foreign := other.give(t, x509.ExtKeyUsageClientAuth)
		for _, name := range []string{"cert.pem", "key.pem"} {
			raw, err := os.ReadFile(filepath.Join(foreign, name))
			if err != nil {
				t.Fatal(err)
			}
			overwrite(t, filepath.Join(mixed, name), string(raw))
		}
		for name, tt := range map[string]struct{ tls, want, remedy string }{
			"a certificate of another authority": {mixed, "BuildKit does not answer", "BERTH_BUILDKIT_TLS"},
			"a daemon of another authority":      {foreign, "certificate signed by unknown authority", "BERTH_BUILDKIT_TLS"},
			"no TLS at all":                      {"", "BuildKit does not answer", "BERTH_BUILDKIT_TLS"},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				r := newKitchen(t, buildkit.Settings{Address: there.address, Org: "org_1", TLS: tt.tls}).job(t, jobspec.Docker{}, files).run(t)
				if r.Outcome != jobspec.OutcomeFailed {
					t.Errorf("outcome %s", r.Outcome)
				}
				wantContains(t, "error", r.Error, tt.want)
				wantContains(t, "remedy", r.Remedy, tt.remedy)
				t.Logf("%s; %s", r.Error, r.Remedy)
			})
		}
	})

	mark := fmt.Sprintf("32%d", os.Getpid())
	long := map[string]string{"Dockerfile": shell + "RUN echo it begins; /bin/busybox sleep " + mark + "\n"}
	begun := func() (*jobDir, *exec.Cmd) {
		j := k.job(t, jobspec.Docker{}, long)
		cmd := j.start(t)
		wait(t, "the step begins", func() bool { return strings.Contains(j.log(t), "| it begins") && running(mark) })
		return j, cmd
	}
	j, cmd := begun()
	stop(t, cmd)
	if r := j.finish(t, cmd); r.Outcome != jobspec.OutcomeCancelled {
		t.Errorf("a build that was stopped: %s: %s", r.Outcome, r.Error)
	}
	wait(t, "the step ends in BuildKit", func() bool { return !running(mark) })

	j, cmd = begun()
	there.end()
	r := j.finish(t, cmd)
	if r.Outcome != jobspec.OutcomeFailed || !strings.Contains(r.Remedy, "build again") {
		t.Errorf("a BuildKit that goes away: %s: %s; %s", r.Outcome, r.Error, r.Remedy)
	}
	t.Logf("%s; %s", r.Error, r.Remedy)
	r = k.job(t, jobspec.Docker{}, files).run(t)
	if r.Outcome != jobspec.OutcomeFailed || !strings.Contains(r.Error, "BuildKit does not answer") {
		t.Errorf("a BuildKit that is not there: %s: %s", r.Outcome, r.Error)
	}
	t.Logf("%s; %s", r.Error, r.Remedy)
}
