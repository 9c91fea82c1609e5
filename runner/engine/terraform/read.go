package terraform

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"maps"
	"os"
	"strings"
)

// readOptional reads a file; a missing one is empty.
func readOptional(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

func digestOf(data []byte) string {
	if len(data) == 0 {
		return "none"
	}
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// withoutVars leaves out the TF_VAR_… of an environment.
func withoutVars(env map[string]string) map[string]string {
	out := maps.Clone(env)
	maps.DeleteFunc(out, func(name, _ string) bool { return strings.HasPrefix(name, varPrefix) })
	return out
}
