package front

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// Certificate is one in two files that may be replaced while it is used, as a
// Secret of Kubernetes is.
type Certificate struct {
	cert, key string
	log       *slog.Logger

	mu      sync.Mutex
	pair    *tls.Certificate
	changed time.Time // of the files, when pair was read
}

// LoadCertificate reads a certificate with its chain, and its key, from two PEM
// files.
func LoadCertificate(cert, key string, log *slog.Logger) (*Certificate, error) {
	c := &Certificate{cert: cert, key: key, log: log}
	changed, err := c.lastChange()
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	return c, c.read(changed)
}

// Get is for tls.Config.GetCertificate. It reads the files again when they
// have changed, and keeps what it has while they cannot be used.
func (c *Certificate) Get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed, err := c.lastChange()
	if err == nil && changed.Equal(c.changed) {
		return c.pair, nil
	}
	if err == nil {
		err = c.read(changed)
	}
	if err != nil {
		c.log.Warn("certificate not read again", "err", err)
	}
	return c.pair, nil
}

func (c *Certificate) lastChange() (time.Time, error) {
	var last time.Time
	for _, file := range []string{c.cert, c.key} {
		info, err := os.Stat(file)
		if err != nil {
			return last, err
		}
		if info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return last, nil
}

func (c *Certificate) read(changed time.Time) error {
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	c.pair, c.changed = &pair, changed
	return nil
}
