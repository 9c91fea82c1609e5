package terraform

import (
	"context"
	"regexp"
	"slices"
	"strings"
)

// needsChange tells whether one of the errors comes again until somebody changes
// the module, a variable or a right. It knows three kinds of these: what
// Terraform says of the configuration, what a provider says of a value, and the
// answers of clouds that refuse a request for what is in it.
//
// The answers of a cloud do not count when the same apply wrote access rules:
// these take a while to spread, and until then the cloud refuses what it will
// take a minute later. For the same reason an answer never counts that says that
// something is not there.
func needsChange(errs []diagnostic, wroteAccess bool) bool {
	return slices.ContainsFunc(errs, func(d diagnostic) bool {
		return slices.Contains(wrongConfiguration, d.Summary) || wrongValue.MatchString(d.Summary) ||
			!wroteAccess && refusedByCloud(d.Summary+" "+strings.Join(strings.Fields(d.Detail), " "))
	})
}

// wrongConfiguration are Terraform's own words for what `terraform validate`
// does not see: it knows no variables, and it does not run before init.
var wrongConfiguration = []string{
	"No value for required variable", "Invalid value for variable", "Invalid value for input variable", "Invalid default value for variable",
	"Error in function call", "Invalid function argument", "Call to unknown function",
	"Invalid count argument", "Invalid for_each argument", "Invalid index", "Unsupported attribute", "Unsupported argument", "Unsupported block type",
	"Missing required argument", "Incorrect attribute value type", "Invalid operand", "Invalid template interpolation value",
	"Inconsistent conditional result types", "Unsupported Terraform Core version",
}

// wrongValue is what providers say of a value before they ask anybody: those of
// the plugin framework, and those of the older SDK.
var wrongValue = regexp.MustCompile(`^Invalid Attribute (Value|Combination|Type)|^expected \S+ to (be|match|contain|have)\b|^invalid value for \S+ \(`)

// wrongStart tells what init says before the errors of a configuration that it
// cannot read: nothing was asked of the network yet.
func wrongStart(summary string) bool {
	return strings.HasPrefix(summary, "Terraform encountered problems during initiali") || // …zation, …sation
		strings.HasPrefix(summary, "OpenTofu encountered problems during initiali")
}

// cloudAnswers find the code in an answer 4xx of a cloud, as its providers pass
// it on.
var cloudAnswers = []*regexp.Regexp{
	regexp.MustCompile(`https response error StatusCode: 4\d\d, .*?api error (\w[\w.]*)`),                         // AWS
	regexp.MustCompile(`\b([A-Z][a-z]+[A-Z][\w.]*): .*status code: 4\d\d, request id`),                            // AWS, older
	regexp.MustCompile(`googleapi: Error 4\d\d: .*?, (forbidden|invalid|badRequest|invalidParameter|required)\b`), // Google Cloud
	regexp.MustCompile(`unexpected status 4\d\d(?: \([^)]*\))? with error: (\w+)`),                                // Azure
	regexp.MustCompile(`RESPONSE 4\d\d: .*?ERROR CODE: (\w+)`),                                                    // Azure SDK
	regexp.MustCompile(`StatusCode=4\d\d .*?Code="(\w+)"`),                                                        // Azure, older
}

// cloudRefusals are codes for a request that is wrong in itself, and for a right
// that is missing. Limits, conflicts, locks, expired credentials and what is not
// found are not among them.
var cloudRefusals = []string{
	// AWS
	"AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "AuthorizationError",
	"ValidationError", "ValidationException", "InvalidParameter", "InvalidParameterValue", "InvalidParameterCombination",
	"InvalidParameterException", "InvalidParameterValueException", "InvalidParameterCombinationException", "MissingParameter",
	"UnknownParameter", "InvalidArgument", "InvalidInput", "MalformedPolicyDocument", "InvalidVpc.Range", "InvalidSubnet.Range",
	"InvalidAMIID.Malformed", "InvalidBucketName", "SerializationException",
	// Google Cloud
	"forbidden", "invalid", "badRequest", "invalidParameter", "required", "IAM_PERMISSION_DENIED",
	// Azure
	"AuthorizationFailed", "LinkedAuthorizationFailed", "RequestDisallowedByPolicy", "InvalidTemplate",
	"InvalidRequestContent", "InvalidRequestFormat", "InvalidResourceName", "PropertyChangeNotAllowed", "LocationNotAvailableForResourceType",
}

// maySettle is what a cloud says of something that it may see a little later.
var maySettle = regexp.MustCompile(`(?i)does not exist|not found|could not be found|cannot be assumed|unable to assume|assume ?role|` +
	`invalid principal|instance profile|trust relationship|not ready|not yet|in progress|try again|retry|propagat|quota|limit exceeded|rate exceeded`)

func refusedByCloud(text string) bool {
	if maySettle.MatchString(text) {
		return false
	}
	return slices.ContainsFunc(cloudAnswers, func(answer *regexp.Regexp) bool {
		m := answer.FindStringSubmatch(text)
		return m != nil && slices.Contains(cloudRefusals, m[1])
	})
}

// accessRule is the type of a resource that says who may do what, or that is an
// account which others name.
var accessRule = regexp.MustCompile(`^(aws_iam_|aws_\w+_(policy|permission)$|google_\w+_iam_|google_service_account|google_project_service|azurerm_role_|azurerm_user_assigned_identity|azuread_)`)

// wrong tells whether a command failed for what is in the module or in its
// values. After init, Terraform itself is asked: it validates without asking
// anybody.
func (w *workspace) wrong(ctx context.Context, err error, initialised bool) bool {
	errs := diagnosticsOf(err)
	if needsChange(errs, false) {
		return true
	}
	if !initialised {
		return slices.ContainsFunc(errs, func(d diagnostic) bool { return wrongStart(d.Summary) })
	}
	if ctx.Err() != nil {
		return false
	}
	valid, err := w.tf.valid(ctx)
	return err == nil && !valid
}

// diagnosticsOf reads the errors out of what Terraform wrote to stderr.
func diagnosticsOf(err error) []diagnostic {
	const heading = "Error: "
	text := "\n" + strings.NewReplacer("│", "", "╷", "", "╵", "").Replace(err.Error())
	var errs []diagnostic
	for _, part := range regexp.MustCompile(`\n ?`+heading).Split(text, -1)[1:] {
		head, rest, _ := strings.Cut(part, "\n\n")
		errs = append(errs, diagnostic{Severity: "error", Summary: strings.Join(strings.Fields(head), " "), Detail: rest})
	}
	return errs
}
