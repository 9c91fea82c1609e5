package agent

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/berth-dev/berth/pkg/driftrule"
	"github.com/berth-dev/berth/pkg/jobspec"
)

// driftLook is a look for drift with the customer's rules, which are read each time.
func (a *agent) driftLook(ctx context.Context, look jobspec.DriftLook) *jobspec.DriftLook {
	own, err := readDriftRules(a.dir.DriftRules())
	if err != nil {
		a.cfg.Log.WarnContext(ctx, "accepted differences of the customer do not count", "file", a.dir.DriftRules(), "err", err)
	}
	look.At, look.Accept = nil, slices.Concat(own, look.Accept)
	return &look
}

func readDriftRules(path string) ([]jobspec.DriftRule, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, driftrule.MaxBytes+1))
	if err != nil {
		return nil, err
	}
	return driftrule.Parse(text)
}
