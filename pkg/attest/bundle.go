package attest

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/berth-dev/berth/pkg/oci"
)

// BundleType is the media type of a bundle, and the artifact type of the manifest that it
// hangs on: https://github.com/sigstore/protobuf-specs, bundle v0.3.
const BundleType = bundlePrefix + ".v0.3+json"

// bundlePrefix begins the media types of bundles of all versions.
const bundlePrefix = "application/vnd.dev.sigstore.bundle"

// Annotations of a bundle's manifest, those of cosign.
const (
	AnnotationContent   = "dev.sigstore.bundle.content"
	AnnotationPredicate = "dev.sigstore.bundle.predicateType"
	ContentDSSE         = "dsse-envelope"
)

// bundle is sigstore's, as far as a key needs it: no certificate, no transparency log.
type bundle struct {
	MediaType            string       `json:"mediaType"`
	VerificationMaterial material     `json:"verificationMaterial"`
	Envelope             *envelope    `json:"dsseEnvelope,omitempty"`
	Message              *messageSign `json:"messageSignature,omitempty"`
}

type material struct {
	PublicKey *publicKeyHint `json:"publicKey,omitempty"`
}

type publicKeyHint struct {
	Hint string `json:"hint,omitempty"`
}

type envelope struct {
	Payload     string      `json:"payload"`
	PayloadType string      `json:"payloadType"`
	Signatures  []signature `json:"signatures"`
}

type signature struct {
	Sig   string `json:"sig"`
	KeyID string `json:"keyid,omitempty"`
}

type messageSign struct {
	MessageDigest struct {
		Algorithm string `json:"algorithm"`
		Digest    string `json:"digest"`
	} `json:"messageDigest"`
	Signature string `json:"signature"`
}

// Sign makes a bundle around a statement.
func Sign(key ed25519.PrivateKey, s Statement) ([]byte, error) {
	raw, err := Encode(s)
	if err != nil {
		return nil, err
	}
	return SignRaw(key, raw)
}

// SignRaw makes a bundle around the bytes of a statement.
func SignRaw(key ed25519.PrivateKey, statement []byte) ([]byte, error) {
	pub, ok := key.Public().(ed25519.PublicKey)
	if !ok || len(key) != ed25519.PrivateKeySize {
		return nil, errors.New("sign: not an Ed25519 key")
	}
	hint, err := Hint(pub)
	if err != nil {
		return nil, err
	}
	sig := ed25519.Sign(key, preAuth(StatementType, statement))
	return Encode(bundle{
		MediaType: BundleType, VerificationMaterial: material{PublicKey: &publicKeyHint{Hint: hint}},
		Envelope: &envelope{
			Payload: base64.StdEncoding.EncodeToString(statement), PayloadType: StatementType,
			Signatures: []signature{{Sig: base64.StdEncoding.EncodeToString(sig)}},
		},
	})
}

// Hint names a public key in a bundle: cosign's way, the digest of its PKIX form.
func Hint(key crypto.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(der)
	return base64.StdEncoding.EncodeToString(sum[:]), nil
}

// ErrSignature is wrapped by every refusal of Open and Check.
var ErrSignature = errors.New("signature refused")

// Open reads a bundle with a statement and verifies that key signed it.
func Open(raw []byte, key crypto.PublicKey) (Statement, []byte, error) {
	e, err := readEnvelope(raw)
	if err != nil {
		return Statement{}, nil, err
	}
	payload, err := e.open(key)
	if err != nil {
		return Statement{}, nil, err
	}
	s, err := e.statement(payload)
	return s, payload, err
}

// readEnvelope reads a bundle that holds one.
func readEnvelope(raw []byte) (envelope, error) {
	b, err := readBundle(raw)
	if err != nil {
		return envelope{}, err
	}
	if b.Envelope == nil {
		return envelope{}, fmt.Errorf("%w: the bundle holds no statement", ErrSignature)
	}
	return *b.Envelope, nil
}

// statement reads the payload, which is not verified here.
func (e envelope) statement(payload []byte) (Statement, error) {
	if e.PayloadType != StatementType {
		return Statement{}, fmt.Errorf("%w: the bundle holds %.80q", ErrSignature, e.PayloadType)
	}
	return ReadStatement(payload)
}

// Said is a statement with the bytes that were signed.
type Said struct {
	Statement Statement
	Raw       []byte
}

