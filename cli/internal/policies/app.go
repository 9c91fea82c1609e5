package policies

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// OfApp has the engine load the policies of an app, and says what it refuses; where there is
// no engine, that is a note. found is what is known to be wrong already.
func OfApp(ctx context.Context, getenv func(string) string, app *appconfig.App, found []place.Diagnostic, allow bool) ([]place.Diagnostic, error) {
	texts := check.PolicyTexts(app)
	if len(texts) == 0 {
		return nil, nil
	}
	engine, err := Find(getenv)
	if errors.Is(err, ErrMissing) {
		return []place.Diagnostic{check.UnloadedPolicies(app, err.Error()).WithRemedy(Remedy)}, nil
	}
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "berth-policies-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	args := []string{"check", "--output", "json"}
	for _, t := range texts {
		extension := map[string]string{"kyverno": ".yaml", "opa": ".rego"}[t.Engine]
		file := filepath.Join(dir, strconv.Itoa(t.Index)+extension)
		if err := os.WriteFile(file, []byte(t.Text), 0o600); err != nil {
			return nil, err
		}
		args = append(args, file)
	}
	var checked Checked
	if err := Ask(ctx, engine, &checked, args...); err != nil {
		return nil, err
	}
	var problems []check.PolicyProblem
	for _, f := range checked.Findings {
		base := filepath.Base(f.File)
		index, err := strconv.Atoi(strings.TrimSuffix(base, filepath.Ext(base)))
		if err != nil || index < 0 || index >= len(app.Policies) {
			return nil, fmt.Errorf("%s speaks of %s, which it was not asked about", engine, f.File)
		}
		problems = append(problems, check.PolicyProblem{Index: index, Line: f.Line, Message: f.Message})
	}
	return check.RefusedPolicies(app, problems, found, allow), nil
}
