package consent

import (
	"encoding/pem"

	"crypto/rand"

	"golang.org/x/crypto/ssh"
)

// SignUnchecked is a stored SSH signature, good or not.
func SignUnchecked(s ssh.Signer, p Purpose, message []byte) []byte {
	sig, err := s.Sign(rand.Reader, signedBySSH(p.Namespace, hashSHA512, message))
	if err != nil {
		panic(err)
	}
	return encodeSSH(s.PublicKey(), p.Namespace, sig)
}

// PEM is an SSH signature as ssh-keygen writes it.
func PEM(blob []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: sshArmor, Bytes: blob})
}
