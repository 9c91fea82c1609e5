package agent

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/berth-dev/berth/pkg/logapi"
	"github.com/berth-dev/berth/pkg/logship"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/control"
	"github.com/berth-dev/berth/runner/agent/datadir"
)

// tokenMargin is how long before its end a registry token is not used any more.
const tokenMargin = time.Minute

// link is the present session, for whoever has to wait for one.
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

// oneHost sends logs and artifacts to the one address of the control plane,
// when the customer's side says that it has no other.
func oneHost(trust datadir.Trust, session *runnerapi.Session) error {
	if !trust.OneHost {
		return nil
	}
	u, err := url.Parse(trust.RunnerAPIURL)
	if err != nil {
		return fmt.Errorf("runner-api url: %w", err)
	}
	session.LogURL = trust.RunnerAPIURL
	session.Registry = runnerapi.Registry{Host: u.Host, PlainHTTP: u.Scheme == "http"}
	return nil
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
