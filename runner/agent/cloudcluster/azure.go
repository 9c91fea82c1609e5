package cloudcluster

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/berth-dev/berth/pkg/cloudauth"
)

const (
	// aksServer is the application that every AKS cluster with Entra ID is, for which
	// it takes tokens. https://azure.github.io/kubelogin/concepts/aks.html names it.
	aksServer = "6dae42f8-4368-4678-94ff-3960e28e3630"

	// azureManagement is Azure's API, and what tokens for it are asked for.
	azureManagement = "https://management.azure.com"
)

// tokenAzure is one of the runner's identity in Azure: workload identity, or the
// identity of its machine.
func (c Clouds) tokenAzure(ctx context.Context, resource string) (Token, error) {
	directory := c.Azure
	if directory.HTTP == nil {
		directory.HTTP = c.client()
	}
	token, err := directory.Token(ctx, cloudauth.Application{}, resource)
	if err != nil {
		return Token{}, err
	}
	until := cloudauth.Expiry(token)
	if until.IsZero() {
		until = c.now().Add(tokenGuess)
	}
	return Token{Text: token, Until: until}, nil
}

// reachAKS asks for the kubeconfig of a cluster's users, of which it takes address
// and authority: its credentials are for people, or are an administrator's.
// https://learn.microsoft.com/rest/api/aks/managed-clusters/list-cluster-user-credentials
func (c Clouds) reachAKS(ctx context.Context, cluster Cluster) (Place, []string, error) {
	token, err := c.tokenAzure(ctx, azureManagement)
	if err != nil {
		return Place{}, nil, err
	}
	base := strings.TrimSuffix(cmp.Or(c.ARM, azureManagement), "/")
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+cluster.ID+"/listClusterUserCredential?api-version=2024-09-01", nil)
	if err != nil {
		return Place{}, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+token.Text)
	var answer struct {
		Kubeconfigs []struct {
			Value string `json:"value"`
		} `json:"kubeconfigs"`
	}
	if err := cloudauth.AskJSON(c.client(), req, &answer); err != nil {
		return Place{}, nil, err
	}
	var kubeconfig struct {
		Clusters []struct {
			Cluster struct {
				Server    string `json:"server"`
				Authority []byte `json:"certificate-authority-data"`
			} `json:"cluster"`
		} `json:"clusters"`
	}
	if len(answer.Kubeconfigs) == 0 {
		return Place{}, nil, errors.New("its answer has no kubeconfig")
	}
	raw, err := base64.StdEncoding.DecodeString(answer.Kubeconfigs[0].Value)
	if err == nil {
		err = yaml.Unmarshal(raw, &kubeconfig)
	}
	if err != nil || len(kubeconfig.Clusters) != 1 {
		return Place{}, nil, errors.New("its answer has no kubeconfig of one cluster")
	}
	got := kubeconfig.Clusters[0].Cluster
	return Place{Server: got.Server, Authority: got.Authority}, []string{host(got.Server)}, nil
}
