package cloudcluster

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"github.com/berth-dev/berth/pkg/cloudauth"
)

// googleScope is what GKE and its API take a token for.
const googleScope = "https://www.googleapis.com/auth/cloud-platform"

// tokenGoogle is one of the runner's identity in Google Cloud: a key file or
// workload identity federation (GOOGLE_APPLICATION_CREDENTIALS), or the metadata
// server of its pod or machine.
func (c Clouds) tokenGoogle(ctx context.Context) (Token, error) {
	if c.HTTP != nil {
		ctx = context.WithValue(ctx, oauth2.HTTPClient, c.HTTP)
	}
	identity, err := google.FindDefaultCredentials(ctx, googleScope)
	if err != nil {
		return Token{}, err
	}
	token, err := identity.TokenSource.Token()
	if answer, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		e := &cloudauth.AnswerError{Code: cloudauth.CodeOf(answer.Body)}
		if answer.Response != nil {
			e.Status = answer.Response.StatusCode
		}
		return Token{}, e
	}
	if err != nil {
		return Token{}, err
	}
	until := token.Expiry
	if until.IsZero() {
		until = c.now().Add(tokenGuess)
	}
	return Token{Text: token.AccessToken, Until: until}, nil
}

// reachGKE asks projects.locations.clusters.get.
// https://cloud.google.com/kubernetes-engine/docs/reference/rest/v1/projects.locations.clusters
func (c Clouds) reachGKE(ctx context.Context, cluster Cluster) (Place, []string, error) {
	token, err := c.tokenGoogle(ctx)
	if err != nil {
		return Place{}, nil, err
	}
	base := strings.TrimSuffix(cmp.Or(c.GKE, "https://container.googleapis.com"), "/")
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/v1/"+cluster.ID, nil)
	if err != nil {
		return Place{}, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+token.Text)
	var answer struct {
		Endpoint   string `json:"endpoint"`
		MasterAuth struct {
			Authority string `json:"clusterCaCertificate"`
		} `json:"masterAuth"`
		Private struct {
			Private string `json:"privateEndpoint"`
			Public  string `json:"publicEndpoint"`
		} `json:"privateClusterConfig"`
	}
	if err := cloudauth.AskJSON(c.client(), req, &answer); err != nil {
		return Place{}, nil, err
	}
	authority, err := base64.StdEncoding.DecodeString(answer.MasterAuth.Authority)
	if err != nil {
		return Place{}, nil, err
	}
	return Place{Server: "https://" + answer.Endpoint, Authority: authority},
		[]string{host(answer.Endpoint), host(answer.Private.Private), host(answer.Private.Public)}, nil
}
