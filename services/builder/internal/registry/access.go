package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/pkg/intake"
)

// Codes of the distribution specification.
const (
	codeUnauthorized = "UNAUTHORIZED"
	codeDenied       = "DENIED"
	codeNameUnknown  = "NAME_UNKNOWN"
	codeUnsupported  = "UNSUPPORTED"
	codeSizeInvalid  = "SIZE_INVALID"
	codeUnavailable  = "UNAVAILABLE"
	codeManifest     = "MANIFEST_INVALID"
	codeTooMany      = "TOOMANYREQUESTS"
	codeDigest       = "DIGEST_INVALID"
	codeUnknown      = "UNKNOWN"
)

// unknownName is what is said of a repository that is not there, or that the
// client must not know of.
const unknownName = "repository name not known to registry"

// authenticate reads the credential before anything else, so that without one
// every path gives the same answer.
func (r *Registry) authenticate(req *http.Request) (Grant, error) {
	secret, ok := credential(req)
	if !ok {
		return Grant{}, ErrUnauthenticated
	}
	leave, err := r.failures.Enter(req.Context(), req.RemoteAddr)
	if err != nil {
		return Grant{}, err
	}
	defer leave()
	return r.auth.Authenticate(req.Context(), secret)
}

// credential is the bearer token or the basic password; the user name is
// whatever the tool wants to send.
func credential(req *http.Request) (string, bool) {
	if len(req.Header.Values("Authorization")) > 1 {
		return "", false // nobody could say which one counts
	}
	if _, password, ok := req.BasicAuth(); ok {
		return password, password != ""
	}
	scheme, token, _ := strings.Cut(req.Header.Get("Authorization"), " ")
	return token, strings.EqualFold(scheme, "Bearer") && token != ""
}

func (r *Registry) refuseCredential(w http.ResponseWriter, req *http.Request, err error) {
	if errors.Is(err, ErrUnauthenticated) {
		// A request without a credential asks how to log in: no guess.
		if req.Header.Get("Authorization") != "" {
			if retry, over := r.failures.Failed(req.RemoteAddr); over {
				w.Header().Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(retry.Seconds())))))
				writeError(w, http.StatusTooManyRequests, codeTooMany, "this token is not valid, and too many invalid ones came from this address")
				return
			}
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="berth"`)
		writeError(w, http.StatusUnauthorized, codeUnauthorized, "a registry token is required")
		return
	}
	if req.Context().Err() == nil {
		r.log.WarnContext(req.Context(), "registry token lookup failed", "err", err)
	}
	writeError(w, http.StatusServiceUnavailable, codeUnavailable, "the token cannot be checked now")
}

// sanitise gives distribution a request without the credential, and without
// those parts that would let it do more than was decided.
func sanitise(req *http.Request, target route, grant Grant) (*http.Request, error) {
	req = req.Clone(req.Context())
	req.Header.Del("Authorization")
	if target.name == routeManifest && isRead(req.Method) {
		acceptAll(req.Header)
	}
	if target.name != routeUpload && target.name != routeUploadChunk {
		return req, nil
	}
	// Distribution reads mount, from, digest and _state as form values: a
	// form in the body would come before the query that is checked below.
	if req.Header.Get("Content-Type") != "" {
		req.Header.Set("Content-Type", "application/octet-stream")
	}
	query, err := url.ParseQuery(req.URL.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	// A mount that is not allowed becomes an ordinary upload, just as when the
	// blob is not there: it tells nothing.
	for _, from := range query["from"] {
		if grant.decide(from, ActionPull) != allowed {
			query.Del("from")
			query.Del("mount")
			break
		}
	}
	req.URL.RawQuery = query.Encode()
	return req, nil
}

// acceptAll names every type of manifest where a client takes any: distribution
// answers "not found" to clients that do not name the one it has.
func acceptAll(header http.Header) {
	accept := strings.Join(header.Values("Accept"), ",")
	if accept != "" && !strings.Contains(accept, "*/*") {
		return
	}
	header["Accept"] = []string{
		ocispec.MediaTypeImageManifest, ocispec.MediaTypeImageIndex,
		"application/vnd.docker.distribution.manifest.v2+json", "application/vnd.docker.distribution.manifest.list.v2+json",
	}
}

// refuseBody says why a body is not read.
func refuseBody(w http.ResponseWriter, err error) {
	code := codeUnavailable
	status, text := intake.Status(err)
	switch status {
	case http.StatusRequestEntityTooLarge:
		code = codeSizeInvalid
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "2")
	}
	writeError(w, status, code, text)
}

// writeError answers in the form of the distribution specification.
func writeError(w http.ResponseWriter, status int, code, message string) {
	type item struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	body, err := json.Marshal(map[string][]item{"errors": {{code, message}}})
	if err != nil {
		panic(err) // strings always encode
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	w.Write(body)
}
