package agent

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/berth-dev/berth/pkg/logapi"
	"github.com/berth-dev/berth/pkg/logship"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/pkg/weakened"
	"github.com/berth-dev/berth/runner/agent/control"
	"github.com/berth-dev/berth/runner/agent/datadir"
)

// tokenMargin is how long before its end a registry token is not used any more.
const tokenMargin = time.Minute

// link is the present session, for callers that have to wait for one.
type link struct {
	mu      sync.Mutex
	session *runnerapi.Session
	changed chan struct{}
}

func newLink() *link { return &link{changed: make(chan struct{})} }

func (l *link) set(s runnerapi.Session) { l.put(&s) }
func (l *link) close()                  { l.put(nil) }

func (l *link) put(s *runnerapi.Session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session = s
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *link) open() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session != nil
}

// wait returns the session, as soon as there is one.
func (l *link) wait(ctx context.Context) (runnerapi.Session, error) {
	for {
		l.mu.Lock()
		session, changed := l.session, l.changed
		l.mu.Unlock()
		if session != nil {
			return *session, nil
		}
		select {
		case <-ctx.Done():
			return runnerapi.Session{}, context.Cause(ctx)
		case <-changed:
		}
	}
}

// hosts are where logs and artifacts go. Tokens and results go there, so a
// session cannot name new ones.
type hosts struct {
	LogURL   string `json:"log_url,omitempty"`
	Registry string `json:"registry,omitempty"`
}

// errHosts: a session names a place that the customer's side does not trust.
var errHosts = errors.New("the session names an address that is not trusted")

// place puts logs and artifacts of a session where they may go: with one_host to
// the one address of the control plane, else to where trust.json or, for what it
// leaves open, the first session said. A session that names another place is
// refused.
func (a *agent) place(ctx context.Context, session *runnerapi.Session) error {
	if a.trust.OneHost {
		u, err := url.Parse(a.trust.RunnerAPIURL)
		if err != nil {
			return fmt.Errorf("runner-api url: %w", err)
		}
		session.LogURL = a.trust.RunnerAPIURL
		session.Registry = runnerapi.Registry{Host: u.Host, PlainHTTP: u.Scheme == "http"}
		return nil
	}
	kept, err := a.pinnedHosts()
	if err != nil {
		return err
	}
	pinned := hosts{LogURL: first(a.trust.LogURL, kept.LogURL), Registry: first(a.trust.Registry, kept.Registry)}
	if weakened.Is(weakened.Hosts) {
		return nil
	}
	pin, err := pinned.allow(*session)
	if err != nil {
		return fmt.Errorf("%w: correct log_url and registry in %s if the control plane has moved, and remove %s", err, a.dir.Trust(), a.dir.Hosts())
	}
	if pin == pinned {
		return nil
	}
	if err := a.disk.Insist(func() error { return datadir.WriteJSON(a.dir.Hosts(), pin) }); err != nil {
		return err
	}
	a.note(ctx, "addresses for logs and artifacts were taken from the first session", pin.LogURL+" "+pin.Registry)
	return nil
}

// pinnedHosts is what the first session said, empty before it.
func (a *agent) pinnedHosts() (kept hosts, err error) {
	if a.trust.OneHost {
		return kept, nil // it is not asked
	}
	if _, err = datadir.ReadJSON(a.dir.Hosts(), &kept); err != nil {
		return kept, damaged(a.dir.Hosts(), err, "restore the file from a copy, or remove it: then the next session says once more where logs and artifacts go")
	}
	return kept, nil
}

// allow compares what a session names with what is pinned, and returns what is
// pinned from now on. Addresses count by scheme and host.
func (h hosts) allow(s runnerapi.Session) (hosts, error) {
	scheme := "https"
	if s.Registry.PlainHTTP {
		scheme = "http"
	}
	registry := scheme + "://" + s.Registry.Host
	switch {
	case h.LogURL != "" && !samePlace(h.LogURL, s.LogURL):
		return h, fmt.Errorf("%w: logs at %q in place of %q", errHosts, s.LogURL, h.LogURL)
	case h.Registry != "" && !samePlace(h.Registry, registry):
		return h, fmt.Errorf("%w: artifacts at %q in place of %q", errHosts, registry, h.Registry)
	}
	return hosts{LogURL: first(h.LogURL, s.LogURL), Registry: first(h.Registry, registry)}, nil
}

func samePlace(a, b string) bool {
	left, errA := url.Parse(a)
	right, errB := url.Parse(b)
	return errA == nil && errB == nil && left.Host != "" && left.Scheme == right.Scheme && left.Host == right.Host && left.Path == right.Path
}

// sinks are the streams of log-ingest.
type sinks struct{ agent *agent }

// Sink waits for a session, which says where log-ingest is.
func (s *sinks) Sink(ctx context.Context, streamID string, token func() string) (logship.Sink, error) {
	session, err := s.agent.link.wait(ctx)
	if err != nil {
		return nil, err
	}
	client, err := logapi.NewClientWithResponses(session.LogURL, logapi.WithHTTPClient(control.Gated(s.agent.http, s.agent.power)))
	if err != nil {
		return nil, err
	}
	return logship.HTTPSink{Client: client, Stream: streamID, Token: token}, nil
}

// registry is the org's registry, with tokens that end with the session.
type registry struct {
	agent *agent

	mu     sync.Mutex
	tokens map[runnerapi.RegistryAction]registryToken
}

type registryToken struct {
	session string
	runnerapi.RegistryToken
}

// Remote names a repository of the registry.
func (r *registry) Remote(ctx context.Context, repository string, action runnerapi.RegistryAction) (oci.Remote, error) {
	session, err := r.agent.link.wait(ctx)
	if err != nil {
		return oci.Remote{}, err
	}
	return oci.Remote{
		Registry: session.Registry.Host, Repository: repository, PlainHTTP: session.Registry.PlainHTTP,
		Client: control.Gated(r.agent.http, r.agent.power),
		Token:  func(ctx context.Context) (string, error) { return r.token(ctx, action) },
	}, nil
}

// token returns one that is good for a while, a cached one if possible.
func (r *registry) token(ctx context.Context, action runnerapi.RegistryAction) (string, error) {
	session, err := r.agent.link.wait(ctx)
	if err != nil {
		return "", err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	have := r.tokens[action]
	if have.session == session.SessionID && r.agent.cfg.Now().Add(tokenMargin).Before(have.ExpiresAt) {
		return have.Token, nil
	}
	actions := []runnerapi.RegistryAction{runnerapi.RegistryActionPull}
	if action == runnerapi.RegistryActionPush {
		actions = append(actions, action) // a push also asks what is there already
	}
	fresh, err := r.agent.api.RegistryToken(ctx, actions...)
	if err != nil {
		return "", err
	}
	if r.tokens == nil {
		r.tokens = map[runnerapi.RegistryAction]registryToken{}
	}
	r.tokens[action] = registryToken{session: session.SessionID, RegistryToken: fresh}
	return fresh.Token, nil
}
