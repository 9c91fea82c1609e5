package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/capsule"
)

// A bundle has no secret of the runner, show prints its very bytes, and nothing is
// released without a look at them, nor without a record.
func TestSupport(t *testing.T) {
	t.Parallel()
	d := newCustomer(t)
	if _, err := d.dir.Keys(); err != nil { // made
		t.Fatal(err)
	}
	identity, err := os.ReadFile(filepath.Join(d.data, "identity"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(d.dir.Enrolment(), []byte("ben_planted-enrolment-secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "agent.log")
	secret := strings.Split(strings.TrimSpace(string(identity)), "\n")
	lines := "ok\x1b[2J\nleaked " + secret[min(1, len(secret)-1)] + "\nben_planted-enrolment-secret\nproxy http://user:passw0rd@proxy:3128\nAuthorization: Bearer abcdefghijklmnop\n"
	if err := os.WriteFile(log, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	name, _, _ := strings.Cut(d.says(0, "look at it", "support", "collect", "--log", log), "\n")
	text, err := os.ReadFile(filepath.Join(d.dir.Support(), name))
	if err != nil {
		t.Fatal(err)
	}
	for _, planted := range []string{secret[min(1, len(secret)-1)], "planted-enrolment", "passw0rd", "abcdefghijklmnop", "\x1b"} {
		if bytes.Contains(text, []byte(planted)) {
			t.Errorf("the bundle has %q", planted)
		}
	}
	for _, wanted := range []string{"== status ==", "== facts ==", "== egress ==", "== log ==", "leaked (redacted"} {
		if !bytes.Contains(text, []byte(wanted)) {
			t.Errorf("the bundle lacks %q:\n%s", wanted, text)
		}
	}
	var out, errs bytes.Buffer
	cmd := newRoot()
	cmd.SetArgs([]string{"--data", d.data, "support", "show", name})
	if code := execute(t.Context(), cmd, &out, &errs); code != 0 || !bytes.Equal(out.Bytes(), text) {
		t.Errorf("show prints other bytes than the bundle has: exit %d, %d of %d bytes, %s", code, out.Len(), len(text), errs.String())
	}
	to := filepath.Join(t.TempDir(), "out")
	digest := capsule.DigestBytes(text)
	d.says(exitUsage, "needed are", "support", "release", name, "--recipient", "vendor")
	d.says(1, "look at them again", "support", "release", name, "--recipient", "vendor", "--out", to, "--yes", "sha256:other")
	d.says(1, "no agent is running", "support", "release", name, "--recipient", "vendor", "--out", to, "--yes", digest)
	d.says(exitUsage, "not the name of a bundle", "support", "show", "../identity")
	if _, err := os.Stat(to); err == nil {
		t.Error("something was written without a release")
	}
}
