// Package keyfile finds the private keys that people sign with: in a file of theirs, or
// in ssh-agent.
package keyfile

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/pkg/durable"
)

// Read makes a signer of a private key in a file: PEM as New writes it, or an SSH key
// without a passphrase. A file that others can read is refused.
func Read(file string) (consent.Signer, error) {
	info, err := os.Stat(file)
	if err != nil {
		return consent.Signer{}, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return consent.Signer{}, fmt.Errorf("%s can be read by others (mode %04o): chmod 600 it, and think about who may have read it", file, info.Mode().Perm())
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return consent.Signer{}, err
	}
	if block, _ := pem.Decode(text); block != nil && block.Type == "OPENSSH PRIVATE KEY" {
		key, err := ssh.ParsePrivateKey(text)
		if errors.As(err, new(*ssh.PassphraseMissingError)) {
			return consent.Signer{}, fmt.Errorf("%s has a passphrase: add it to ssh-agent (ssh-add %s), and use --ssh-key %s.pub", file, file, file)
		}
		if err != nil {
			return consent.Signer{}, fmt.Errorf("%s: not an SSH key that can be read", file)
		}
		return consent.SSHSigner(key)
	}
	key, err := capsule.ParsePrivateKey(text)
	if err != nil {
		return consent.Signer{}, fmt.Errorf("%s: %w", file, err)
	}
	return consent.Ed25519Signer(key), nil
}

// ErrNoAgent says that SSH_AUTH_SOCK names no agent.
var ErrNoAgent = errors.New("no ssh-agent: SSH_AUTH_SOCK is not set; start one (eval $(ssh-agent)) and add the key (ssh-add)")

// InAgent makes a signer of the key in ssh-agent whose public half is in file; the agent
// may have to ask for a touch. Call end after use.
func InAgent(ctx context.Context, file, socket string) (s consent.Signer, end func(), err error) {
	end = func() {}
	text, err := os.ReadFile(file)
	if err != nil {
		return s, end, err
	}
	want, err := consent.ParseKey(string(text))
	if err != nil {
		return s, end, fmt.Errorf("%s: %w", file, err)
	}
	if socket == "" {
		return s, end, ErrNoAgent
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return s, end, fmt.Errorf("ssh-agent at %s does not answer: %w", socket, err)
	}
	end = func() { _ = conn.Close() }
	signers, err := agent.NewClient(conn).Signers()
	if err != nil {
		return s, end, fmt.Errorf("ssh-agent at %s: %w", socket, err)
	}
	for _, candidate := range signers {
		if found, err := consent.SSHSigner(candidate); err == nil && found.Key.ID == want.ID {
			return found, end, nil
		}
	}
	return s, end, fmt.Errorf("ssh-agent does not have the key %s: ssh-add it", want.ID)
}

// New makes an Ed25519 key: the private half goes into file (0600), which must not exist;
// the public half comes back, in base64.
func New(file string) (id, public string, err error) {
	pub, private, err := capsule.GenerateKey()
	if err != nil {
		return "", "", err
	}
	text, err := capsule.MarshalPrivateKey(private)
	if err != nil {
		return "", "", err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", "", err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return "", "", err
	}
	return capsule.KeyID(pub), capsule.EncodePublicKey(pub), durable.SyncDir(filepath.Dir(file))
}