// Statements are those about subject in bundles that hang on it, in their order: with keys
// those that one of them signed, without any key all. What cannot be read is left out.
func Statements(keys []crypto.PublicKey, subject digest.Digest, hung []oci.Hanging) []Said {
	var all []Said
	for _, h := range hung {
		for _, layer := range h.Layers {
			if !strings.HasPrefix(layer.MediaType, bundlePrefix) {
				continue
			}
			if s, err := readSaid(keys, layer.Data); err == nil && s.Statement.Names(subject) {
				all = append(all, s)
			}
		}
	}
	return all
}

func readSaid(keys []crypto.PublicKey, raw []byte) (Said, error) {
	e, err := readEnvelope(raw)
	if err != nil {
		return Said{}, err
	}
	payload, err := base64.StdEncoding.DecodeString(e.Payload)
	for _, key := range keys {
		if payload, err = e.open(key); err == nil {
			break
		}
	}
	if err != nil {
		return Said{}, err
	}
	s, err := e.statement(payload)
	return Said{s, payload}, err
}

func readBundle(raw []byte) (bundle, error) {
	var b bundle
	if len(raw) > 2*MaxBytes {
		return b, fmt.Errorf("%w: a bundle of %d bytes is too large", ErrSignature, len(raw))
	}
	if err := json.Unmarshal(raw, &b); err != nil {
		return b, fmt.Errorf("%w: it is no bundle: %w", ErrSignature, err)
	}
	if !strings.HasPrefix(b.MediaType, bundlePrefix) {
		return b, fmt.Errorf("%w: it is no bundle", ErrSignature)
	}
	return b, nil
}

// open verifies that one of the signatures is of key, and returns the payload.
func (e envelope) open(key crypto.PublicKey) ([]byte, error) {
	payload, err := base64.StdEncoding.DecodeString(e.Payload)
	if err != nil {
		return nil, fmt.Errorf("%w: the payload is not base64", ErrSignature)
	}
	for _, s := range e.Signatures {
		sig, err := base64.StdEncoding.DecodeString(s.Sig)
		if err == nil && Check(key, preAuth(e.PayloadType, payload), sig) == nil {
			return payload, nil
		}
	}
	return nil, fmt.Errorf("%w: none of its %d signatures is of this key", ErrSignature, len(e.Signatures))
}

// Check verifies a signature over a message as cosign and sigstore make them with keys of
// their own: Ed25519 of the message, ECDSA (ASN.1) or RSA (PKCS #1 v1.5, or PSS) of its SHA-256.
func Check(key crypto.PublicKey, message, sig []byte) error {
	sum := sha256.Sum256(message)
	var good bool
	switch k := key.(type) {
	case ed25519.PublicKey:
		good = len(k) == ed25519.PublicKeySize && ed25519.Verify(k, message, sig)
	case *ecdsa.PublicKey:
		good = ecdsa.VerifyASN1(k, sum[:], sig)
	case *rsa.PublicKey:
		good = rsa.VerifyPKCS1v15(k, crypto.SHA256, sum[:], sig) == nil || rsa.VerifyPSS(k, crypto.SHA256, sum[:], sig, nil) == nil
	default:
		return fmt.Errorf("%w: keys of type %T are not known", ErrSignature, key)
	}
	if !good {
		return fmt.Errorf("%w: it is not of this key", ErrSignature)
	}
	return nil
}

// ParseKey reads a public key in PEM (PKIX), as `cosign generate-key-pair` writes cosign.pub.
func ParseKey(text string) (crypto.PublicKey, error) {
	block, rest := pem.Decode([]byte(text))
	if block == nil || block.Type != "PUBLIC KEY" || len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("it is no public key: write one PEM block, BEGIN PUBLIC KEY")
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("public key: %w", err)
	}
	switch k := key.(type) {
	case ed25519.PublicKey, *ecdsa.PublicKey:
		return key, nil
	case *rsa.PublicKey:
		if k.N.BitLen() < 2048 {
			return nil, fmt.Errorf("an RSA key of %d bits is too short, at least 2048 are needed", k.N.BitLen())
		}
		return key, nil
	}
	return nil, fmt.Errorf("public keys of type %T are not known: use Ed25519, ECDSA or RSA", key)
}

// preAuth is the pre-authentication encoding of DSSE v1.
func preAuth(payloadType string, payload []byte) []byte {
	return fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(payloadType), payloadType, len(payload), payload)
}

