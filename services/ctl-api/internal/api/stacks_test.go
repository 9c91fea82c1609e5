package api_test

import (
	"net/http"
	"testing"

	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/enrolcode"
)

// A kubernetes stack has no version until a code is made; each code makes those
// before it worthless, and its secrets are nowhere in the database.
func TestKubernetesStack(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	c.released("hello", hello())
	req := acme()
	req.Stack, req.Provision = new(ctlapi.StackKindKubernetes), true
	made, err := c.CreateInstallWithResponse(t.Context(), nil, req)
	must(t, made, err, http.StatusCreated)
	if n := d.count(`select count(*) from enrolments`); n != 0 {
		t.Errorf("%d enrolments before somebody asked for a code", n)
	}
	none, err := c.GetStackWithResponse(t.Context(), "acme")
	problemOf(t, none, err, http.StatusNotFound, "no_stack_version")

	var codes []enrolcode.Code
	for version := 1; version <= 2; version++ {
		got, err := c.CreateStackVersionWithResponse(t.Context(), "acme", nil, ctlapi.EnrolmentRequest{})
		must(t, got, err, http.StatusCreated)
		code, err := enrolcode.Parse(got.JSON201.Code)
		if err != nil {
			t.Fatal(err)
		}
		if code.URL != "https://berth.test" || !code.OneHost || code.InstallID != made.JSON201.ID || code.Install != "acme" ||
			len(code.DispatchKeys) != 1 || got.JSON201.Version != version || !code.ExpiresAt.Equal(got.JSON201.ExpiresAt) {
			t.Errorf("code %d: %s", version, got.Body)
		}
		codes = append(codes, code)
	}
	if codes[0].EnrolmentSecret == codes[1].EnrolmentSecret || codes[0].PhoneHomeSecret == codes[1].PhoneHomeSecret {
		t.Error("two codes have the same secrets")
	}
	for what, query := range map[string]string{
		"open enrolments":        `select count(*) from enrolments where state = 'open'`,
		"pending stack versions": `select count(*) from stack_versions where state = 'pending'`,
	} {
		if n := d.count(query); n != 1 {
			t.Errorf("%d %s, want those of the last code", n, what)
		}
	}
	if n := d.count(`select count(*) from stack_versions where body::text <> '{}'`); n != 0 {
		t.Error("a stack version keeps secrets")
	}
	stack, err := c.GetStackWithResponse(t.Context(), "acme")
	must(t, stack, err, http.StatusOK)
	if s := stack.JSON200; s.Kind != ctlapi.StackKindKubernetes || s.Version != 2 || s.State != ctlapi.StackStatePending || s.Wait == nil {
		t.Errorf("stack: %s", stack.Body)
	}

	local := acme()
	local.Name = "here"
	made, err = c.CreateInstallWithResponse(t.Context(), nil, local)
	must(t, made, err, http.StatusCreated)
	refused, err := c.CreateStackVersionWithResponse(t.Context(), "here", nil, ctlapi.EnrolmentRequest{})
	problemOf(t, refused, err, http.StatusConflict, "stack_without_code")
}

// Without an address for others nothing is begun that could never end.
func TestKubernetesStackWithoutAddress(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	d.stacks.PublicURL = ""
	c := d.org("initech")
	c.sync("hello", hello())
	req := acme()
	req.Stack = new(ctlapi.StackKindKubernetes)
	refused, err := c.CreateInstallWithResponse(t.Context(), nil, req)
	problemOf(t, refused, err, http.StatusConflict, "no_public_url")
	if n := d.count(`select count(*) from installs`); n != 0 {
		t.Errorf("%d installs", n)
	}
}
