package keyring

import (
	"cmp"
	"context"
	"net/url"
	"os"
	"time"

	"github.com/berth-dev/berth/pkg/cloudauth"
	"github.com/berth-dev/berth/pkg/oci"
)

// azureResource is what tokens for registries are asked for.
const azureResource = "https://containerregistry.azure.net/"

// azure gets a token of Azure's directory and exchanges it at the registry for a
// refresh token, with which the registry's token service gives access tokens.
// https://github.com/Azure/acr/blob/main/docs/AAD-OAuth.md describes both.
func (c clouds) azure(ctx context.Context, k Key) (oci.Login, time.Time, error) {
	who := cloudauth.Application{Tenant: k.entry.TenantID, Client: k.entry.ClientID, Secret: k.entry.ClientSecret}
	token, err := cloudauth.Azure{HTTP: c.client, Authority: c.authority, Identity: c.identity}.Token(ctx, who, azureResource)
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
	exchange, err := cloudauth.Form(ctx, scheme+host+"/oauth2/exchange", form)
	if err != nil {
		return oci.Login{}, time.Time{}, err
	}
	if err := cloudauth.AskJSON(c.client, exchange, &answer); err != nil {
		return oci.Login{}, time.Time{}, explain(ctx, "the registry "+host, err)
	}
	if answer.RefreshToken == "" {
		return oci.Login{}, time.Time{}, refuse("the registry %s answers without a token", host)
	}
	until := cloudauth.Expiry(answer.RefreshToken)
	if until.IsZero() {
		until = c.now().Add(tokenGuess)
	}
	return oci.Login{IdentityToken: answer.RefreshToken}, until, nil
}

func hostname(host string) string {
	u := url.URL{Host: host}
	return u.Hostname()
}
