package variables

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/berth-dev/berth/pkg/seal"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

const (
	// MaxValueBytes is how long one value may be.
	MaxValueBytes = 64 << 10

	// Every state tree of every install holds all of them, and all of a tree goes
	// with each job.
	maxVariables  = 200
	maxTotalBytes = 512 << 10
)

// nameFormat is what a template reaches by a dot. The table holds to it too.
var nameFormat = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// Variable is a variable as it is to be.
type Variable struct {
	Name      string
	Value     string
	Sensitive bool
}

// check tells what is wrong with a variable, without its value. It does no I/O.
func (v Variable) check() error {
	var faults []fault.FieldError
	if !nameFormat.MatchString(v.Name) {
		return fault.With(fault.Newf(fault.ErrInvalid, "%q is not a valid name for a variable: templates read it as .nuon.app.variables.<name>", v.Name),
			fault.Code("variable_invalid"), fault.Remedy("use letters, digits and underscores, no digit first, at most 128"))
	}
	if n := len(v.Value); n > MaxValueBytes {
		faults = append(faults, fault.FieldError{Pointer: "/value", Code: "too_long", Detail: fmt.Sprintf("is %d bytes long; the limit is %d", n, MaxValueBytes)})
	}
	if !utf8.ValidString(v.Value) || strings.ContainsRune(v.Value, 0) {
		faults = append(faults, fault.FieldError{Pointer: "/value", Code: "not_text", Detail: "is not text: it has a zero byte or is not UTF-8"})
	}
	if len(faults) > 0 {
		return fault.With(fault.Newf(fault.ErrInvalid, "the value of variable %q cannot be stored", v.Name), fault.Code("variable_invalid"), fault.Fields(faults...))
	}
	return nil
}

// sealer closes bytes for a row of an org and opens them again.
type sealer interface {
	Seal(purpose seal.Purpose, plain []byte) ([]byte, error)
	Open(purpose seal.Purpose, sealed []byte) ([]byte, error)
}

// SetRequest asks for a variable of an app to be set.
type SetRequest struct {
	AppID    string
	Variable Variable
	Actor    string
}

// Set sets a variable of an app and wakes its installs. One that is like that
// already stays as it is: changed is false.
func Set(ctx context.Context, tx *database.Tx, ring sealer, req SetRequest) (row ctldb.AppVariable, changed bool, err error) {
	appID, v := req.AppID, req.Variable
	if err := v.check(); err != nil {
		return row, false, err
	}
	if err := lockApp(ctx, tx, appID); err != nil {
		return row, false, err
	}
	rows, err := tx.ListAppVariables(ctx, appID)
	if err != nil {
		return row, false, fmt.Errorf("read variables: %w", err)
	}
	count, total := 1, len(v.Value)
	for _, other := range rows {
		if other.Name == v.Name {
			if same, err := isNow(ring, other, v); err != nil || same {
				return other, false, err
			}
			continue
		}
		count++
		total += len(optional.Value(other.Value)) + len(other.Sealed)
	}
	if count > maxVariables || total > maxTotalBytes {
		return row, false, fault.With(fault.Newf(fault.ErrConflict, "an app can have at most %d variables, %d KiB in total", maxVariables, maxTotalBytes>>10),
			fault.Code("too_many_variables"), fault.Remedy("delete some, or move large values into files in the app folder"))
	}
	set := ctldb.SetAppVariableParams{AppID: appID, Name: v.Name, UpdatedBy: req.Actor}
	if v.Sensitive {
		if set.Sealed, err = sealValue(ring, tx.OrgID(), appID, v); err != nil {
			return row, false, err
		}
	} else {
		set.Value = &v.Value
	}
	if set.Version, err = changedNow(ctx, tx, appID); err != nil {
		return row, false, err
	}
	row, err = tx.SetAppVariable(ctx, set)
	return row, true, err
}

// isNow says whether a variable is stored just so.
func isNow(ring sealer, row ctldb.AppVariable, v Variable) (bool, error) {
	if IsSensitive(row) != v.Sensitive {
		return false, nil
	}
	value, err := valueOf(ring, row)
	return value == v.Value, err
}

// Delete deletes a variable of an app and wakes its installs. One that is not
// there is ErrNotFound.
func Delete(ctx context.Context, tx *database.Tx, app ctldb.App, name string) (ctldb.AppVariable, error) {
	if err := lockApp(ctx, tx, app.ID); err != nil {
		return ctldb.AppVariable{}, err
	}
	row, err := Get(ctx, tx, app, name)
	if err != nil {
		return row, err
	}
	if row.Version, err = changedNow(ctx, tx, app.ID); err != nil {
		return row, err
	}
	return row, tx.DeleteAppVariable(ctx, ctldb.DeleteAppVariableParams{AppID: app.ID, Name: name})
}

// Get returns a variable as it is stored. One that is not there is ErrNotFound.
func Get(ctx context.Context, tx *database.Tx, app ctldb.App, name string) (ctldb.AppVariable, error) {
	row, err := tx.GetAppVariable(ctx, ctldb.GetAppVariableParams{AppID: app.ID, Name: name})
	if errors.Is(err, fault.ErrNotFound) {
		return row, fault.With(fault.Newf(fault.ErrNotFound, "app %s has no variable %q", app.Name, name),
			fault.Remedy("berth apps variables list %s (shows what there is)", app.Name))
	}
	return row, err
}

// lockApp lets changes of one app's variables go one after the other.
func lockApp(ctx context.Context, tx *database.Tx, appID string) error {
	app, err := tx.LockApp(ctx, appID)
	if err == nil && app.DeletedAt != nil {
		err = fault.Newf(fault.ErrConflict, "app %q has been deleted", app.Name)
	}
	return err
}

// changedNow counts a change and wakes the installs, whose runners have settings
// that may be made of the variables.
func changedNow(ctx context.Context, tx *database.Tx, appID string) (int32, error) {
	version, err := tx.NextAppVariablesVersion(ctx, appID)
	if err != nil {
		return 0, fmt.Errorf("count change of variables: %w", err)
	}
	return version, tx.WakeInstallsOfApp(ctx, appID)
}
