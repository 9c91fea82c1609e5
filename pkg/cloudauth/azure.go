package cloudauth

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"strings"
)

const (
	// azureAuthority is the directory of Azure's public cloud.
	azureAuthority = "https://login.microsoftonline.com"

	// azureIdentity gives a machine of Azure the tokens of its identity.
	azureIdentity = "http://169.254.169.254/metadata/identity/oauth2/token"
)

// Azure gives tokens of Azure's directory (Microsoft Entra ID). The zero value asks
// the public cloud.
type Azure struct {
	HTTP *http.Client
	// Authority is the address of the directory, Identity that of the machine's
	// identity; empty means Azure's own.
	Authority string
	Identity  string
}

// Application is who asks. What is empty comes from AZURE_TENANT_ID and
// AZURE_CLIENT_ID, which workload identity sets.
type Application struct{ Tenant, Client, Secret string }

// Token is one for a resource: of the application by its secret, of the pod's
// workload identity (AZURE_FEDERATED_TOKEN_FILE), or of the machine's identity.
// https://learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow
// describes the first two.
func (a Azure) Token(ctx context.Context, app Application, resource string) (string, error) {
	client := a.HTTP
	if client == nil {
		client = Client(http.Client{})
	}
	var answer struct {
		AccessToken string `json:"access_token"`
	}
	tenant, id := cmp.Or(app.Tenant, os.Getenv("AZURE_TENANT_ID")), cmp.Or(app.Client, os.Getenv("AZURE_CLIENT_ID"))
	directory := strings.TrimSuffix(cmp.Or(a.Authority, azureAuthority), "/") + "/" + url.PathEscape(tenant) + "/oauth2/v2.0/token"
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {id}, "scope": {strings.TrimSuffix(resource, "/") + "/.default"}}
	federated := os.Getenv("AZURE_FEDERATED_TOKEN_FILE")
	var req *http.Request
	var err error
	switch {
	case app.Secret != "":
		form.Set("client_secret", app.Secret)
		req, err = Form(ctx, directory, form)
	case federated != "" && tenant != "" && id != "":
		assertion, readErr := os.ReadFile(federated) // Kubernetes writes another one now and then
		if readErr != nil {
			return "", readErr
		}
		form.Set("client_assertion", strings.TrimSpace(string(assertion)))
		form.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
		req, err = Form(ctx, directory, form)
	default:
		req, err = a.ofMachine(ctx, id, resource)
	}
	if err != nil {
		return "", err
	}
	err = AskJSON(client, req, &answer)
	if err == nil && answer.AccessToken == "" {
		err = errors.New("its answer has no token")
	}
	return answer.AccessToken, err
}

// ofMachine asks for a token of the machine's identity, or of the one with that
// client id.
func (a Azure) ofMachine(ctx context.Context, id, resource string) (*http.Request, error) {
	query := url.Values{"api-version": {"2018-02-01"}, "resource": {resource}}
	if id != "" {
		query.Set("client_id", id)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, cmp.Or(a.Identity, azureIdentity)+"?"+query.Encode(), nil)
	if err == nil {
		req.Header.Set("Metadata", "true")
	}
	return req, err
}
