package keyring_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/services/builder/internal/keyring"
)

// ring reads a file of this content.
func ring(t *testing.T, content string, o keyring.Options) *keyring.Ring {
	t.Helper()
	r, err := keyring.Read(write(t, content), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func write(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "credentials.json")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, content, want string }{
		{"what is no JSON", `{"oci://example.com": {"username": "a", "password": "hunter2"`, "must be an object"},
		{"a key that nobody knows", `{"oci://example.com": {"username": "a", "pasword": "hunter2"}}`, "must be an object"},
		{"an address without a scheme", `{"example.com": {"username": "a", "password": "hunter2"}}`, "is no https:// or oci:// address"},
		{"credentials in an address", `{"https://a:b@example.com/": {"username": "a", "password": "hunter2"}}`, "is no https:// or oci:// address"},
		{"what would travel in clear", `{"http://example.com/": {"username": "a", "password": "hunter2"}}`, "would send credentials in clear"},
		{"nothing", `{"oci://example.com": {}}`, "needs one of"},
		{"two ways", `{"oci://example.com": {"token": "hunter2", "helper": "google"}}`, "needs one of"},
		{"a name without a password", `{"oci://example.com": {"username": "a"}}`, "needs username and password"},
		{"a helper that nobody knows", `{"oci://example.com": {"helper": "quay"}}`, "a helper other than"},
		{"a token for a chart repository", `{"https://example.com/": {"token": "hunter2"}}`, "username and password only"},
		{"keys of another helper", `{"oci://example.com": {"helper": "google", "region": "eu-central-1"}}`, "are for the helper aws_ecr"},
		{"half an application", `{"oci://a.azurecr.io": {"helper": "azure", "client_secret": "hunter2"}}`, "needs tenant_id"},
		{"any registry at all", `{"oci://*.com": {"username": "a", "password": "hunter2"}}`, "the last two names"},
		{"a part of a name", `{"oci://a*.example.com": {"username": "a", "password": "hunter2"}}`, "not a whole name"},
		{"a pattern in a path", `{"oci://example.com/*": {"username": "a", "password": "hunter2"}}`, "not in its host"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, err := keyring.Read(write(t, tc.content), keyring.Options{})
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("Read: %v, want …%s, and no password", err, tc.want)
			}
		})
	}
	file := write(t, `{}`)
	if err := os.Chmod(file, 0o604); err != nil {
		t.Fatal(err)
	}
	if _, err := keyring.Read(file, keyring.Options{}); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a file that everybody may read: %v", err)
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	r := ring(t, `{
		"https://charts.example.com/private/": {"username": "charts", "password": "x"},
		"oci://registry.example.com": {"username": "all", "password": "x"},
		"oci://registry.example.com/team": {"username": "team", "password": "x"},
		"oci://registry.example.com/team/secret": {"username": "one-org", "password": "x", "orgs": ["org_1"]},
		"oci://*.dkr.ecr.*.amazonaws.com": {"helper": "aws_ecr"},
		"oci://127.0.0.1:5000": {"token": "x"}
	}`, keyring.Options{})
	for _, tc := range []struct{ address, org, want string }{
		{"https://charts.example.com/private/a", "org_2", "https://charts.example.com/private/"},
		{"https://charts.example.com/private", "org_2", "https://charts.example.com/private/"},
		{"https://charts.example.com/private2", "org_2", ""},
		{"https://charts.example.com/public", "org_2", ""},
		{"oci://charts.example.com/private/a", "org_2", ""},
		{"oci://registry.example.com/other/x", "org_2", "oci://registry.example.com"},
		{"oci://registry.example.com/team", "org_2", "oci://registry.example.com/team"},
		{"oci://registry.example.com/team/web", "org_2", "oci://registry.example.com/team"},
		{"oci://registry.example.com/teams/web", "org_2", "oci://registry.example.com"},
		{"oci://registry.example.com.evil.test/team/web", "org_2", ""},
		{"oci://REGISTRY.example.com/team/web", "org_2", "oci://registry.example.com/team"},
		{"oci://registry.example.com/team/secret/x", "org_1", "oci://registry.example.com/team/secret"},
		{"oci://registry.example.com/team/secret/x", "org_2", ""}, // not the shorter one either
		{"oci://123456789012.dkr.ecr.eu-central-1.amazonaws.com/a", "org_2", "oci://*.dkr.ecr.*.amazonaws.com"},
		{"oci://a.b.dkr.ecr.eu-central-1.amazonaws.com/a", "org_2", ""},
		{"oci://a.dkr.ecr.x.amazonaws.com.evil.test/a", "org_2", ""},
		{"oci://127.0.0.1:5000/a", "org_2", "oci://127.0.0.1:5000"},
		{"oci://127.0.0.1:5001/a", "org_2", ""},
	} {
		key, ok := r.Find(tc.address, tc.org)
		if key.Name() != tc.want || ok != (tc.want != "") {
			t.Errorf("Find(%s, %s) = %q, %v, want %q", tc.address, tc.org, key.Name(), ok, tc.want)
		}
	}
	if _, ok := (*keyring.Ring)(nil).Find("oci://registry.example.com", "org_1"); ok {
		t.Error("no ring has a key")
	}
}

const ecrEntry = `{"oci://*.dkr.ecr.*.amazonaws.com": {"helper": "aws_ecr", "orgs": ["org_1", "org_2"]}}`

const (
	ecrAddress = "oci://123456789012.dkr.ecr.eu-central-1.amazonaws.com/team/web"
	readRole   = "arn:aws:iam::123456789012:role/read-images"
)

