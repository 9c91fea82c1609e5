package keyring_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// awsCloud speaks the protocols of STS and ECR: the query protocol and AWS JSON
// 1.1. It recomputes the signature of each request.
type awsCloud struct {
	t      *testing.T
	now    time.Time
	secret map[string]string // of an access key
	region string
	// externalID is what the role's trust policy wants.
	externalID string
	lifetime   time.Duration
	refuse     string // the code that ECR answers with

	mu     sync.Mutex
	asked  []string
	issued int
}

const (
	ownKey, ownSecret   = "AKIAOWNIDENTITY00000", "own-secret-of-the-builder"
	roleKey, roleSecret = "ASIAROLEIDENTITY0000", "temporary-secret-of-the-role"
	roleToken           = "session-token-of-the-role"
)

func newAWS(t *testing.T) *awsCloud {
	t.Helper()
	c := &awsCloud{t: t, region: "eu-central-1", lifetime: 12 * time.Hour, secret: map[string]string{ownKey: ownSecret, roleKey: roleSecret}}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": ownKey, "AWS_SECRET_ACCESS_KEY": ownSecret, "AWS_ENDPOINT_URL_ECR": server.URL, "AWS_ENDPOINT_URL_STS": server.URL,
		"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_REGION": "", "AWS_PROFILE": "", "AWS_SESSION_TOKEN": "", "AWS_MAX_ATTEMPTS": "1",
	} {
		t.Setenv(name, value)
	}
	return c
}

var authorization = regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=([A-Z0-9]+)/(\d{8})/([a-z0-9-]+)/([a-z]+)/aws4_request, SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})$`)

// signedBy verifies a request and says whose key signed it, for which service.
func (c *awsCloud) signedBy(r *http.Request, body []byte) (key, service, problem string) {
	got := r.Header.Get("Authorization")
	m := authorization.FindStringSubmatch(got)
	if m == nil {
		return "", "", "MissingAuthenticationToken"
	}
	secret, known := c.secret[m[1]]
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	switch {
	case !known:
		return "", "", "UnrecognizedClientException"
	case m[3] != c.region || err != nil || time.Since(at).Abs() > 5*time.Minute:
		return "", "", "InvalidSignatureException"
	case m[1] == roleKey && r.Header.Get("X-Amz-Security-Token") != roleToken:
		return "", "", "InvalidClientTokenId"
	}
	again := httptest.NewRequest(r.Method, "http://"+r.Host+r.URL.RequestURI(), nil)
	for _, name := range strings.Split(m[5], ";") {
		if name != "host" && name != "content-length" {
			again.Header[http.CanonicalHeaderKey(name)] = r.Header.Values(name)
		}
	}
	again.Header.Del("X-Amz-Security-Token") // the signer adds it
	again.Host, again.ContentLength = r.Host, r.ContentLength
	credentials := aws.Credentials{AccessKeyID: m[1], SecretAccessKey: secret}
	if m[1] == roleKey {
		credentials.SessionToken = roleToken
	}
	sum := sha256.Sum256(body)
	if err := v4.NewSigner().SignHTTP(r.Context(), credentials, again, hex.EncodeToString(sum[:]), m[4], m[3], at); err != nil {
		return "", "", "InternalFailure"
	}
	if again.Header.Get("Authorization") != got {
		return "", "", "InvalidSignatureException"
	}
	return m[1], m[4], ""
}

func (c *awsCloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	key, service, problem := c.signedBy(r, body)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded"):
		c.sts(w, key, service, problem, body)
	case r.Header.Get("X-Amz-Target") == "AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken":
		c.ecr(w, key, service, problem)
	default:
		c.t.Errorf("request that no protocol of AWS knows: %s %s", r.Method, r.URL)
	}
}

func (c *awsCloud) sts(w http.ResponseWriter, key, service, problem string, body []byte) {
	form, _ := url.ParseQuery(string(body))
	c.asked = append(c.asked, "sts "+form.Get("Action")+" "+form.Get("RoleArn")+" by "+key)
	if problem == "" && (service != "sts" || form.Get("Action") != "AssumeRole" || form.Get("Version") != "2011-06-15") {
		problem = "InvalidAction"
	}
	if problem == "" && form.Get("ExternalId") != c.externalID {
		problem = "AccessDenied"
	}
	w.Header().Set("Content-Type", "text/xml")
	if problem != "" {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>%s</Code><Message>about %s</Message></Error><RequestId>r</RequestId></ErrorResponse>`, problem, url.QueryEscape(string(body)))
		return
	}
	fmt.Fprintf(w, `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><AssumedRoleUser><Arn>%s</Arn><AssumedRoleId>x:y</AssumedRoleId></AssumedRoleUser><Credentials><AccessKeyId>%s</AccessKeyId><SecretAccessKey>%s</SecretAccessKey><SessionToken>%s</SessionToken><Expiration>%s</Expiration></Credentials></AssumeRoleResult><ResponseMetadata><RequestId>r</RequestId></ResponseMetadata></AssumeRoleResponse>`,
		form.Get("RoleArn"), roleKey, roleSecret, roleToken, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
}

func (c *awsCloud) ecr(w http.ResponseWriter, key, service, problem string) {
	c.asked = append(c.asked, "ecr by "+key)
	if problem == "" && service != "ecr" {
		problem = "InvalidSignatureException"
	}
	if problem == "" {
		problem = c.refuse
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	if problem != "" {
		w.Header().Set("X-Amzn-Errortype", problem)
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(map[string]string{"__type": problem, "message": "about " + ownSecret})
		return
	}
	c.issued++
	token := base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "AWS:password-%d-of-%s", c.issued, key))
	_ = json.NewEncoder(w).Encode(map[string]any{"authorizationData": []any{map[string]any{
		"authorizationToken": token, "expiresAt": float64(c.now.Add(c.lifetime).Unix()), "proxyEndpoint": "https://123456789012.dkr.ecr." + c.region + ".amazonaws.com",
	}}})
}
