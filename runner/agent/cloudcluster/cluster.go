// Package cloudcluster makes credentials for clusters of EKS, GKE and AKS, on the
// customer's side and with no foreign command: out of the identity that the runner
// has in its cloud.
//
//	outputs of a component ──Of──▶ Cluster, a name ──Clouds.Reach──▶ address and authority
//	                                                └─Clouds.Token──▶ a token, and when it ends
//
// Outputs are the vendor's. So they only name a cluster: where it is and how it
// proves itself is asked of the cloud, as the runner's identity. A token never goes
// to an address that the cloud did not give. It is short-lived, so a caller asks for
// the next one before it ends.
package cloudcluster

import (
	"net"
	"net/url"
	"regexp"
	"strings"
)

// Provider is whose cluster it is.
type Provider string

// The providers.
const (
	EKS Provider = "eks" // AWS
	GKE Provider = "gke" // Google Cloud
	AKS Provider = "aks" // Azure
)

// Cluster names a cluster of a cloud. It holds no secret.
type Cluster struct {
	Provider Provider `json:"provider"`
	// Region, Account and Name are those of EKS; Account is "" where nothing said it.
	Region  string `json:"region,omitempty"`
	Account string `json:"account,omitempty"`
	Name    string `json:"name,omitempty"`
	// ID is projects/P/locations/L/clusters/N of GKE, or the resource id of AKS.
	ID string `json:"id,omitempty"`
	// Endpoint is the host that the outputs give, "" for none. The cloud has to give
	// the same.
	Endpoint string `json:"endpoint,omitempty"`
}

// String is how people name it.
func (c Cluster) String() string {
	if c.Provider == EKS {
		return "EKS cluster " + c.Name + " in " + c.Region
	}
	return strings.ToUpper(string(c.Provider)) + " cluster " + c.ID
}

var (
	eksName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$`)
	eksARN  = regexp.MustCompile(`^arn:aws[a-z-]*:eks:([a-z]{2}(?:-[a-z]+)+-\d):(\d{12}):cluster/([A-Za-z0-9][A-Za-z0-9_-]{0,99})$`)
	eksHost = regexp.MustCompile(`^[A-Za-z0-9]+\.[a-z0-9-]+\.([a-z]{2}(?:-[a-z]+)+-\d)\.eks\.amazonaws\.com(?:\.cn)?$`)
	gkeID   = regexp.MustCompile(`^(?:https://(?:www|container)\.googleapis\.com/(?:container/)?v1/)?projects/([a-z][a-z0-9-]{4,28}[a-z0-9])/(?:locations|zones|regions)/([a-z0-9-]{1,40})/clusters/([a-z][a-z0-9-]{0,39})$`)
	aksID   = regexp.MustCompile(`(?i)^/subscriptions/[0-9a-f-]{36}/resourceGroups/[\w.()-]{0,89}[\w()-]/providers/Microsoft\.ContainerService/managedClusters/[a-z0-9][\w-]{0,62}$`)
)

// Of finds which cluster of a cloud the outputs of a component name, in the object
// cluster or else in the outputs themselves:
//
//   - EKS: arn, or id that is one; or name with an endpoint of EKS
//   - GKE: id or self_link; or name, location and project (or project_id)
//   - AKS: id
//
// ok is false when they name none.
func Of(outputs map[string]any) (c Cluster, ok bool) {
	in, nested := outputs["cluster"].(map[string]any)
	if !nested {
		in = outputs
	}
	endpoint := host(text(in, "endpoint"))
	for _, id := range []string{text(in, "arn"), text(in, "id"), text(in, "self_link")} {
		if m := eksARN.FindStringSubmatch(id); m != nil {
			return Cluster{Provider: EKS, Region: m[1], Account: m[2], Name: m[3], Endpoint: endpoint}, true
		}
		if c, ok := gke(id, endpoint); ok {
			return c, true
		}
		if aksID.MatchString(id) {
			return Cluster{Provider: AKS, ID: id, Endpoint: endpoint}, true
		}
	}
	name := text(in, "name")
	if m := eksHost.FindStringSubmatch(endpoint); m != nil && eksName.MatchString(name) {
		return Cluster{Provider: EKS, Region: m[1], Name: name, Endpoint: endpoint}, true
	}
	for _, key := range []string{"project", "project_id"} {
		if c, ok := gke("projects/"+text(in, key)+"/locations/"+text(in, "location")+"/clusters/"+name, endpoint); ok {
			return c, true
		}
	}
	return Cluster{}, false
}

func gke(id, endpoint string) (Cluster, bool) {
	m := gkeID.FindStringSubmatch(id)
	if m == nil {
		return Cluster{}, false
	}
	return Cluster{Provider: GKE, ID: "projects/" + m[1] + "/locations/" + m[2] + "/clusters/" + m[3], Endpoint: endpoint}, true
}

// host is that of an address, which may lack its scheme or have a port.
func host(address string) string {
	if address == "" {
		return ""
	}
	if !strings.Contains(address, "://") {
		address = "https://" + address
	}
	u, err := url.Parse(address)
	if err != nil {
		return address // no host of a cloud: the comparison refuses it
	}
	if ip := net.ParseIP(u.Hostname()); ip != nil {
		return ip.String()
	}
	return strings.ToLower(u.Hostname())
}

func text(in map[string]any, key string) string {
	s, _ := in[key].(string)
	return s
}
