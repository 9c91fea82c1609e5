package oidclogin

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

const (
	// askTimeout bounds each question to the provider.
	askTimeout = 10 * time.Second
	// discoverPause is how long a failed discovery is not tried again.
	discoverPause = time.Second
)

// provider talks to the provider. Discovery waits for the first login, and is tried again
// by the next one when it fails: ctl-api starts while the provider is away.
type provider struct {
	config   Config
	redirect string
	client   *http.Client

	mu     sync.Mutex
	found  *oidc.Provider
	failed error // of the last discovery,
	at     time.Time
}

func newProvider(config Config, redirect string) *provider {
	return &provider{config: config, redirect: redirect, client: &http.Client{
		Timeout: askTimeout,
		// A token endpoint that redirects would carry code and secret elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("the provider redirects") },
	}}
}

// discover is the provider, as it described itself. Its keys are fetched when they are
// needed, later too, so the context that they get does not end.
func (p *provider) discover(ctx context.Context) (*oidc.Provider, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found != nil {
		return p.found, nil
	}
	// Those who wait behind one that failed do not each wait for the provider again.
	if p.failed != nil && time.Since(p.at) < discoverPause {
		return nil, p.failed
	}
	found, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), p.client), p.config.Issuer)
	if err != nil {
		p.failed, p.at = fmt.Errorf("discover %s: %w", p.config.Issuer, err), time.Now()
		return nil, p.failed
	}
	p.found = found
	return found, nil
}

func (p *provider) oauth(found *oidc.Provider) (oauth2.Config, error) {
	secret, err := p.config.secret()
	return oauth2.Config{
		ClientID: p.config.ClientID, ClientSecret: secret, Endpoint: found.Endpoint(), RedirectURL: p.redirect,
		Scopes: []string{oidc.ScopeOpenID, "email", "profile"},
	}, err
}

// address is where the browser goes to log in.
func (p *provider) address(ctx context.Context, s state) (string, error) {
	found, err := p.discover(ctx)
	if err != nil {
		return "", err
	}
	config, err := p.oauth(found)
	return config.AuthCodeURL(s.State, oidc.Nonce(s.Nonce), oauth2.S256ChallengeOption(s.Verifier)), err
}

// errUntrusted is an answer of the provider that is not for this login.
var errUntrusted = errors.New("the answer of the provider is not for this login")

// person changes a code for what the provider says of who logged in.
func (p *provider) person(ctx context.Context, code string, s state) (Person, error) {
	ctx = oidc.ClientContext(ctx, p.client)
	found, err := p.discover(ctx)
	if err != nil {
		return Person{}, err
	}
	config, err := p.oauth(found)
	if err != nil {
		return Person{}, err
	}
	tokens, err := config.Exchange(ctx, code, oauth2.VerifierOption(s.Verifier))
	if err != nil {
		return Person{}, exchangeError(err)
	}
	raw, _ := tokens.Extra("id_token").(string)
	verified, err := found.Verifier(&oidc.Config{ClientID: p.config.ClientID}).Verify(ctx, raw)
	if err != nil {
		return Person{}, fmt.Errorf("%w: %w", errUntrusted, err)
	}
	if subtle.ConstantTimeCompare([]byte(verified.Nonce), []byte(s.Nonce)) != 1 {
		return Person{}, fmt.Errorf("%w: another nonce", errUntrusted)
	}
	var claims map[string]json.RawMessage
	if err := verified.Claims(&claims); err != nil {
		return Person{}, fmt.Errorf("%w: %w", errUntrusted, err)
	}
	if by := text(claims["azp"]); by != "" && by != p.config.ClientID || by == "" && len(verified.Audience) > 1 {
		return Person{}, fmt.Errorf("%w: it was made for another client", errUntrusted)
	}
	if err := p.addUserInfo(ctx, found, tokens, verified.Subject, claims); err != nil {
		return Person{}, err
	}
	return p.personOf(verified, claims), nil
}

// addUserInfo asks for the claims that are not in the token; many providers put groups
// and addresses there only.
func (p *provider) addUserInfo(ctx context.Context, found *oidc.Provider, tokens *oauth2.Token, subject string, claims map[string]json.RawMessage) error {
	if found.UserInfoEndpoint() == "" || claims["email"] != nil && claims[p.config.GroupsClaim] != nil {
		return nil
	}
	info, err := found.UserInfo(ctx, oauth2.StaticTokenSource(tokens))
	if err != nil {
		return fmt.Errorf("ask for user info: %w", err)
	}
	if info.Subject != subject {
		return fmt.Errorf("%w: the user info is about another subject", errUntrusted)
	}
	var more map[string]json.RawMessage
	if err := info.Claims(&more); err != nil {
		return fmt.Errorf("read user info: %w", err)
	}
	for name, value := range more {
		if claims[name] == nil {
			claims[name] = value
		}
	}
	return nil
}

func (p *provider) personOf(verified *oidc.IDToken, claims map[string]json.RawMessage) Person {
	who := Person{Issuer: verified.Issuer, Subject: verified.Subject, Name: text(claims["preferred_username"]), Groups: texts(claims[p.config.GroupsClaim])}
	// Some providers write the boolean as text.
	if yes := string(claims["email_verified"]); yes == "true" || yes == `"true"` {
		who.Email = text(claims["email"])
	}
	// The star of the rules is not a group that somebody can be in.
	who.Groups = slices.DeleteFunc(who.Groups, func(g string) bool { return g == anyGroup })
	return who
}

// exchangeError leaves out what the provider answered but for its code: that may repeat
// secrets of ours.
func exchangeError(err error) error {
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) {
		return fmt.Errorf("%w: the provider refuses the code: %q", errUntrusted, refused.ErrorCode)
	}
	return fmt.Errorf("exchange the code: %w", err)
}

func text(raw json.RawMessage) (s string) {
	_ = json.Unmarshal(raw, &s) // of another type: as if it were not there
	return s
}

// texts reads a list, or one by itself.
func texts(raw json.RawMessage) (all []string) {
	if json.Unmarshal(raw, &all) == nil {
		return all
	}
	if one := text(raw); one != "" {
		return []string{one}
	}
	return nil
}
