package terraform

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/berth-dev/berth/runner/engine/stateclient"
)

// lockInfo is Terraform's description of a lock.
type lockInfo struct {
	ID        string `json:"ID"`
	Operation string `json:"Operation"`
	Who       string `json:"Who"`
	Created   string `json:"Created"`
}

const (
	lockTimeout  = 5 * time.Second // it is asked on this machine
	unknownOwner = "another run, whose name could not be found out"
)

// lockHolder finds out who holds the lock of the state. Terraform does not
// tell: its HTTP backend shows the one who was refused. So the backend is asked
// for the lock once more; should it be free by now, it is freed again at once.
func lockHolder(ctx context.Context, env map[string]string) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lockTimeout)
	defer cancel()
	mine, err := json.Marshal(lockInfo{ID: "berth-engine-asks", Operation: "asks who holds the lock", Created: time.Now().UTC().Format(time.RFC3339)})
	if err != nil {
		return unknownOwner
	}
	status, body, err := stateclient.Backend(env).Ask(ctx, cmp.Or(env["TF_HTTP_LOCK_METHOD"], "LOCK"), env["TF_HTTP_LOCK_ADDRESS"], mine)
	switch {
	case err != nil:
		return unknownOwner
	case status == http.StatusOK:
		_, _, _ = stateclient.Backend(env).Ask(ctx, cmp.Or(env["TF_HTTP_UNLOCK_METHOD"], "UNLOCK"), env["TF_HTTP_UNLOCK_ADDRESS"], mine)
		return "another run, which has ended meanwhile"
	}
	var holder lockInfo
	if err := json.Unmarshal(body, &holder); err != nil || holder.ID == "" && holder.Who == "" {
		return unknownOwner
	}
	text := cmp.Or(holder.Who, "lock "+holder.ID)
	if holder.Operation != "" {
		text += ", " + holder.Operation
	}
	if holder.Created != "" {
		text += ", since " + holder.Created
	}
	return text
}
