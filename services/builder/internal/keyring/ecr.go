package keyring

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/berth-dev/berth/pkg/oci"
)

// ecrHost is a registry of AWS: account, region, and the domain of a partition.
var ecrHost = regexp.MustCompile(`^(\d{12})\.dkr[.-]ecr(?:-fips)?\.([a-z0-9-]+)\.(?:amazonaws\.com(?:\.cn)?|on\.aws)$`)

// word is a code of a protocol, which never holds what was sent.
var word = regexp.MustCompile(`^[A-Za-z_.]{1,64}$`)

// plan is whom to ask for a token of ECR.
type plan struct{ region, role string }

// ecrPlan decides region and role from the operator's entry, the app folder and the
// registry's name. The operator's words go before the app folder's, which may not
// contradict them.
func ecrPlan(e entry, want ECR, host string) (plan, error) {
	inName := ""
	if m := ecrHost.FindStringSubmatch(host); m != nil {
		inName = m[2]
	}
	region := ""
	for _, said := range []string{inName, e.Region, want.Region} {
		if said != "" && region != "" && said != region {
			return plan{}, refuse("the registry %s is in %s, not in %s", host, region, said)
		}
		region = cmp.Or(region, said)
	}
	if region == "" {
		return plan{}, refuse("nothing says in which region of AWS the registry %s is: set region", host)
	}
	if e.IAMRoleARN != "" && want.IAMRoleARN != "" && e.IAMRoleARN != want.IAMRoleARN {
		return plan{}, refuse("iam_role_arn is %s, but builder's entry for the registry has another role", want.IAMRoleARN)
	}
	role := cmp.Or(e.IAMRoleARN, want.IAMRoleARN)
	if parsed, err := arn.Parse(role); role != "" && (err != nil || parsed.Service != "iam" || !strings.HasPrefix(parsed.Resource, "role/")) {
		return plan{}, refuse("iam_role_arn %q is not the ARN of a role", role)
	}
	return plan{region: region, role: role}, nil
}

// ecr asks GetAuthorizationToken as builder's own identity, or as the role. A role
// is assumed with the org's id as external id: a role that trusts builder for one
// org says so in its trust policy, and no other org can use it.
func (c clouds) ecr(ctx context.Context, k Key) (oci.Login, time.Time, error) {
	var none oci.Login
	p, err := ecrPlan(k.entry, k.want, k.host())
	if err != nil {
		return none, time.Time{}, err
	}
	cfg, err := config.LoadDefaultConfig(ctx, config.WithRegion(p.region), config.WithHTTPClient(awshttp.NewBuildableClient().WithTimeout(cloudTimeout)))
	if err != nil {
		return none, time.Time{}, refuse("builder's AWS settings cannot be read: see its AWS_ variables")
	}
	if p.role != "" {
		cfg.Credentials = aws.NewCredentialsCache(stscreds.NewAssumeRoleProvider(sts.NewFromConfig(cfg), p.role, func(o *stscreds.AssumeRoleOptions) {
			o.ExternalID, o.RoleSessionName = aws.String(k.org), "berth-builder"
		}))
	}
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
		return none, time.Time{}, explainAWS(ctx, p, err)
	}
	answer, err := ecr.NewFromConfig(cfg).GetAuthorizationToken(ctx, &ecr.GetAuthorizationTokenInput{})
	if err != nil {
		return none, time.Time{}, explainAWS(ctx, p, err)
	}
	if len(answer.AuthorizationData) == 0 {
		return none, time.Time{}, refuse("ECR in %s answers without a token", p.region)
	}
	data := answer.AuthorizationData[0]
	raw, err := base64.StdEncoding.DecodeString(aws.ToString(data.AuthorizationToken))
	username, password, ok := strings.Cut(string(raw), ":")
	if err != nil || !ok || username == "" || password == "" {
		return none, time.Time{}, refuse("ECR in %s answers with a token that cannot be read", p.region)
	}
	return oci.Login{Username: username, Password: password}, aws.ToTime(data.ExpiresAt), nil
}

func explainAWS(ctx context.Context, p plan, err error) error {
	api, answered := errors.AsType[smithy.APIError](err)
	if !answered || !word.MatchString(api.ErrorCode()) {
		return explain(ctx, "AWS in "+p.region, withoutText(err))
	}
	e := &Error{cause: err, Transient: api.ErrorFault() == smithy.FaultServer || api.ErrorCode() == "ThrottlingException"}
	if res, ok := errors.AsType[*smithyhttp.ResponseError](err); ok && res.HTTPStatusCode() >= http.StatusInternalServerError {
		e.Transient = true
	}
	switch who := cmp.Or(p.role, "builder's own identity"); api.ErrorCode() {
	case "AccessDenied", "AccessDeniedException":
		e.text = "AWS in " + p.region + " does not let builder use " + who + " (" + api.ErrorCode() + ")"
		if p.role != "" {
			e.text += ": its trust policy has to allow builder's identity with the org's id as sts:ExternalId, and its permissions ecr:GetAuthorizationToken"
		}
	case "ExpiredToken", "ExpiredTokenException":
		e.text = "builder's credentials for AWS have expired: renew them and start builder again"
	case "InvalidClientTokenId", "UnrecognizedClientException", "SignatureDoesNotMatch", "InvalidSignatureException":
		e.text = "AWS in " + p.region + " does not know builder's credentials (" + api.ErrorCode() + "): check its AWS_ variables"
	default:
		e.text = "AWS in " + p.region + " refuses: " + api.ErrorCode()
	}
	return e
}

// withoutText keeps what an error is and drops what the SDK says in it, which may
// quote settings.
func withoutText(err error) error { return &quiet{err} }

type quiet struct{ cause error }

func (*quiet) Error() string   { return "builder has no credentials for it that work" }
func (q *quiet) Unwrap() error { return q.cause }
