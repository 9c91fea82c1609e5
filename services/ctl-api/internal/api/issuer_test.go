package api_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// issuer is a provider whose tokens a test makes, good ones and bad ones. It speaks the
// protocol; who logs in there is up to the test.
type issuer struct {
	*httptest.Server
	key *rsa.PrivateKey

	mu    sync.Mutex
	codes map[string]grantedCode
}

// grantedCode is what a code can be changed for, once.
type grantedCode struct{ challenge, token string }

var b64 = base64.RawURLEncoding

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{key: key, codes: map[string]grantedCode{}}
	mux := http.NewServeMux()
	reply := func(w http.ResponseWriter, status int, body any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body)
	}
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, 200, map[string]any{
			"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token", "jwks_uri": i.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"RS256", "HS256", "none"},
		})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, 200, map[string]any{"keys": []any{map[string]string{
			"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "1", "n": b64.EncodeToString(key.N.Bytes()), "e": b64.EncodeToString(big.NewInt(int64(key.E)).Bytes()),
		}}})
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		defer i.mu.Unlock()
		granted, ok := i.codes[r.PostFormValue("code")]
		delete(i.codes, r.PostFormValue("code"))
		sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
		if !ok || granted.challenge != b64.EncodeToString(sum[:]) {
			reply(w, 400, map[string]string{"error": "invalid_grant"})
			return
		}
		reply(w, 200, map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": granted.token})
	})
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

// claims of a token that is good for a login with this nonce.
func (i *issuer) claims(nonce string, more map[string]any) map[string]any {
	c := map[string]any{"iss": i.URL, "aud": "berth", "sub": "1", "nonce": nonce, "exp": time.Now().Add(time.Minute).Unix(), "iat": time.Now().Unix()}
	maps.Copy(c, more)
	return c
}

func jwt(header, claims map[string]any, sign func(text string) []byte) string {
	part := func(v map[string]any) string {
		raw, _ := json.Marshal(v)
		return b64.EncodeToString(raw)
	}
	text := part(header) + "." + part(claims)
	return text + "." + b64.EncodeToString(sign(text))
}

func signedBy(key *rsa.PrivateKey) func(string) []byte {
	return func(text string) []byte {
		sum := sha256.Sum256([]byte(text))
		signature, _ := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
		return signature
	}
}

func (i *issuer) token(claims map[string]any) string {
	return jwt(map[string]any{"alg": "RS256", "kid": "1"}, claims, signedBy(i.key))
}

// code makes one that the holder of the verifier can change for a token.
func (i *issuer) code(challenge, token string) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	code := fmt.Sprintf("code-%d-%d", len(i.codes), time.Now().UnixNano())
	i.codes[code] = grantedCode{challenge, token}
	return code
}
