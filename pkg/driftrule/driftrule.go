// Package driftrule reads the file in which a customer accepts differences between what is
// live and what was deployed.
package driftrule

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// Limits of a file.
const (
	MaxBytes = 256 << 10
	MaxRules = 200
)

// Rule is [[accept]] of the file, and what [[berth.drift.accept]] of an app says.
type Rule struct {
	Kind      string    `toml:"kind"`
	Namespace string    `toml:"namespace"`
	Name      string    `toml:"name"`
	Path      string    `toml:"path"`
	Manager   string    `toml:"manager"`
	Reason    string    `toml:"reason"`
	By        string    `toml:"by"`
	Until     time.Time `toml:"until"`
}

// Parse reads a file. One that is wrong has no rules.
func Parse(text []byte) ([]jobspec.DriftRule, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("it has %d bytes, more than %d", len(text), MaxBytes)
	}
	var file struct {
		Accept []Rule `toml:"accept"`
	}
	if err := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(&file); err != nil {
		if strict, ok := errors.AsType[*toml.StrictMissingError](err); ok {
			return nil, fmt.Errorf("it has keys that nobody knows:\n%s", strict.String())
		}
		return nil, err
	}
	if len(file.Accept) > MaxRules {
		return nil, fmt.Errorf("it has %d rules, more than %d", len(file.Accept), MaxRules)
	}
	rules := make([]jobspec.DriftRule, 0, len(file.Accept))
	for i, r := range file.Accept {
		rule := jobspec.DriftRule(r)
		if err := rule.Check(); err != nil {
			return nil, fmt.Errorf("rule %d: %w", i+1, err)
		}
		rules = append(rules, rule)
	}
	return rules, nil
}
