package cloudcluster

import (
	"cmp"
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/berth-dev/berth/pkg/cloudauth"
)

const (
	// noBody is the SHA-256 of an empty body, which a signature covers.
	noBody = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

	// clusterHeader binds a token to one cluster: EKS asks STS with its own name.
	clusterHeader = "x-k8s-aws-id"

	// eksLife is how long a token is used. EKS takes it for 15 minutes after it was
	// signed, and clocks differ.
	eksLife = 14 * time.Minute
)

// awsIdentity is the runner's in AWS: of its environment, a profile (which may
// assume a role), a web identity, its container or its machine.
func (c Clouds) awsIdentity(ctx context.Context, region string) (aws.Credentials, error) {
	options := []func(*config.LoadOptions) error{config.WithRegion(region)}
	if c.HTTP != nil {
		options = append(options, config.WithHTTPClient(c.HTTP))
	}
	cfg, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return aws.Credentials{}, err
	}
	return cfg.Credentials.Retrieve(ctx)
}

// domain is that of the region's partition.
func domain(region string) string {
	if strings.HasPrefix(region, "cn-") {
		return region + ".amazonaws.com.cn"
	}
	return region + ".amazonaws.com"
}

func (c Clouds) reachEKS(ctx context.Context, cluster Cluster) (Place, []string, error) {
	identity, err := c.awsIdentity(ctx, cluster.Region)
	if err != nil {
		return Place{}, nil, err
	}
	base := cmp.Or(c.EKS, "https://eks."+domain(cluster.Region))
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(base, "/")+"/clusters/"+url.PathEscape(cluster.Name), nil)
	if err != nil {
		return Place{}, nil, err
	}
	if err := v4.NewSigner().SignHTTP(ctx, identity, req, noBody, "eks", cluster.Region, c.now()); err != nil {
		return Place{}, nil, err
	}
	var answer struct {
		Cluster struct {
			ARN       string `json:"arn"`
			Endpoint  string `json:"endpoint"`
			Authority struct {
				Data string `json:"data"`
			} `json:"certificateAuthority"`
		} `json:"cluster"`
	}
	if err := cloudauth.AskJSON(c.client(), req, &answer); err != nil {
		return Place{}, nil, err
	}
	got := answer.Cluster
	if m := eksARN.FindStringSubmatch(got.ARN); cluster.Account != "" && (m == nil || m[2] != cluster.Account) {
		return Place{}, nil, &Error{
			text:   "the outputs name " + cluster.String() + " of account " + cluster.Account + ", and the runner's identity is of another one",
			Remedy: "give the runner an identity of account " + cluster.Account,
		}
	}
	authority, err := base64.StdEncoding.DecodeString(got.Authority.Data)
	if err != nil {
		return Place{}, nil, err
	}
	return Place{Server: got.Endpoint, Authority: authority}, []string{host(got.Endpoint)}, nil
}

// tokenEKS signs, without sending it, the question to STS who the runner is. EKS
// sends it on and learns the answer.
// https://github.com/kubernetes-sigs/aws-iam-authenticator describes the token.
func (c Clouds) tokenEKS(ctx context.Context, cluster Cluster) (Token, error) {
	identity, err := c.awsIdentity(ctx, cluster.Region)
	if err != nil {
		return Token{}, err
	}
	query := url.Values{"Action": {"GetCallerIdentity"}, "Version": {"2011-06-15"}, "X-Amz-Expires": {"60"}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://sts."+domain(cluster.Region)+"/?"+query.Encode(), nil)
	if err != nil {
		return Token{}, err
	}
	req.Header.Set(clusterHeader, cluster.Name)
	now := c.now()
	signed, _, err := v4.NewSigner().PresignHTTP(ctx, identity, req, noBody, "sts", cluster.Region, now)
	if err != nil {
		return Token{}, err
	}
	until := now.Add(eksLife)
	if identity.CanExpire && identity.Expires.Before(until) {
		until = identity.Expires
	}
	return Token{Text: "k8s-aws-v1." + base64.RawURLEncoding.EncodeToString([]byte(signed)), Until: until}, nil
}
