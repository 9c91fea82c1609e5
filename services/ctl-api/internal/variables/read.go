package variables

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/keys"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// Values are the variables of an app in clear, apart by whether they may be
// stored so.
type Values struct {
	Plain     map[string]any
	Sensitive map[string]any
}

// Read opens the variables of an app.
func Read(ctx context.Context, tx *database.Tx, ring sealer, appID string) (Values, error) {
	rows, err := tx.ListAppVariables(ctx, appID)
	if err != nil {
		return Values{}, fmt.Errorf("read variables: %w", err)
	}
	out := Values{Plain: map[string]any{}, Sensitive: map[string]any{}}
	for _, row := range rows {
		value, err := valueOf(ring, row)
		if err != nil {
			return Values{}, err
		}
		if IsSensitive(row) {
			out.Sensitive[row.Name] = value
		} else {
			out.Plain[row.Name] = value
		}
	}
	return out, nil
}

// IsSensitive says whether a variable's value is a secret.
func IsSensitive(row ctldb.AppVariable) bool { return row.Sealed != nil }

// sealedValue is what is sealed of a variable: also which it is, so that one
// row's secret cannot be passed off as another's.
type sealedValue struct {
	App   string `json:"app"`
	Name  string `json:"name"`
	Value string `json:"value"`
}

func sealValue(ring sealer, orgID, appID string, v Variable) ([]byte, error) {
	raw, err := json.Marshal(sealedValue{App: appID, Name: v.Name, Value: v.Value})
	if err != nil {
		return nil, err
	}
	return ring.Seal(keys.VariableAtRest(orgID, appID, v.Name), raw)
}

func valueOf(ring sealer, row ctldb.AppVariable) (string, error) {
	if !IsSensitive(row) {
		return optional.Value(row.Value), nil
	}
	raw, err := ring.Open(keys.VariableAtRest(row.OrgID, row.AppID, row.Name), row.Sealed)
	if err != nil {
		return "", fmt.Errorf("open variable %s of %s: %w", row.Name, row.AppID, err)
	}
	var sealed sealedValue
	if err := json.Unmarshal(raw, &sealed); err != nil {
		return "", fmt.Errorf("decode variable %s of %s", row.Name, row.AppID) // the cause could quote it
	}
	if sealed.App != row.AppID || sealed.Name != row.Name {
		return "", fmt.Errorf("variable %s of %s holds the secret of another variable", row.Name, row.AppID)
	}
	return sealed.Value, nil
}
