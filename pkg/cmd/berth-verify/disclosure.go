package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/pkg/disclosure"
	"github.com/berth-dev/berth/pkg/visible"
)

// releaseSuffix is what the file with the signature has behind the bundle's name.
const releaseSuffix = ".release.json"

// verifyDisclosure checks that the customer released exactly the bytes of the bundle
// next to the file with the signature.
func verifyDisclosure(path string, keyFiles []string, stdout io.Writer) error {
	bundle, found := strings.CutSuffix(path, releaseSuffix)
	if !found {
		return fmt.Errorf("%s is not a file %s of berth-runner support release", path, "NAME"+releaseSuffix)
	}
	keys, err := holderKeys(keyFiles)
	if err != nil {
		return err
	}
	var env capsule.Envelope
	raw, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(raw, &env)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	text, err := os.ReadFile(bundle)
	if err != nil {
		return err
	}
	s, signers, err := disclosure.Verify(env, text, keys)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s · released to %s by %s at %s · to be kept until %s\n", visible.Line(s.Bundle), visible.Line(s.Recipient),
		visible.Line(strings.Join(signers, ", ")), s.At.Format(time.RFC3339), s.Until.Format(time.RFC3339))
	return err
}

// holderKeys reads public keys: Ed25519, SSH, or the consent holders of a trust.json.
func holderKeys(files []string) (keys []consent.Key, err error) {
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		texts := []string{string(text)}
		var trust struct {
			Consent *consent.Config `json:"consent"`
		}
		if json.Unmarshal(text, &trust) == nil {
			texts = nil
			if trust.Consent == nil || len(trust.Consent.Holders) == 0 {
				return nil, fmt.Errorf("%s names no consent holders: give the machine's key (berth-runner chain key)", file)
			}
			for _, h := range trust.Consent.Holders {
				texts = append(texts, h.Keys...)
			}
		}
		for _, text := range texts {
			key, err := consent.ParseKey(text)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("no key was given")
	}
	return keys, nil
}
