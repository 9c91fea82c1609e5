package cloudcluster_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/runner/agent/cloudcluster"
	"github.com/berth-dev/berth/runner/agent/cloudcluster/cloudtest"
)

const aks = "/subscriptions/00000000-1111-2222-3333-444444444444/resourceGroups/west/providers/Microsoft.ContainerService/managedClusters/west"

func TestOf(t *testing.T) {
	t.Parallel()
	type m = map[string]any
	eks := cloudcluster.Cluster{Provider: cloudcluster.EKS, Region: "eu-central-1", Account: "123456789012", Name: "west"}
	byHost := cloudcluster.Cluster{Provider: cloudcluster.EKS, Region: "us-gov-west-1", Name: "west", Endpoint: "abcd.gr7.us-gov-west-1.eks.amazonaws.com"}
	gke := cloudcluster.Cluster{Provider: cloudcluster.GKE, ID: "projects/acme-prod/locations/europe-west1/clusters/west", Endpoint: "34.1.2.3"}
	for _, tc := range []struct {
		name    string
		outputs m
		want    cloudcluster.Cluster
	}{
		{"the ARN of EKS", m{"cluster": m{"arn": "arn:aws:eks:eu-central-1:123456789012:cluster/west"}}, eks},
		{"outputs of their own", m{"arn": "arn:aws:eks:eu-central-1:123456789012:cluster/west"}, eks},
		{"name and endpoint of EKS", m{"cluster": m{"name": "west", "endpoint": "https://ABCD.gr7.us-gov-west-1.eks.amazonaws.com"}}, byHost},
		{"the id of GKE", m{"cluster": m{"id": "projects/acme-prod/locations/europe-west1/clusters/west", "endpoint": "34.1.2.3"}}, gke},
		{"the self_link of GKE", m{"cluster": m{"self_link": "https://container.googleapis.com/v1/projects/acme-prod/zones/europe-west1/clusters/west", "endpoint": "https://34.1.2.3"}}, gke},
		{"the parts of GKE", m{"cluster": m{"name": "west", "location": "europe-west1", "project_id": "acme-prod", "endpoint": "34.1.2.3:443"}}, gke},
		{"the id of AKS", m{"cluster": m{"id": aks}}, cloudcluster.Cluster{Provider: cloudcluster.AKS, ID: aks}},
		{"a name alone", m{"cluster": m{"name": "west"}}, cloudcluster.Cluster{}},
		{"an endpoint that only looks like EKS", m{"cluster": m{"name": "west", "endpoint": "https://abcd.gr7.eu-central-1.eks.amazonaws.com.example.com"}}, cloudcluster.Cluster{}},
		{"an ARN of something else", m{"arn": "arn:aws:iam::123456789012:role/x"}, cloudcluster.Cluster{}},
		{"an ARN that leaves its path", m{"arn": "arn:aws:eks:eu-central-1:123456789012:cluster/../x"}, cloudcluster.Cluster{}},
		{"an id of AKS that leaves its path", m{"id": strings.Replace(aks, "west", "..", 1)}, cloudcluster.Cluster{}},
		{"a region that is an address", m{"arn": "arn:aws:eks:example.com/:123456789012:cluster/x"}, cloudcluster.Cluster{}},
		{"nothing", nil, cloudcluster.Cluster{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, ok := cloudcluster.Of(tc.outputs)
			if diff := cmp.Diff(tc.want, got); diff != "" || ok != (tc.want.Provider != "") {
				t.Errorf("ok %v (-want +got):\n%s", ok, diff)
			}
		})
	}
}

const authority = "-----BEGIN CERTIFICATE-----\neA==\n-----END CERTIFICATE-----\n"

