package oidclogin

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/browser"
)

// Config are the settings of a login by OpenID Connect; without an issuer there is none.
type Config struct {
	// Issuer is the provider, as its discovery document calls itself.
	Issuer string `env:"BERTH_OIDC_ISSUER"`
	// ClientID and ClientSecretFile are what the provider knows ctl-api by. Without a file
	// ctl-api is a public client, which PKCE protects.
	ClientID         string `env:"BERTH_OIDC_CLIENT_ID"`
	ClientSecretFile string `env:"BERTH_OIDC_CLIENT_SECRET_FILE"`
	// Org is whose members log in, by name.
	Org string `env:"BERTH_OIDC_ORG"`
	// Name is on the button.
	Name string `env:"BERTH_OIDC_NAME" default:"single sign-on"`
	// Roles are GROUP=ROLE, separated by commas; * is everybody.
	Roles string `env:"BERTH_OIDC_ROLES"`
	// GroupsClaim is where the provider says somebody's groups.
	GroupsClaim string `env:"BERTH_OIDC_GROUPS_CLAIM" default:"groups"`
	// FirstAdmin is the address of who becomes the first admin.
	FirstAdmin string `env:"BERTH_OIDC_FIRST_ADMIN"`
}

// Validate reports every problem at once.
func (c Config) Validate() error {
	if c.Issuer == "" {
		if c.ClientID+c.ClientSecretFile+c.Org+c.Roles+c.FirstAdmin != "" {
			return errors.New("BERTH_OIDC_ISSUER is not set, and other BERTH_OIDC_ settings are: set it, or none of them")
		}
		return nil
	}
	var errs []error
	if err := checkIssuer(c.Issuer); err != nil {
		errs = append(errs, fmt.Errorf("BERTH_OIDC_ISSUER %w", err))
	}
	if c.ClientID == "" {
		errs = append(errs, errors.New("BERTH_OIDC_CLIENT_ID is not set: it is what the provider calls this Berth"))
	}
	if c.Org == "" {
		errs = append(errs, errors.New("BERTH_OIDC_ORG is not set: name the org whose members log in"))
	}
	rules, err := ParseRoles(c.Roles)
	if err != nil {
		errs = append(errs, fmt.Errorf("BERTH_OIDC_ROLES: %w", err))
	} else if len(rules) == 0 && c.FirstAdmin == "" {
		errs = append(errs, errors.New("BERTH_OIDC_ROLES is not set: nobody could log in"))
	}
	if c.ClientSecretFile != "" {
		if _, err := c.secret(); err != nil {
			errs = append(errs, fmt.Errorf("BERTH_OIDC_CLIENT_SECRET_FILE: %w", err))
		}
	}
	return errors.Join(errs...)
}

// Provider is what a login page needs to know; nil when there is no provider.
func (c Config) Provider() *apigen.LoginProvider {
	if c.Issuer == "" {
		return nil
	}
	return &apigen.LoginProvider{Name: c.Name, Path: Path}
}

// checkIssuer takes https, and http on this machine: the provider says who somebody is.
func checkIssuer(issuer string) error {
	u, err := url.Parse(issuer)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("is not an address such as https://login.example.com")
	}
	return browser.CheckURL(u.Scheme + "://" + u.Host)
}

// secret is "" for a public client.
func (c Config) secret() (string, error) {
	if c.ClientSecretFile == "" {
		return "", nil
	}
	raw, err := os.ReadFile(c.ClientSecretFile)
	if err != nil {
		return "", err
	}
	secret := strings.TrimSpace(string(raw))
	if secret == "" {
		return "", errors.New("the file is empty")
	}
	return secret, nil
}
