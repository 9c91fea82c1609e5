package main

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/offer"
)

// signedFor is a control plane with release 4 of hello, which keeps what was signed.
type signedFor struct {
	*httptest.Server
	mu      sync.Mutex
	sent    map[string][]capsule.Envelope // by the last part of the path
	digest  string
	release jobspec.Release
}

func newSignedFor(t *testing.T) *signedFor {
	t.Helper()
	s := &signedFor{sent: map[string][]capsule.Envelope{}, release: jobspec.Release{
		ID: "rel_4", Number: 4, Artifacts: []jobspec.ReleaseArtifact{{Name: "api", Digest: capsule.DigestBytes([]byte("artifact"))}},
	}}
	manifest, err := s.release.Manifest()
	if err == nil {
		s.digest, err = manifest.Digest()
	}
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(s.release)
	if err != nil {
		t.Fatal(err)
	}
	answer := func(status int, body any) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			if err := json.NewEncoder(w).Encode(body); err != nil {
				t.Error(err)
			}
		}
	}
	contents := answer(http.StatusOK, ctlapi.ReleaseContents{OrgID: "org_1", App: ctlapi.Ref{ID: "app_1", Name: "hello"}, Release: raw})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /releases/hello@4/contents", contents)
	mux.HandleFunc("GET /releases/hello@3/contents", contents) // a false one
	for _, kind := range []string{"statements", "revocations"} {
		mux.HandleFunc("POST /releases/rel_4/"+kind, func(w http.ResponseWriter, r *http.Request) {
			var env capsule.Envelope
			if err := json.NewDecoder(r.Body).Decode(&env); err != nil {
				t.Error(err)
			}
			s.mu.Lock()
			s.sent[kind] = append(s.sent[kind], env)
			s.mu.Unlock()
			answer(http.StatusCreated, ctlapi.Release{ID: "rel_4", Number: 4})(w, r)
		})
	}
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// says runs a command, and wants an exit code and a text.
func (s *signedFor) says(t *testing.T, code int, text, socket string, args ...string) {
	t.Helper()
	env := map[string]string{"BERTH_URL": s.URL, "BERTH_TOKEN": "bat_x", "HOME": t.TempDir(), "SSH_AUTH_SOCK": socket}
	got, stdout, stderr := berth(t, env, args...)
	if got != code || !strings.Contains(stdout+stderr, text) {
		t.Errorf("berth %v: exit %d, want %d with %q:\n%s%s", args, got, code, text, stdout, stderr)
	}
}

// one is the one document that was sent.
func (s *signedFor) one(t *testing.T, kind string) capsule.Envelope {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sent[kind]) != 1 {
		t.Fatalf("%d %s were sent, want one", len(s.sent[kind]), kind)
	}
	return s.sent[kind][0]
}

// both checks what was signed of the release, and against it, with the public half that a
// customer pins.
func (s *signedFor) both(t *testing.T, public string) {
	t.Helper()
	text, err := os.ReadFile(public)
	if err != nil {
		t.Fatal(err)
	}
	key, err := consent.ParseKey(string(text))
	if err != nil {
		t.Fatal(err)
	}
	statement, err := offer.Open([]consent.Key{key}, s.one(t, "statements"))
	if err != nil || statement.Manifest != s.digest || statement.ReleaseID != "rel_4" || statement.Number != 4 || statement.AppID != "app_1" || statement.OrgID != "org_1" {
		t.Errorf("signed: %+v, %v", statement, err)
	}
	revocation, err := offer.OpenRevocation([]consent.Key{key}, s.one(t, "revocations"))
	if err != nil || revocation.ReleaseID != "rel_4" || revocation.Number != 4 || revocation.AppID != "app_1" || revocation.OrgID != "org_1" ||
		revocation.Reason != "it loses data" || time.Since(revocation.Issued) > time.Hour {
		t.Errorf("revoked: %+v, %v", revocation, err)
	}
}

// The key is in a file: what is sent verifies with its public half, and nothing is sent
// that a person did not ask for.
func TestSignAndRevokeByKeyFile(t *testing.T) {
	t.Parallel()
	s := newSignedFor(t)
	key := filepath.Join(t.TempDir(), "vendor.key")
	s.says(t, 0, "public half", "", "releases", "keygen", key)
	s.says(t, 64, "--reason", "", "releases", "revoke", "hello@4", "--key", key)
	s.says(t, 0, "because: it loses data", "", "releases", "revoke", "hello@4", "--reason", "it loses data", "--dry-run")
	s.says(t, 1, "nothing was signed", "", "releases", "revoke", "hello@4", "--key", key, "--reason", "it loses data", "--expect", "rel_5")
	s.says(t, 1, "more than a line", "", "releases", "revoke", "hello@4", "--key", key, "--reason", "it\nloses data")
	for _, verb := range []string{"sign", "revoke"} {
		args := []string{"releases", verb, "hello@3", "--key", key}
		if verb == "revoke" {
			args = append(args, "--reason", "it loses data")
		}
		s.says(t, 1, "answered release 4 of app hello for hello@3", "", args...)
	}
	s.says(t, 0, "signed by ed25519:", "", "releases", "sign", "hello@4", "--key", key)
	s.says(t, 0, "revoked by ed25519:", "", "releases", "revoke", "hello@4", "--key", key, "--reason", "it loses data")
	s.both(t, key+".pub")
}

// The key is in an ssh-agent and nowhere else.
func TestSignBySSHAgent(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"ssh-agent", "ssh-add", "ssh-keygen"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("needs ssh-agent")
		}
	}
	folder, err := os.MkdirTemp("", "berth-agent") // a socket's name may not be long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	socket, private := filepath.Join(folder, "s"), filepath.Join(folder, "id")
	agent := exec.Command("ssh-agent", "-D", "-a", socket)
	out, err := agent.StdoutPipe()
	if err == nil {
		err = agent.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = agent.Process.Kill(); _ = agent.Wait() })
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil { // it listens, and says where
		t.Fatalf("ssh-agent: %v", err)
	}
	ssh := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Env = append(os.Environ(), "SSH_AUTH_SOCK="+socket)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	ssh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", private)
	s := newSignedFor(t)
	s.says(t, 1, "ssh-agent does not have the key", socket, "releases", "sign", "hello@4", "--ssh-key", private+".pub")
	ssh("ssh-add", "-q", private)
	if err := os.Remove(private); err != nil {
		t.Fatal(err)
	}
	s.says(t, 1, "no ssh-agent", "", "releases", "sign", "hello@4", "--ssh-key", private+".pub")
	s.says(t, 1, "does not answer", filepath.Join(folder, "nobody"), "releases", "sign", "hello@4", "--ssh-key", private+".pub")
	s.says(t, 0, "signed by SHA256:", socket, "releases", "sign", "hello@4", "--ssh-key", private+".pub")
	s.says(t, 0, "revoked by SHA256:", socket, "releases", "revoke", "hello@4", "--ssh-key", private+".pub", "--reason", "it loses data")
	s.both(t, private+".pub")

	// Taken out of the agent, it signs nothing any more.
	ssh("ssh-add", "-q", "-D")
	s.says(t, 1, "ssh-agent does not have the key", socket, "releases", "sign", "hello@4", "--ssh-key", private+".pub")
	s.one(t, "statements")
}
