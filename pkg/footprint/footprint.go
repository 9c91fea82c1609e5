package footprint

import (
	"encoding/json"

	"github.com/berth-dev/berth/pkg/capsule"
)

// Footprint is what a change newly needs, gives and exposes. All lists are sorted, the most
// far-reaching first, and bounded.
type Footprint struct {
	// Rights are verbs of Kubernetes that the runner uses for the change: those that are new
	// for the component, and those that the runner lacks.
	Rights []Right `json:"rights,omitempty"`
	// CloudActions are what Terraform needs to be allowed for the types that are new.
	CloudActions []CloudActions `json:"cloud_actions,omitempty"`
	// Grants are rights that the change gives to what it deploys, or to others.
	Grants []Grant `json:"grants,omitempty"`
	// Exposed is what becomes reachable from outside.
	Exposed []Exposure `json:"exposed,omitempty"`
	Images  []Image    `json:"images,omitempty"`
	// Hosts are those that are spoken to, as far as that can be known.
	Hosts []Host `json:"hosts,omitempty"`
	// Unknown is what the change may need besides, and nobody here can tell.
	Unknown []Unknown `json:"unknown,omitempty"`
	// LeftOut is how many entries there were no room for.
	LeftOut int `json:"left_out,omitempty"`
}

// Access says whether the runner has a right.
type Access string

// All answers. The API server is asked at the plan; AccessUnknown is also what it was not
// asked about.
const (
	AccessHas     Access = "has"
	AccessLacks   Access = "lacks"
	AccessUnknown Access = "unknown"
)

// Right is verbs on the objects of a kind.
type Right struct {
	Verbs    []string `json:"verbs"`
	Group    string   `json:"group,omitempty"` // "" is the core group
	Resource string   `json:"resource"`        // "deployments"
	// Namespace is where; "" is the whole cluster.
	Namespace string `json:"namespace,omitempty"`
	// New: the component had no object of the kind there.
	New    bool   `json:"new,omitempty"`
	Access Access `json:"access,omitempty"`
}

// CloudActions are what one type of resource needs.
type CloudActions struct {
	Provider string   `json:"provider"` // aws, google, azure
	Type     string   `json:"type"`
	By       string   `json:"by"` // the address of the first resource of the type
	Actions  []string `json:"actions"`
}

// Grantor is the system in which a grant counts.
type Grantor string

// All of them.
const (
	InKubernetes Grantor = "kubernetes"
	InAWS        Grantor = "aws"
	InGoogle     Grantor = "google"
	InAzure      Grantor = "azure"
)

// Grant is a right that the change gives.
type Grant struct {
	In Grantor `json:"in"`
	By string  `json:"by"` // the object or resource that gives it
	// To are who get it, where it says so.
	To []string `json:"to,omitempty"`
	// Actions are verbs or actions; none when What is a role or a policy.
	Actions []string `json:"actions,omitempty"`
	// What they are given on: a resource, or the role that is given.
	What string `json:"what"`
	// Scope is where it counts: a namespace, "cluster", a project.
	Scope string `json:"scope,omitempty"`
}

// ExposureKind is a way of becoming reachable.
type ExposureKind string

// All ways.
const (
	LoadBalancer  ExposureKind = "load_balancer"
	NodePort      ExposureKind = "node_port"
	ExternalIP    ExposureKind = "external_ip"
	HostPort      ExposureKind = "host_port" // a port, or the whole network, of a node
	IngressHost   ExposureKind = "ingress"
	Gateway       ExposureKind = "gateway"
	Route         ExposureKind = "route"
	OpenFirewall  ExposureKind = "open_firewall" // to the whole internet
	PublicAddress ExposureKind = "public_address"
	PublicService ExposureKind = "public_service" // a database, a cluster, a function
	PublicData    ExposureKind = "public_data"    // a bucket, an account of storage
)

// Exposure is something that becomes reachable.
type Exposure struct {
	Kind ExposureKind `json:"kind"`
	By   string       `json:"by"`
	// At is the host, port or range.
	At string `json:"at,omitempty"`
}

// Image is a container image.
type Image struct {
	Image string `json:"image"`
	By    string `json:"by"`
	// KnownRepository: the component has used another version from there.
	KnownRepository bool `json:"known_repository,omitempty"`
}

// Host is spoken to.
type Host struct {
	Host string `json:"host"` // with a port, where one is written
	By   string `json:"by"`
}

// Unknown is something of which nobody here can tell what it needs.
type Unknown struct {
	What string `json:"what"`
	By   string `json:"by"`
}

// Known is what an engine knows besides the documents. It leaves it as KnownFile below out/.
type Known struct {
	// Uses are the verbs that carrying the change out takes.
	Uses []Use `json:"uses,omitempty"`
	// Before are objects that the component has and that no document is about, such as the
	// hooks of the release before; After are those that it would have, in a rehearsal without
	// a cluster. They may hold secrets.
	Before []json.RawMessage `json:"before,omitempty"`
	After  []json.RawMessage `json:"after,omitempty"`
}

// KnownFile is the file of a Known below out/.
const KnownFile = "footprint.json"

// Use is a verb that carrying a change out takes.
type Use struct {
	Verb      string `json:"verb"`
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	// Record: it is for what the runner keeps for itself, which is never new.
	Record bool   `json:"record,omitempty"`
	Access Access `json:"access"`
}

// Empty says that nothing is new, and nothing lacking.
func (f Footprint) Empty() bool {
	return len(f.Rights)+len(f.CloudActions)+len(f.Grants)+len(f.Exposed)+len(f.Images)+len(f.Hosts)+len(f.Unknown)+f.LeftOut == 0
}

// Planned is the footprint without what only holds at the moment: whether the runner has a
// right. It is what an approval covers and what rules see.
func (f Footprint) Planned() Footprint {
	rights := f.Rights
	f.Rights = nil
	for _, r := range rights {
		if !r.New {
			continue
		}
		r.Access = ""
		if n := len(f.Rights); n > 0 && f.Rights[n-1].place() == r.place() {
			// They were told apart by the answer alone.
			f.Rights[n-1].Verbs = union(f.Rights[n-1].Verbs, r.Verbs)
			continue
		}
		f.Rights = append(f.Rights, r)
	}
	return f
}

// Digest is of the planned footprint.
func (f Footprint) Digest() (string, error) { return capsule.DigestOf(f.Planned()) }
