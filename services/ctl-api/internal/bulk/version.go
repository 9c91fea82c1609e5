package bulk

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/berth-dev/berth/services/internal/model"
)

// Request is what is to happen in each install. Its JSON is stored.
type Request struct {
	// Operation is empty for a deploy.
	Operation model.BulkOperation `json:"operation,omitempty"`
	Reason    string              `json:"reason,omitempty"` // of a pause
	// Release is an id; empty takes the newest of the install's app.
	Release    string   `json:"release,omitempty"`
	Components []string `json:"components,omitempty"` // all when empty
	PlanOnly   bool     `json:"plan_only,omitempty"`
}

// Name is what the operation is called.
func (r Request) Name() model.BulkOperation { return cmp.Or(r.Operation, model.BulkDeploy) }

// Version names a request and the installs that it is for, whatever their order:
// people who agreed to a preview send it back.
func Version(r Request, installIDs []string) string {
	ids := slices.Sorted(slices.Values(installIDs))
	raw, _ := json.Marshal(struct { // these cannot fail
		Request
		Installs []string
	}{r, ids})
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:12])
}
