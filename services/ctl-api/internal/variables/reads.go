package variables

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/fault"
)

// Reader is what reads a variable: the sandbox, a component or an action.
type Reader struct{ Kind, Name string }

// Reads says who reads which variable in a config. The zero value is a config
// that reads none.
type Reads []check.VariableRead

// ReadsOf finds them in the newest config of an app; without one, nothing reads
// anything.
func ReadsOf(ctx context.Context, tx *database.Tx, appID string) (Reads, error) {
	config, err := tx.NewestConfig(ctx, appID)
	if errors.Is(err, fault.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read newest config: %w", err)
	}
	var app appconfig.App
	if err := json.Unmarshal(config.Body, &app); err != nil {
		return nil, fmt.Errorf("read config %s: %w", config.ID, err)
	}
	return check.VariableReads(&app), nil
}

// Of lists once each what reads a variable, or may.
func (r Reads) Of(name string) []Reader {
	var out []Reader
	for _, read := range r {
		reader := Reader{Kind: read.Kind, Name: read.Name}
		if reader.Kind != "" && (read.Variable == name || read.Variable == "") && !slices.Contains(out, reader) {
			out = append(out, reader)
		}
	}
	return out
}

// Missing warns of each place of a folder that reads a variable which app, its
// name, does not have. It does no I/O.
func (r Reads) Missing(app string, have []string) []place.Diagnostic {
	var out []place.Diagnostic
	for _, read := range r {
		if read.Variable == "" || slices.Contains(have, read.Variable) {
			continue
		}
		d := place.Diagnostic{
			Severity: place.Warning, Code: place.CodeReference, File: read.File, Line: read.Line, Column: read.Column,
			Message: fmt.Sprintf("app variable %q is not set", read.Variable),
			Remedy:  fmt.Sprintf("berth apps variables set %s %s", app, read.Variable),
		}
		if !slices.Contains(out, d) {
			out = append(out, d)
		}
	}
	return out
}
