package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/berth-dev/berth/pkg/enrolcode"
)

// maxCode is more than any code has, in bytes.
const maxCode = 64 << 10

// readCode resolves the value of --code: @FILE, - for stdin, or the code itself.
// "" is no code.
func readCode(value string, stdin io.Reader) (string, error) {
	from := stdin
	switch {
	case value == "-":
	case strings.HasPrefix(value, "@"):
		f, err := os.Open(value[1:])
		if err != nil {
			return "", fmt.Errorf("--code: %w", err)
		}
		defer f.Close()
		from = f
	default:
		return value, nil
	}
	raw, err := io.ReadAll(io.LimitReader(from, maxCode+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("--code: %w", err)
	case len(strings.TrimSpace(string(raw))) == 0:
		return "", errors.New("--code: there is nothing in it")
	}
	return string(raw), nil
}

// parseCode is readCode, and what the code says; a code must be given.
func parseCode(value string, stdin io.Reader) (text string, code enrolcode.Code, err error) {
	if value == "" {
		return "", code, usageError{errors.New("no code: use --code @FILE, or --code - and give it to standard input; `berth installs stack INSTALL --new` makes one")}
	}
	if text, err = readCode(value, stdin); err != nil {
		return "", code, err
	}
	code, err = enrolcode.Parse(text)
	return strings.Join(strings.Fields(text), ""), code, err
}
