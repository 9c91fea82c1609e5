package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	godigest "github.com/opencontainers/go-digest"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/services/builder/internal/registry"
	"github.com/berth-dev/berth/services/internal/s3test"
)

// asBuilder has this test's executable be berth-builder.
const asBuilder = "BERTH_TEST_BUILDER"

// replica is a builder in a process of its own.
type replica struct {
	cmd  *exec.Cmd
	host string
	said *bytes.Buffer
}

// replicas starts builders that share a bucket, a database and their keys, and
// nothing else; more are variables of theirs.
func (b *builder) replicas(count int, bucket s3test.Bucket, more ...string) []*replica {
	b.t.Helper()
	dir := b.t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
			b.t.Fatal(err)
		}
		return path
	}
	var random [32]byte
	_, _ = rand.Read(random[:])
	env := append(os.Environ(),
		asBuilder+"=1", "BERTH_DSN_FILE="+b.cfg.DSNFile, "BERTH_LIBEXEC="+b.cfg.Libexec, "BERTH_BUILD_WORKERS=2",
		"BERTH_REGISTRY_STORAGE=s3", "BERTH_REGISTRY_S3_BUCKET="+bucket.Name, "BERTH_REGISTRY_S3_REGION="+bucket.Region,
		"BERTH_REGISTRY_S3_ENDPOINT="+bucket.Endpoint, "BERTH_REGISTRY_S3_PATH_STYLE=true",
		"BERTH_REGISTRY_S3_ACCESS_KEY_FILE="+file("access", bucket.AccessKey), "BERTH_REGISTRY_S3_SECRET_KEY_FILE="+file("secret", bucket.SecretKey),
		"BERTH_REGISTRY_SECRET_FILE="+file("uploads", "secret of the tests"),
		"BERTH_ORDERS_KEY_FILE="+file("orders", "berth-master-key-v1:"+base64.StdEncoding.EncodeToString(random[:])))
	env = append(env, more...)
	var all []*replica
	for range count {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.t.Fatal(err)
		}
		r := &replica{host: listener.Addr().String(), said: &bytes.Buffer{}}
		listener.Close()
		r.cmd = exec.CommandContext(context.WithoutCancel(b.t.Context()), os.Args[0])
		data := b.t.TempDir()
		r.cmd.Env = slices.Concat(env, []string{"BERTH_DATA=" + data, "BERTH_REGISTRY_LISTEN=" + r.host})
		r.cmd.Stderr = r.said
		if err := r.cmd.Start(); err != nil {
			b.t.Fatal(err)
		}
		b.t.Cleanup(func() { r.kill(); endRunners(data) })
		all = append(all, r)
		b.await(r)
	}
	return all
}

func (b *builder) await(r *replica) {
	b.t.Helper()
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		req, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, "http://"+r.host+"/readyz", nil)
		if err != nil {
			b.t.Fatal(err)
		}
		if res, err := http.DefaultClient.Do(req); err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Now().After(deadline) {
			r.kill()
			b.t.Fatalf("a replica is not ready:\n%s", r.said)
		}
	}
}

// kill is for a replica that may be gone, and waits for its end.
func (r *replica) kill() {
	if r.cmd.ProcessState == nil {
		_ = r.cmd.Process.Kill()
		_ = r.cmd.Wait()
	}
}

