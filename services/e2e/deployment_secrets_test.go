package e2e_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDeploymentSecrets dumps each pod of the deployment: what the API server
// says of it, and the environment and the arguments of each of its processes. No
// value of any Secret is in there.
func TestDeploymentSecrets(t *testing.T) {
	t.Parallel()
	if os.Getenv("BERTH_E2E_DEPLOYMENT") == "" {
		t.Skip("kubernetes: BERTH_E2E_DEPLOYMENT names no deployment; make test has one where it can")
	}
	s := start(t)
	s.sync("probe", s.probeFolder()) // builder has a Build Runner now

	var secrets struct {
		Items []struct {
			Metadata struct{ Name string }
			Data     map[string][]byte
		}
	}
	s.decoded(&secrets, "get", "secrets", "--output", "json")
	hidden := map[string][]string{}
	for _, secret := range secrets.Items {
		for key, value := range secret.Data {
			if key != "tls.crt" { // for everybody to read
				hidden[secret.Metadata.Name+"/"+key] = spelt(string(value))
			}
		}
	}
	hidden["the admin's token"] = spelt(s.token())
	const least = 10 // master key, five addresses, administrator, password, TLS key, token
	if len(hidden) < least {
		t.Fatalf("only %d secrets are there to look for", len(hidden))
	}

	running := map[string]int{}
	// Other tests delete pods meanwhile, so a service may have none for a moment.
	s.eventually(replaceTimeout, "each service was dumped", func() error {
		s.dumpPods(hidden, running)
		for _, service := range []string{"ctl-api", "runner-api", "log-ingest", "builder", "front"} {
			if running[service] == 0 {
				return fmt.Errorf("no process of %s was found on this machine", service)
			}
		}
		return nil
	})
	t.Logf("environments and arguments by service: %v", running)
}

// dumpPods looks for secrets in the specifications, environments and arguments of the
// running pods of this machine, and counts what it has read by service.
func (s *system) dumpPods(hidden map[string][]string, running map[string]int) {
	s.t.Helper()
	var pods struct{ Items []json.RawMessage }
	s.decoded(&pods, "get", "pods", "--field-selector", "status.phase=Running", "--output", "json")
	for _, specification := range pods.Items {
		var pod struct {
			Metadata struct {
				Name, UID string
				Labels    map[string]string
			}
		}
		if err := json.Unmarshal(specification, &pod); err != nil {
			s.t.Fatal(err)
		}
		dumps := processesOf(pod.Metadata.UID) // none if it has just ended, or runs on another machine
		running[pod.Metadata.Labels["app.kubernetes.io/name"]] += len(dumps)
		dumps["its specification"] = specification
		for what, dump := range dumps {
			for _, found := range leaks(dump, hidden) {
				s.t.Errorf("%s: %s is in %s", pod.Metadata.Name, found, what)
			}
		}
	}
}

// decoded is what kubectl says in the namespace of the deployment.
func (s *system) decoded(out any, args ...string) {
	s.t.Helper()
	if err := json.Unmarshal([]byte(s.inBerth(args...)), out); err != nil {
		s.t.Fatal(err)
	}
}

// processesOf are the environment and the arguments of the processes of a pod on
// this machine, by their files.
func processesOf(uid string) map[string][]byte {
	dumps := map[string][]byte{}
	groups, _ := filepath.Glob("/proc/[0-9]*/cgroup") // the pattern is right
	for _, group := range groups {
		text, _ := os.ReadFile(group) // it may have ended meanwhile
		if !bytes.Contains(text, []byte(uid)) && !bytes.Contains(text, []byte(strings.ReplaceAll(uid, "-", "_"))) {
			continue
		}
		for _, name := range []string{"environ", "cmdline"} {
			file := filepath.Join(filepath.Dir(group), name)
			if dump, err := os.ReadFile(file); err == nil {
				dumps[file] = dump
			}
		}
	}
	return dumps
}

// spelt are the forms in which a secret may occur: as it is, in base64, and of an
// address its password, of text with several lines each long line.
func spelt(secret string) []string {
	secret = strings.TrimSpace(secret)
	var parts []string
	for line := range strings.Lines(secret) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "-----") {
			parts = append(parts, line)
		}
	}
	if u, err := url.Parse(secret); err == nil {
		if password, has := u.User.Password(); has {
			parts = append(parts, password)
		}
	}
	if _, key, found := strings.Cut(secret, "berth-master-key-v1:"); found {
		parts = append(parts, key)
	}
	for _, part := range slices.Clone(parts) {
		parts = append(parts, base64.StdEncoding.EncodeToString([]byte(part)))
	}
	return append(parts, base64.StdEncoding.EncodeToString([]byte(secret)))
}

// leaks names the secrets of which a form is in a dump.
func leaks(dump []byte, hidden map[string][]string) []string {
	var found []string
	for name, forms := range hidden {
		if slices.ContainsFunc(forms, func(form string) bool { return form != "" && bytes.Contains(dump, []byte(form)) }) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

func TestLeaks(t *testing.T) {
	t.Parallel()
	hidden := map[string][]string{
		"dsn": spelt("postgres://berth_ctl:open-sesame@postgres:5432/berth\n"), "key": spelt("-----BEGIN PRIVATE KEY-----\nMIGHAgEA\nBggqhkjO\n-----END PRIVATE KEY-----\n"),
		"master": spelt("berth-master-key-v1:c2VjcmV0\n"),
	}
	got := map[string][]string{}
	for _, dump := range []string{
		"PATH=/bin\x00BERTH_DSN_FILE=/secrets/dsn/dsn\x00", "PGPASSWORD=open-sesame\x00", "--key=BggqhkjO", "KEY=c2VjcmV0",
		"DSN=" + base64.StdEncoding.EncodeToString([]byte("postgres://berth_ctl:open-sesame@postgres:5432/berth")),
	} {
		got[dump] = leaks([]byte(dump), hidden)
	}
	want := map[string][]string{
		"PATH=/bin\x00BERTH_DSN_FILE=/secrets/dsn/dsn\x00": nil, "PGPASSWORD=open-sesame\x00": {"dsn"}, "--key=BggqhkjO": {"key"}, "KEY=c2VjcmV0": {"master"},
		"DSN=cG9zdGdyZXM6Ly9iZXJ0aF9jdGw6b3Blbi1zZXNhbWVAcG9zdGdyZXM6NTQzMi9iZXJ0aA==": {"dsn"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
