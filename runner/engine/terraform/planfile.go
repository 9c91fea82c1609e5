package terraform

import (
	"archive/zip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/berth-dev/berth/runner/engine/stateclient"
)

// stateFile is what the engine reads of a Terraform state, format 4.
type stateFile struct {
	Version int                    `json:"version"`
	Lineage string                 `json:"lineage"`
	Serial  int64                  `json:"serial"`
	Outputs map[string]stateOutput `json:"outputs"`
}

type stateOutput struct {
	Value     json.RawMessage `json:"value"`
	Sensitive bool            `json:"sensitive"`
}

const stateVersion = 4

// priorState says which state a saved plan was made from: its lineage and
// serial, "" and 0 when there was none. They are read from the plan file, so
// they are those that Terraform itself compares at the apply.
func priorState(planPath string) (lineage string, serial int64, err error) {
	z, err := zip.OpenReader(planPath)
	if err != nil {
		return "", 0, fmt.Errorf("read the plan file: %w", err)
	}
	defer func() { _ = z.Close() }()
	f, err := z.Open("tfstate")
	if errors.Is(err, fs.ErrNotExist) {
		return "", 0, errors.New("read the plan file: this version of Terraform keeps no prior state in it")
	}
	if err != nil {
		return "", 0, fmt.Errorf("read the plan file: %w", err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(f)
	if err != nil {
		return "", 0, fmt.Errorf("read the plan file: %w", err)
	}
	state, err := parseState(data)
	return state.Lineage, state.Serial, err
}

// parseState reads a state; empty input is the state of nothing.
// presentState reads the state, as `terraform state pull` does but without
// starting another process. It tries again while the agent is away.
func presentState(ctx context.Context, env map[string]string) (stateFile, error) {
	body, err := stateclient.Backend(env).Read(ctx)
	if err != nil {
		return stateFile{}, err
	}
	return parseState(body)
}

func parseState(data []byte) (stateFile, error) {
	var s stateFile
	if len(data) == 0 {
		return s, nil
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("read the state: %w", err)
	}
	if s.Version != stateVersion {
		return s, fmt.Errorf("read the state: its format is %d, this engine knows %d", s.Version, stateVersion)
	}
	return s, nil
}