func login(t *testing.T, r *keyring.Ring, address, org string, want keyring.ECR) (oci.Login, error) {
	t.Helper()
	key, ok := r.Find(address, org)
	if !ok {
		t.Fatalf("no key for %s", address)
	}
	return key.With(want).Login(t.Context())
}

// Requests are signed for the registry's region, a role is assumed with the org as
// external id, and what AWS gave is used until shortly before it ends.
func TestECR(t *testing.T) {
	cloud := newAWS(t)
	now := time.Now()
	cloud.now, cloud.externalID = now, "org_1"
	r := ring(t, ecrEntry, keyring.Options{Now: func() time.Time { return now }})

	for range 2 { // the second time out of memory
		got, err := login(t, r, ecrAddress, "org_1", keyring.ECR{Region: "eu-central-1"})
		if want := (oci.Login{Username: "AWS", Password: "password-1-of-" + ownKey}); err != nil || got != want {
			t.Fatalf("own identity: %+v, %v, want %+v", got, err, want)
		}
	}
	got, err := login(t, r, ecrAddress, "org_1", keyring.ECR{IAMRoleARN: readRole})
	if want := (oci.Login{Username: "AWS", Password: "password-2-of-" + roleKey}); err != nil || got != want {
		t.Fatalf("role: %+v, %v, want %+v", got, err, want)
	}
	now = now.Add(11*time.Hour + 59*time.Minute)
	if got, err := login(t, r, ecrAddress, "org_1", keyring.ECR{Region: "eu-central-1"}); err != nil || got.Password != "password-3-of-"+ownKey {
		t.Errorf("a minute before the end: %+v, %v, want another token", got, err)
	}
	want := []string{"ecr by " + ownKey, "sts AssumeRole " + readRole + " by " + ownKey, "ecr by " + roleKey, "ecr by " + ownKey}
	if diff := cmp.Diff(want, cloud.asked); diff != "" {
		t.Errorf("AWS was asked (-want +got):\n%s", diff)
	}

	// Another org that names the role gets nothing, also not what is remembered.
	_, err = login(t, r, ecrAddress, "org_2", keyring.ECR{IAMRoleARN: readRole})
	if err == nil || !strings.Contains(err.Error(), "sts:ExternalId") {
		t.Errorf("a role that trusts another org: %v", err)
	}
}

func TestECRRefuses(t *testing.T) {
	for _, tc := range []struct {
		name      string
		file      string
		want      keyring.ECR
		change    func(t *testing.T, c *awsCloud)
		says      string
		transient bool
	}{
		{name: "a region that is not the registry's", want: keyring.ECR{Region: "us-east-1"}, says: "is in eu-central-1, not in us-east-1"},
		{name: "another role than the operator's", want: keyring.ECR{IAMRoleARN: readRole}, says: "has another role",
			file: `{"oci://*.dkr.ecr.*.amazonaws.com": {"helper": "aws_ecr", "iam_role_arn": "arn:aws:iam::123456789012:role/other"}}`},
		{name: "a role that is none", want: keyring.ECR{IAMRoleARN: "arn:aws:iam::123456789012:user/me"}, says: "is not the ARN of a role"},
		{name: "a wrong secret", change: func(t *testing.T, _ *awsCloud) { t.Setenv("AWS_SECRET_ACCESS_KEY", "wrong") }, says: "does not know builder's credentials (InvalidSignatureException)"},
		{name: "an unknown key", change: func(t *testing.T, _ *awsCloud) { t.Setenv("AWS_ACCESS_KEY_ID", "AKIANOBODY0000000000") }, says: "does not know builder's credentials"},
		{name: "a session that ended", change: func(_ *testing.T, c *awsCloud) { c.refuse = "ExpiredTokenException" }, says: "have expired: renew them"},
		{name: "no permission", change: func(_ *testing.T, c *awsCloud) { c.refuse = "AccessDeniedException" }, says: "does not let builder use builder's own identity"},
		{name: "trouble at AWS", change: func(_ *testing.T, c *awsCloud) { c.refuse = "ThrottlingException" }, says: "refuses: ThrottlingException", transient: true},
		{name: "no credentials at all", change: func(t *testing.T, _ *awsCloud) {
			t.Setenv("AWS_ACCESS_KEY_ID", "")
			t.Setenv("AWS_SECRET_ACCESS_KEY", "")
		}, says: "builder has no credentials for it that work"},
		{name: "a cloud that is away", change: func(t *testing.T, _ *awsCloud) { t.Setenv("AWS_ENDPOINT_URL_ECR", "http://127.0.0.1:1") }, says: "refuses the connection"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cloud := newAWS(t)
			cloud.now = time.Now()
			if tc.change != nil {
				tc.change(t, cloud)
			}
			if tc.file == "" {
				tc.file = ecrEntry
			}
			_, err := login(t, ring(t, tc.file, keyring.Options{}), ecrAddress, "org_1", tc.want)
			e, ok := errors.AsType[*keyring.Error](err)
			if !ok || !strings.Contains(e.Error(), tc.says) || e.Transient != tc.transient {
				t.Errorf("Login: %v (%+v), want …%s, transient %v", err, e, tc.says, tc.transient)
			}
			secrets := []string{ownSecret, roleSecret, roleToken, "password-"}
			if err != nil && slices.ContainsFunc(secrets, func(s string) bool { return strings.Contains(err.Error(), s) }) {
				t.Errorf("the error shows a secret: %v", err)
			}
		})
	}
}
