package releaseview

import (
	"encoding/json"
	"fmt"

	"github.com/berth-dev/berth/pkg/rehearsal"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// RehearsalOf is what an install rehearses; nil for a real install.
func RehearsalOf(install ctldb.Install) (*rehearsal.Rehearsal, error) {
	if install.Rehearsal == nil {
		return nil, nil
	}
	var r rehearsal.Rehearsal
	if err := json.Unmarshal(install.Rehearsal, &r); err != nil {
		return nil, fmt.Errorf("read the rehearsal of install %s: %w", install.ID, err)
	}
	return &r, nil
}
