// Package httpsig signs and checks HTTP requests with Ed25519: the part of RFC
// 9421 (HTTP Message Signatures) and RFC 9530 (Digest Fields) that runners
// need, and nothing else of it.
//
// A signature covers the method, the path, the query and the SHA-256 of the
// body, with the time of signing and a nonce. Host and scheme are left out on
// purpose: a proxy in front may change them. The accepted form is exactly the
// one that Sign writes; anything else that RFC 9421 allows (other components,
// other order, several signatures) is refused, so there is nothing to strip.
package httpsig

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"time"
)

// Names of the headers that a signed request carries.
const (
	InputHeader     = "Signature-Input"
	SignatureHeader = "Signature"
	DigestHeader    = "Content-Digest"
)

// label names our one signature in both headers; components is the list that
// it covers.
const (
	label      = "berth"
	components = `("@method" "@path" "@query" "content-digest")`
)

// Kinds of refusal, for errors.Is. All wrap ErrRefused.
var (
	ErrRefused = errors.New("request signature refused")
	ErrMissing = fmt.Errorf("%w: not signed", ErrRefused)
	ErrStale   = fmt.Errorf("%w: created too long ago or in the future", ErrRefused)
	ErrReplay  = fmt.Errorf("%w: nonce was used before", ErrRefused)
)

// Params are what a signature says of itself.
type Params struct {
	KeyID   string
	Nonce   string
	Created time.Time
}

// input is the only accepted form of Signature-Input, with the values that
// vary. Key ids and nonces have no characters that need escaping.
var input = regexp.MustCompile(`^` + label + `=` + regexp.QuoteMeta(components) +
	`;created=([1-9][0-9]{0,11});nonce="([A-Za-z0-9_-]{16,64})";keyid="([A-Za-z0-9_:.-]{1,128})";alg="ed25519"$`)

var safeKeyID = regexp.MustCompile(`^[A-Za-z0-9_:.-]{1,128}$`)

// signature is the only accepted form of Signature: 64 bytes in base64.
var signature = regexp.MustCompile(`^` + label + `=:([A-Za-z0-9+/]{86}==):$`)

// A Signer signs requests with a key that the other side knows by its id.
type Signer struct {
	KeyID string
	Key   ed25519.PrivateKey
}

// Sign adds the headers Content-Digest, Signature-Input and Signature to req,
// in the place of what was there. body is what will be sent, nil or empty for
// none; req.Body itself is not touched. Sign again for each attempt: the nonce
// is good for one.
func (s Signer) Sign(req *http.Request, body []byte, now time.Time) error {
	if len(s.Key) != ed25519.PrivateKeySize {
		return errors.New("sign request: not an Ed25519 private key")
	}
	if !safeKeyID.MatchString(s.KeyID) {
		return fmt.Errorf("sign request: key id %.40q has unsafe characters", s.KeyID)
	}
	var nonce [16]byte
	_, _ = rand.Read(nonce[:])
	params := fmt.Sprintf(`%s;created=%d;nonce="%s";keyid="%s";alg="ed25519"`,
		components, now.Unix(), hex.EncodeToString(nonce[:]), s.KeyID)
	digest := contentDigest(body)
	sig := ed25519.Sign(s.Key, base(req, digest, params))
	req.Header.Set(DigestHeader, digest)
	req.Header.Set(InputHeader, label+"="+params)
	req.Header.Set(SignatureHeader, label+"=:"+base64.StdEncoding.EncodeToString(sig)+":")
	return nil
}

// Peek reads the parameters without checking anything, to find the public key
// by its id. Nothing in them is true before Verify said so.
func Peek(req *http.Request) (Params, error) {
	text, err := single(req, InputHeader)
	if err != nil {
		return Params{}, err
	}
	m := input.FindStringSubmatch(text)
	if m == nil {
		return Params{}, fmt.Errorf("%w: %s has not the one accepted form", ErrRefused, InputHeader)
	}
	seconds, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		return Params{}, fmt.Errorf("%w: created is not a number", ErrRefused)
	}
	return Params{KeyID: m[3], Nonce: m[2], Created: time.Unix(seconds, 0).UTC()}, nil
}

