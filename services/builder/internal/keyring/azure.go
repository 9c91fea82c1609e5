package keyring

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/oci"
)

const (
	// azureAuthority is the directory of Azure's public cloud.
	azureAuthority = "https://login.microsoftonline.com"

	// azureIdentity gives a machine of Azure the tokens of its identity.
	azureIdentity = "http://169.254.169.254/metadata/identity/oauth2/token"

	// azureResource is what tokens for registries are asked for.
	azureResource = "https://containerregistry.azure.net/"
)

// azure gets a token of Azure's directory and exchanges it at the registry for a
// refresh token, with which the registry's token service gives access tokens.
// https://github.com/Azure/acr/blob/main/docs/AAD-OAuth.md describes both.
func (c clouds) azure(ctx context.Context, k Key) (oci.Login, time.Time, error) {
	token, err := c.directoryToken(ctx, k.entry)
	if err != nil {
		return oci.Login{}, time.Time{}, explain(ctx, "Azure", err)
	}
	host := k.host()
	form := url.Values{"grant_type": {"access_token"}, "service": {host}, "access_token": {token}}
	if tenant := cmp.Or(k.entry.TenantID, os.Getenv("AZURE_TENANT_ID")); tenant != "" {
		form.Set("tenant", tenant)
	}
	scheme := "https://"
	if isLoopback(hostname(host)) {
		scheme = "http://"
	}
	var answer struct {
		RefreshToken string `json:"refresh_token"`
	}
	if err := c.postForm(ctx, scheme+host+"/oauth2/exchange", form, &answer); err != nil {
		return oci.Login{}, time.Time{}, explain(ctx, "the registry "+host, err)
	}
	if answer.RefreshToken == "" {
		return oci.Login{}, time.Time{}, refuse("the registry %s answers without a token", host)
	}
	until := expiry(answer.RefreshToken)
	if until.IsZero() {
		until = c.now().Add(tokenGuess)
	}
	return oci.Login{IdentityToken: answer.RefreshToken}, until, nil
}

// directoryToken is that of the entry's application, of the workload identity of
// builder's pod, or of the identity of its machine.
func (c clouds) directoryToken(ctx context.Context, e entry) (string, error) {
	var answer struct {
		AccessToken string `json:"access_token"`
	}
	tenant, client := cmp.Or(e.TenantID, os.Getenv("AZURE_TENANT_ID")), cmp.Or(e.ClientID, os.Getenv("AZURE_CLIENT_ID"))
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {client}, "scope": {azureResource + ".default"}}
	federated := os.Getenv("AZURE_FEDERATED_TOKEN_FILE")
	var err error
	switch {
	case e.ClientSecret != "":
		form.Set("client_secret", e.ClientSecret)
		err = c.postForm(ctx, c.directory(tenant), form, &answer)
	case federated != "" && tenant != "" && client != "":
		assertion, readErr := os.ReadFile(federated) // Kubernetes writes another one now and then
		if readErr != nil {
			return "", readErr
		}
		form.Set("client_assertion", strings.TrimSpace(string(assertion)))
		form.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
		err = c.postForm(ctx, c.directory(tenant), form, &answer)
	default:
		err = c.machineToken(ctx, client, &answer)
	}
	if err == nil && answer.AccessToken == "" {
		err = errors.New("its answer has no token")
	}
	return answer.AccessToken, err
}

func (c clouds) directory(tenant string) string {
	return strings.TrimSuffix(c.authority, "/") + "/" + url.PathEscape(tenant) + "/oauth2/v2.0/token"
}

func (c clouds) machineToken(ctx context.Context, client string, answer any) error {
	query := url.Values{"api-version": {"2018-02-01"}, "resource": {azureResource}}
	if client != "" {
		query.Set("client_id", client)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.identity+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	req.Header.Set("Metadata", "true")
	return c.askJSON(req, answer)
}

func (c clouds) postForm(ctx context.Context, address string, form url.Values, answer any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return c.askJSON(req, answer)
}

func hostname(host string) string {
	u := url.URL{Host: host}
	return u.Hostname()
}

// expiry reads when a JSON web token ends, without checking who signed it; zero
// for any other token.
func expiry(token string) time.Time {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}
	}
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	var claims struct {
		Expires int64 `json:"exp"`
	}
	if err != nil || json.Unmarshal(raw, &claims) != nil || claims.Expires == 0 {
		return time.Time{}
	}
	return time.Unix(claims.Expires, 0)
}
