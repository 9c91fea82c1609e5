// Package reach says in words why another machine was not reached, and which of
// these reasons stay as they are. It reaches nothing itself.
package reach

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"syscall"
)

// Why says in a few words, for people, why a connection did not come about or
// broke off. lasting says that trying again at once is in vain: the name does not
// resolve, nobody listens, there is no way to the machine, or its certificate is
// not trusted. Of an answer that did not come in time lasting is false, and so it
// is of all that Why does not know, for which why is "". The words name machines
// and no addresses with a path or a query.
func Why(err error) (why string, lasting bool) {
	name := "it "
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Addr != nil {
		name = op.Addr.String() + " "
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		switch {
		case dns.IsTimeout:
			return "the name " + dns.Name + " was not resolved in time", false
		case dns.IsNotFound:
			return "the name " + dns.Name + " does not resolve", true
		}
		return "no name server answers for " + dns.Name, true
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return name + "refuses the connection", true
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETDOWN):
		return "there is no way to " + name + "from here", true
	case Slow(err):
		return name + "did not answer in time", false
	case Untrusted(err):
		return "its certificate is not trusted here", true
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "the connection broke off", false
	}
	return "", false
}

// Slow tells whether somebody took too long to answer.
func Slow(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
}

// Untrusted tells whether a certificate is of an authority that is not trusted here.
func Untrusted(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	_, ok := errors.AsType[x509.UnknownAuthorityError](err)
	return ok
}