// A Verifier checks signatures by one key.
type Verifier struct {
	Key     ed25519.PublicKey
	Now     time.Time
	MaxSkew time.Duration // how far from Now a signature may be made, before or after
}

// Verify checks that the key signed this method, path, query and body, and that
// the signature was made within MaxSkew of Now. body is the whole body as
// received. The caller then gives nonce and time to a NonceCache, else the
// request may be sent again within that time.
func (v Verifier) Verify(req *http.Request, body []byte) (Params, error) {
	params, err := v.VerifyHeader(req)
	switch {
	case err != nil && !errors.Is(err, ErrStale):
		return Params{}, err
	case CheckBody(req, body) != nil: // first, as it says more about the request than its age
		return Params{}, CheckBody(req, body)
	}
	return params, err
}

// CheckBody checks that body is the one whose digest is in the header. Only
// after VerifyHeader does that say who sent it.
func CheckBody(req *http.Request, body []byte) error {
	sent, err := single(req, DigestHeader)
	if err != nil {
		return err
	}
	if subtle.ConstantTimeCompare([]byte(sent), []byte(contentDigest(body))) != 1 {
		return fmt.Errorf("%w: body is not the one of %s", ErrRefused, DigestHeader)
	}
	return nil
}

// VerifyHeader is Verify without the body: it checks that the key signed this
// method, path, query, and the digest of some body. With it a server knows who
// asks before it reads; CheckBody must follow.
func (v Verifier) VerifyHeader(req *http.Request) (Params, error) {
	params, err := Peek(req)
	if err != nil {
		return Params{}, err
	}
	text, err := single(req, SignatureHeader)
	if err != nil {
		return Params{}, err
	}
	m := signature.FindStringSubmatch(text)
	if m == nil {
		return Params{}, fmt.Errorf("%w: %s has not the one accepted form", ErrRefused, SignatureHeader)
	}
	sig, err := base64.StdEncoding.DecodeString(m[1])
	if err != nil {
		return Params{}, fmt.Errorf("%w: signature is not base64", ErrRefused)
	}
	sent, err := single(req, DigestHeader)
	if err != nil {
		return Params{}, err
	}
	signedParams := req.Header.Get(InputHeader)[len(label)+1:]
	if len(v.Key) != ed25519.PublicKeySize || !ed25519.Verify(v.Key, base(req, sent, signedParams), sig) {
		return Params{}, fmt.Errorf("%w: does not fit method, path, query and body", ErrRefused)
	}
	if age := v.Now.Sub(params.Created); age > v.MaxSkew || age < -v.MaxSkew {
		return Params{}, ErrStale
	}
	return params, nil
}

// base is the signature base of RFC 9421, section 2.5: one line for each
// component, then the parameters, no line feed at the end.
func base(req *http.Request, digest, params string) []byte {
	path := req.URL.EscapedPath()
	if path == "" {
		path = "/"
	}
	method := req.Method
	if method == "" {
		method = http.MethodGet
	}
	return fmt.Appendf(nil, "\"@method\": %s\n\"@path\": %s\n\"@query\": ?%s\n\"content-digest\": %s\n\"@signature-params\": %s",
		method, path, req.URL.RawQuery, digest, params)
}

// contentDigest is the value of Content-Digest (RFC 9530).
func contentDigest(body []byte) string {
	sum := sha256.Sum256(body)
	return "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
}

// single returns the value of a header that must be there exactly once.
func single(req *http.Request, name string) (string, error) {
	switch values := req.Header.Values(name); len(values) {
	case 0:
		return "", fmt.Errorf("%w: no %s", ErrMissing, name)
	case 1:
		return values[0], nil
	default:
		return "", fmt.Errorf("%w: %s is there %d times", ErrRefused, name, len(values))
	}
}
