package modulefetch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/hashicorp/go-version"
)

// maxList bounds what a registry says at once, in bytes.
const maxList = 8 << 20

// exactly tells whether a constraint names one version.
func exactly(constraint string) bool {
	_, err := version.NewSemver(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(constraint), "=")))
	return err == nil
}

// newest chooses the newest version that a constraint allows. A version before a
// release (1.0.0-beta) is chosen only by its own name, as Terraform does.
func newest(versions []string, constraint string) (string, error) {
	allowed, err := version.NewConstraint(constraint)
	if constraint == "" {
		allowed, err = version.Constraints{}, nil
	}
	if err != nil {
		return "", fmt.Errorf("its version %q is neither a version nor a range", constraint)
	}
	var best *version.Version
	for _, text := range versions {
		v, err := version.NewSemver(text)
		if err != nil || !allowed.Check(v) || v.Prerelease() != "" && !exactly(constraint) {
			continue
		}
		if best == nil || v.GreaterThan(best) {
			best = v
		}
	}
	if best == nil {
		return "", fmt.Errorf("the registry has no version %q of it, but %d others", constraint, len(versions))
	}
	return best.Original(), nil
}

// fromRegistry asks a registry which version there is, and where. The protocol is
// that of https://developer.hashicorp.com/terraform/internals/module-registry-protocol.
func (f *fetcher) fromRegistry(ctx context.Context, a Address, constraint string) (found Address, ver string, err error) {
	base, err := f.discover(ctx, a.Host)
	if err != nil {
		return found, "", err
	}
	var list struct {
		Modules []struct {
			Versions []struct {
				Version string `json:"version"`
			} `json:"versions"`
		} `json:"modules"`
	}
	at := base.JoinPath(strings.Split(a.Path, "/")...)
	if err := f.getJSON(ctx, at.JoinPath("versions"), &list); err != nil {
		return found, "", err
	}
	var versions []string
	for _, m := range list.Modules {
		for _, v := range m.Versions {
			versions = append(versions, v.Version)
		}
	}
	if ver, err = newest(versions, constraint); err != nil {
		return found, "", err
	}
	download := at.JoinPath(ver, "download")
	res, err := f.get(ctx, download)
	if err != nil {
		return found, "", err
	}
	defer res.Body.Close()
	where := res.Header.Get("X-Terraform-Get")
	if where == "" {
		var body struct {
			Location string `json:"location"`
		}
		_ = json.NewDecoder(io.LimitReader(res.Body, maxList)).Decode(&body) // relative reports a missing one
		where = body.Location
	}
	found, err = relative(download, where)
	return found, ver, err
}

// relative reads where a server says that a module is.
func relative(from *url.URL, where string) (Address, error) {
	if where == "" {
		return Address{}, errors.New("the server does not say where it is")
	}
	if strings.HasPrefix(where, "/") || strings.HasPrefix(where, "./") || strings.HasPrefix(where, "../") {
		u, err := from.Parse(where)
		if err != nil {
			return Address{}, errors.New("the server says no address")
		}
		where = u.String()
	}
	a, err := Parse(where)
	switch {
	case err != nil:
		return a, fmt.Errorf("the server says where it is, but %w", err)
	case a.Git == "" && a.Archive == "":
		return a, errors.New("the server leads to yet another one")
	}
	return a, nil
}

// discover asks a host where its registry of modules is.
func (f *fetcher) discover(ctx context.Context, host string) (*url.URL, error) {
	home := &url.URL{Scheme: "https", Host: host, Path: "/.well-known/terraform.json"}
	if f.session.keys.Names("http", host) {
		home.Scheme = "http" // this machine, in the operator's file
	}
	var services struct {
		Modules string `json:"modules.v1"`
	}
	if err := f.getJSON(ctx, home, &services); err != nil {
		return nil, err
	}
	base, err := home.Parse(services.Modules)
	if services.Modules == "" || err != nil || base.User != nil {
		return nil, fmt.Errorf("%s has no registry of modules", host)
	}
	return base, nil
}

func (f *fetcher) getJSON(ctx context.Context, u *url.URL, v any) error {
	res, err := f.get(ctx, u)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if err := json.NewDecoder(io.LimitReader(res.Body, maxList)).Decode(v); err != nil {
		return fmt.Errorf("the answer of %s is no JSON", u.Host)
	}
	return nil
}

// get asks for an address; its errors name the host and no more: the rest may be signed.
func (f *fetcher) get(ctx context.Context, u *url.URL) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, errors.New("it is no address")
	}
	res, err := shared().Do(req)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err
		}
		return nil, fmt.Errorf("%s cannot be reached: %w", u.Host, err)
	}
	if res.StatusCode/100 != 2 {
		res.Body.Close()
		return nil, fmt.Errorf("%s answers %s", u.Host, res.Status)
	}
	return res, nil
}