// simpleSigning is the payload of a signature of cosign that is a tag or a referrer of the
// older form: https://github.com/containers/image/blob/main/docs/containers-signature.5.md,
// https://github.com/sigstore/cosign/blob/main/specs/SIGNATURE_SPEC.md.
type simpleSigning struct {
	Critical struct {
		Identity struct {
			Reference string `json:"docker-reference"`
		} `json:"identity"`
		Image struct {
			Digest string `json:"docker-manifest-digest"`
		} `json:"image"`
		Type string `json:"type"`
	} `json:"critical"`
}

// SimpleSigningType is the media type of a layer with such a payload; its annotation
// AnnotationSignature is the signature.
const (
	SimpleSigningType   = "application/vnd.dev.cosign.simplesigning.v1+json"
	AnnotationSignature = "dev.cosignproject.cosign/signature"
)

// CheckSimple verifies a simple signature of an image: that key signed exactly this payload,
// and that it is about this image.
func CheckSimple(key crypto.PublicKey, payload []byte, sig, image string) error {
	raw, err := base64.StdEncoding.DecodeString(sig)
	if err != nil {
		return fmt.Errorf("%w: it is not base64", ErrSignature)
	}
	if err := Check(key, payload, raw); err != nil {
		return err
	}
	var p simpleSigning
	if err := json.Unmarshal(payload, &p); err != nil {
		return fmt.Errorf("%w: what was signed is no payload of cosign", ErrSignature)
	}
	if p.Critical.Type != "cosign container image signature" {
		return fmt.Errorf("%w: what was signed is %.80q", ErrSignature, p.Critical.Type)
	}
	if p.Critical.Image.Digest != image {
		return fmt.Errorf("%w: it is of image %.80s", ErrSignature, p.Critical.Image.Digest)
	}
	return nil
}

// CosignSign is the predicate type of a statement that cosign 3 writes when it signs an image.
const CosignSign = "https://sigstore.dev/cosign/sign/v1"

// checkBundle verifies a bundle that signs an image: a statement that signs it (CosignSign) or
// says who built it (SLSA), or a signature over its manifest. Of a statement that says
// something else about the image (an SBOM, a scan) the key's owner vouches for that alone.
func checkBundle(key crypto.PublicKey, raw []byte, image digest.Digest, manifest []byte) error {
	b, err := readBundle(raw)
	if err != nil {
		return err
	}
	switch {
	case b.Envelope != nil:
		s, _, err := Open(raw, key)
		if err != nil {
			return err
		}
		if s.PredicateType != CosignSign && s.PredicateType != SLSA {
			return fmt.Errorf("%w: it is a statement of type %.80q, and no signature of the image", ErrSignature, s.PredicateType)
		}
		if !s.Names(image) {
			return fmt.Errorf("%w: it is of another image", ErrSignature)
		}
		return nil
	case b.Message != nil:
		if digest.FromBytes(manifest) != image {
			return fmt.Errorf("%w: it is of another image", ErrSignature)
		}
		sig, err := base64.StdEncoding.DecodeString(b.Message.Signature)
		if err != nil {
			return fmt.Errorf("%w: it is not base64", ErrSignature)
		}
		return Check(key, manifest, sig)
	}
	return fmt.Errorf("%w: the bundle holds neither a statement nor a signature", ErrSignature)
}

// Signed says whether one of keys signed an image, by what hangs on it: bundles of sigstore
// and signatures of cosign. It asks nobody: neither a log nor a certificate counts. The error
// says what was there.
func Signed(keys []crypto.PublicKey, image digest.Digest, manifest []byte, hung []oci.Hanging) error {
	var why []string
	for _, h := range hung {
		for _, layer := range h.Layers {
			err := errors.New("")
			for _, key := range keys {
				switch {
				case strings.HasPrefix(layer.MediaType, bundlePrefix):
					err = checkBundle(key, layer.Data, image, manifest)
				case layer.MediaType == SimpleSigningType:
					err = CheckSimple(key, layer.Data, layer.Annotations[AnnotationSignature], image.String())
				default:
					continue
				}
				if err == nil {
					return nil
				}
			}
			if text := err.Error(); text != "" && len(why) < 5 {
				why = append(why, h.Digest.String()+": "+text)
			}
		}
	}
	if len(why) == 0 {
		return fmt.Errorf("%w: no signature hangs on it", ErrSignature)
	}
	return fmt.Errorf("%w: %s", ErrSignature, strings.Join(why, "; "))
}
