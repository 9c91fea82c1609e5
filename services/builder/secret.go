package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// registrySecret reads the secret with which the registry signs the state of
// uploads, and makes it the first time: uploads then survive a restart.
func registrySecret(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err == nil && len(text) > 0 {
		return strings.TrimSpace(string(text)), nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("secret of the registry: %w", err)
	}
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails: crypto/rand ends the program instead
	secret := hex.EncodeToString(random[:])
	// A crash leaves an empty file at worst, which is written again.
	if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("secret of the registry: %w", err)
	}
	return secret, nil
}