// endRunners ends the Build Runners that a killed builder leaves for the next one.
func endRunners(data string) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is right
	for _, file := range files {
		raw, err := os.ReadFile(file)
		pid, bad := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil || bad != nil || pid == os.Getpid() || !bytes.Contains(raw, []byte("\x00"+data+"/")) {
			continue
		}
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// Two builders on one bucket and one database: builds of several orgs come
// through whichever of them a Build Runner reaches. When the one is killed that
// keeps the Build Runners, the other goes on with everything.
func TestTwoReplicas(t *testing.T) {
	t.Parallel()
	b := newBuilder(t)
	pair := b.replicas(2, s3test.New(t))

	type built struct{ org, build string }
	var all []built
	for range 4 {
		org, buildID := b.sync()
		b.wake("berth_ctl", org, buildID)
		all = append(all, built{org, buildID})
	}
	finish := func(one built, through *replica) {
		t.Helper()
		b.enrol(one.org, one.build)
		b.eventually("a job for the Build Runner", `select exists (select from runner_jobs where build_id = $1)`, one.build)
		b.eventually("its Build Runner may enrol", `select exists (select from enrolments where org_id = $1 and state = 'open')`, one.org)
		b.host = through.host
		b.finishJob(one.org, one.build)
		b.wake("berth_runner", one.org, one.build)
		b.eventually("the release", `select exists (select from releases r join release_items i on i.release_id = r.id where i.build_id = $1)`, one.build)
	}
	for i, one := range all {
		finish(one, pair[i%2])
	}

	// The first had the turn of the Build Runners, as the other came later.
	pair[0].kill()
	org, buildID := b.sync()
	b.wake("berth_ctl", org, buildID)
	finish(built{org, buildID}, pair[1])

	// What went into the killed one comes out of the other.
	b.pull(all[0].org, all[0].build, pair[1].host)
	pair[1].kill()
	for _, r := range pair {
		if strings.Contains(r.said.String(), "secret-of-the-tests") || strings.Contains(r.said.String(), "DATA RACE") {
			t.Errorf("a replica says what it must not:\n%s", r.said)
		}
	}
}

// pull gets the artifact of a build from one registry.
func (b *builder) pull(org, buildID, host string) {
	b.t.Helper()
	token, hash := registry.NewToken()
	b.exec(`insert into registry_tokens (hash, org_id, actions, expires_at) values ($1, $2, '{pull}', now() + interval '5 minutes')`, hash, org)
	var raw []byte
	if err := b.db.Admin().QueryRow(b.t.Context(), `select result from runner_jobs where build_id = $1`, buildID).Scan(&raw); err != nil {
		b.t.Fatal(err)
	}
	var result jobspec.Result
	if err := json.Unmarshal(raw, &result); err != nil {
		b.t.Fatal(err)
	}
	layout, err := oci.Open(b.t.TempDir())
	if err != nil {
		b.t.Fatal(err)
	}
	from := oci.Remote{Registry: host, Repository: result.Artifact.Repository, PlainHTTP: true, Token: func(context.Context) (string, error) { return token, nil }}
	if err := from.Pull(b.t.Context(), godigest.Digest(result.Artifact.Digest), layout, oci.TransferOptions{}); err != nil {
		b.t.Errorf("pull: %v", err)
	}
}

// Credentials of the pod come from the agent that its variables name, with the
// token in the file there. The machine's metadata service is not asked.
func TestCredentialsOfThePod(t *testing.T) {
	t.Parallel()
	b, bucket := newBuilder(t), s3test.New(t)
	const token = "token-of-the-service-account"
	var asked, asMachine atomic.Int32
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != token {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		asked.Add(1)
		_ = json.NewEncoder(w).Encode(map[string]string{
			"AccessKeyId": bucket.AccessKey, "SecretAccessKey": bucket.SecretKey, "Expiration": time.Now().Add(time.Hour).UTC().Format(time.RFC3339),
		})
	}))
	t.Cleanup(agent.Close)
	metadata := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asMachine.Add(1)
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(metadata.Close)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	machine := "AWS_EC2_METADATA_SERVICE_ENDPOINT=" + metadata.URL
	b.replicas(1, bucket, machine, "BERTH_REGISTRY_S3_IDENTITY=pod", "BERTH_REGISTRY_S3_ACCESS_KEY_FILE=", "BERTH_REGISTRY_S3_SECRET_KEY_FILE=",
		"AWS_CONTAINER_CREDENTIALS_FULL_URI="+agent.URL, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE="+file)
	b.replicas(1, bucket, machine) // with credentials in files
	// Artifacts and build caches are two storages, and each asks once.
	const storages = 2
	if asked.Load() != storages || asMachine.Load() != 0 {
		t.Errorf("the agent was asked %d times and the machine %d times, want %d and 0", asked.Load(), asMachine.Load(), storages)
	}
}
