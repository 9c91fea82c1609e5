package seal

// Purpose says what sealed bytes are for. It is part of what is sealed and is
// compared before a byte is released, so that one sealed thing cannot be passed
// off as another: a Terraform state is no leaf of a template, and the output of
// one component is not that of another.
type Purpose struct {
	OrgID     string `json:"org_id"`
	InstallID string `json:"install_id"`
	// Kind is input, variable, output, state, plan, salt, or at_rest for what the
	// control plane keeps for itself.
	Kind Kind `json:"kind"`
	// Resource is the id of the resource, or of the change, that it belongs to.
	Resource string `json:"resource,omitempty"`
	// Path is where in the document the value stands, its parts joined by "/".
	Path string `json:"path,omitempty"`
	// Lineage and Serial are of Terraform states.
	Lineage string `json:"lineage,omitempty"`
	Serial  int64  `json:"serial,omitempty"`
}

// Kind is a kind of sealed bytes.
type Kind string

// The kinds.
const (
	KindInput    Kind = "input"
	KindVariable Kind = "variable"
	KindOutput   Kind = "output"
	KindState    Kind = "state"
	KindPlan     Kind = "plan"
	KindSalt     Kind = "salt"
	KindAtRest   Kind = "at_rest"
)