// Address and authority are the cloud's word; the token opens this cluster.
func TestAccess(t *testing.T) {
	workload := func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(file, []byte(cloudtest.Federation()+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv("AZURE_TENANT_ID", "tenant")
		t.Setenv("AZURE_CLIENT_ID", "client")
		t.Setenv("AZURE_FEDERATED_TOKEN_FILE", file)
	}
	for _, tc := range []struct {
		name    string
		cluster map[string]any
		before  func(*testing.T)
		opens   func(token string) bool
		life    time.Duration
	}{
		{name: "EKS", cluster: map[string]any{"arn": "arn:aws:eks:eu-central-1:123456789012:cluster/west"}, life: 14 * time.Minute,
			opens: func(token string) bool {
				now := time.Now()
				return cloudtest.OpensEKS(token, "west", "eu-central-1", now) == nil &&
					cloudtest.OpensEKS(token, "east", "eu-central-1", now) != nil && cloudtest.OpensEKS(token, "west", "eu-central-1", now.Add(16*time.Minute)) != nil
			}},
		{name: "GKE, by the metadata server", cluster: map[string]any{"id": "projects/acme-prod/locations/europe-west1/clusters/west"}, life: time.Hour,
			opens: func(token string) bool { return strings.HasPrefix(token, "google-") }},
		{name: "AKS, by the machine's identity", cluster: map[string]any{"id": aks}, life: time.Hour, opens: forAKS},
		{name: "AKS, by workload identity", cluster: map[string]any{"id": aks}, life: time.Hour, before: workload, opens: forAKS},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cloud := cloudtest.New(t)
			cloud.Server, cloud.Authority = "https://west.example.com", authority
			if tc.before != nil {
				tc.before(t)
			}
			c, _ := cloudcluster.Of(map[string]any{"cluster": tc.cluster})
			place, err := cloud.Clouds().Reach(t.Context(), c)
			if err != nil || place.Server != "https://west.example.com" || string(place.Authority) != authority {
				t.Fatalf("the cluster is at %+v: %v", place, err)
			}
			token, err := cloud.Clouds().Token(t.Context(), c)
			if err != nil || !tc.opens(token.Text) {
				t.Fatalf("token %q: %v", token.Text, err)
			}
			if life := time.Until(token.Until); life > tc.life+time.Second || life < tc.life-time.Minute {
				t.Errorf("it lasts %s, want %s", life, tc.life)
			}
		})
	}
}

func forAKS(token string) bool { return strings.HasPrefix(token, "e30.eyJhdWQiOiI2ZGFlNDJmOC0") }

// Outputs are the vendor's: they cannot have a token sent elsewhere, or one made for
// a cluster of another account. What a cloud says does not get into errors.
func TestAttackAccess(t *testing.T) {
	const arn = "arn:aws:eks:eu-central-1:123456789012:cluster/west"
	for _, tc := range []struct {
		name      string
		cluster   map[string]any
		before    func(*testing.T, *cloudtest.Cloud)
		want      string
		transient bool
	}{
		{name: "another address", cluster: map[string]any{"arn": arn, "endpoint": "https://vendor.example.net"}, want: "at vendor.example.net, and its cloud says west.example.com: no token goes there"},
		{name: "an address of GKE", cluster: map[string]any{"id": "projects/acme-prod/locations/europe-west1/clusters/west", "endpoint": "203.0.113.9"}, want: "no token goes there"},
		{name: "an address of AKS", cluster: map[string]any{"id": aks, "endpoint": "https://vendor.example.net"}, want: "no token goes there"},
		{name: "another account", cluster: map[string]any{"arn": strings.Replace(arn, "123456789012", "999999999999", 1)}, want: "account 999999999999, and the runner's identity is of another one"},
		{name: "a refusal", cluster: map[string]any{"arn": arn}, before: func(t *testing.T, _ *cloudtest.Cloud) { t.Setenv("AWS_SECRET_ACCESS_KEY", "wr0ng-secret") },
			want: "AWS does not let the runner's identity describe EKS cluster west in eu-central-1: Forbidden"},
		{name: "no identity", cluster: map[string]any{"arn": arn}, before: func(t *testing.T, _ *cloudtest.Cloud) { t.Setenv("AWS_ACCESS_KEY_ID", "") },
			want: "the runner has no identity of AWS that works"},
		{name: "a cloud that is down", cluster: map[string]any{"id": aks}, before: func(_ *testing.T, c *cloudtest.Cloud) { c.Status = http.StatusServiceUnavailable },
			want: "Service Unavailable", transient: true},
		{name: "a cluster that is not made yet", cluster: map[string]any{"arn": arn}, before: func(_ *testing.T, c *cloudtest.Cloud) { c.Authority = "" },
			want: "gives no certificate authority", transient: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cloud := cloudtest.New(t)
			cloud.Server, cloud.Authority = "https://west.example.com", authority
			if tc.before != nil {
				tc.before(t, cloud)
			}
			c, ok := cloudcluster.Of(map[string]any{"cluster": tc.cluster})
			if !ok {
				t.Fatal("the outputs name no cluster")
			}
			place, err := cloud.Clouds().Reach(t.Context(), c)
			e, known := err.(*cloudcluster.Error) //nolint:errorlint // exactly that
			if !known || !strings.Contains(e.Error(), tc.want) || e.Transient != tc.transient || e.Remedy == "" {
				t.Errorf("%+v, %#v, want an error with %q", place, err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error has a secret: %v", err)
			}
		})
	}
}

func TestRenewAfter(t *testing.T) {
	t.Parallel()
	for left, want := range map[time.Duration]time.Duration{
		14 * time.Minute: 560 * time.Second, time.Hour: 40 * time.Minute, 0: time.Second, -time.Hour: time.Second,
	} {
		if got := cloudcluster.RenewAfter(left); got != want {
			t.Errorf("with %s left it is renewed after %s, want %s", left, got, want)
		}
	}
}
