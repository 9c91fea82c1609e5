package cloudcluster

import (
	"context"
	"encoding/pem"
	"errors"
	"net/http"
	"os"
	"time"

	"github.com/berth-dev/berth/pkg/cloudauth"
	"github.com/berth-dev/berth/pkg/reach"
)

const (
	// askTimeout is for one question to a cloud, which answers in well under a second.
	askTimeout = 20 * time.Second

	// tokenGuess is the life of a token that says nothing about it.
	tokenGuess = 10 * time.Minute
)

// Clouds are asked for clusters and tokens, as the identity that the runner has
// there. The zero value asks the public clouds. It is safe for concurrent use.
type Clouds struct {
	HTTP *http.Client
	// EKS, GKE and ARM are addresses to ask instead of a cloud's own.
	EKS, GKE, ARM string
	// Azure gives its tokens.
	Azure cloudauth.Azure
	Now   func() time.Time
}

// Place is where a cluster is, as its cloud says.
type Place struct {
	// Server is the address of the API server, https.
	Server string
	// Authority is what proves it, PEM.
	Authority []byte
}

// Token opens a cluster until it ends.
type Token struct {
	Text  string
	Until time.Time
}

// Error is why a cloud gave nothing, in words for people that hold nothing secret.
type Error struct {
	// Remedy is what the customer can do.
	Remedy string
	// Transient: the same may work later.
	Transient bool
	text      string
}

// Error is the reason.
func (e *Error) Error() string { return e.text }

// Reach asks a cluster's cloud where it is.
//
// Errors: an *Error, or that of ctx.
func (c Clouds) Reach(ctx context.Context, cluster Cluster) (Place, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var place Place
	var hosts []string
	var err error
	switch cluster.Provider {
	case EKS:
		place, hosts, err = c.reachEKS(ctx, cluster)
	case GKE:
		place, hosts, err = c.reachGKE(ctx, cluster)
	case AKS:
		place, hosts, err = c.reachAKS(ctx, cluster)
	default:
		err = errors.New("no such provider")
	}
	if err != nil {
		return Place{}, explain(ctx, cluster, "describe", err)
	}
	if cluster.Endpoint != "" {
		same := false
		for _, h := range hosts {
			same = same || h != "" && h == cluster.Endpoint
		}
		if !same {
			return Place{}, &Error{
				text:   "the outputs say that " + cluster.String() + " is at " + cluster.Endpoint + ", and its cloud says " + host(place.Server) + ": no token goes there",
				Remedy: "have the component output the endpoint that the cloud gives the cluster",
			}
		}
		if h := cluster.Endpoint; h != host(place.Server) {
			place.Server = "https://" + h
		}
	}
	if block, _ := pem.Decode(place.Authority); block == nil {
		return Place{}, &Error{text: cluster.String() + ": its cloud gives no certificate authority", Remedy: "wait until the cluster is made, then retry the step", Transient: true}
	}
	return place, nil
}

// Token makes a token for a cluster.
//
// Errors: an *Error, or that of ctx.
func (c Clouds) Token(ctx context.Context, cluster Cluster) (Token, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var token Token
	var err error
	switch cluster.Provider {
	case EKS:
		token, err = c.tokenEKS(ctx, cluster)
	case GKE:
		token, err = c.tokenGoogle(ctx)
	case AKS:
		token, err = c.tokenAzure(ctx, aksServer)
	default:
		err = errors.New("no such provider")
	}
	if err != nil {
		return Token{}, explain(ctx, cluster, "open", err)
	}
	return token, nil
}

func (c Clouds) now() time.Time {
	if c.Now != nil {
		return c.Now()
	}
	return time.Now()
}

func (c Clouds) client() *http.Client {
	if c.HTTP != nil {
		return cloudauth.Client(*c.HTTP)
	}
	return cloudauth.Client(http.Client{})
}

// identities says whose identity is used, and what it needs to describe a cluster.
var identities = map[Provider]struct{ of, right string }{
	EKS: {"AWS", "eks:DescribeCluster for it, and an access entry in it"},
	GKE: {"Google Cloud", "container.clusters.get for it, and a role in it"},
	AKS: {"Azure", "Azure Kubernetes Service Cluster User Role on it, and a role in it"},
}

// explain says in words why a cloud gave nothing. What an SDK says may quote
// settings, and is dropped.
func explain(ctx context.Context, cluster Cluster, verb string, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	cloud := identities[cluster.Provider]
	e := &Error{Remedy: "give the runner an identity of " + cloud.of + " that has " + cloud.right}
	answer, answered := errors.AsType[*cloudauth.AnswerError](err)
	why, lasting := reach.Why(err)
	switch {
	case answered:
		e.Transient = answer.Transient()
		e.text = cloud.of + " does not let the runner's identity " + verb + " " + cluster.String() + ": " + answer.Error()
	case errors.Is(err, os.ErrNotExist) || why == "":
		e.text = "the runner has no identity of " + cloud.of + " that works, so it cannot " + verb + " " + cluster.String()
	default:
		e.Transient = !lasting
		e.text = cloud.of + " cannot be reached, to " + verb + " " + cluster.String() + ": " + why
		e.Remedy = "let the runner reach " + cloud.of + ", then retry the step"
	}
	return e
}

// RenewAfter is how long a token is used before the next one is asked for: two
// thirds of what it still has, so that there is time to ask again, and at least a
// moment.
func RenewAfter(left time.Duration) time.Duration { return max(left*2/3, time.Second) }
