package terraform

import "testing"

// The texts are those of the providers, shortened where they repeat the request.
func TestNeedsChange(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name            string
		summary, detail string
		wroteAccess     bool
		want            bool
	}{
		{name: "AWS: no right", summary: "creating EC2 VPC: operation error EC2: CreateVpc, https response error StatusCode: 403, RequestID: 5c0a-11, api error UnauthorizedOperation: You are not authorized to perform this operation. Encoded authorization failure message: x", want: true},
		{name: "AWS: no right, in an apply that wrote rights", summary: "creating EC2 VPC: operation error EC2: CreateVpc, https response error StatusCode: 403, RequestID: 5c0a-11, api error UnauthorizedOperation: You are not authorized to perform this operation.", wroteAccess: true},
		{name: "AWS: a denied bucket", summary: "creating S3 Bucket (acme): operation error S3: CreateBucket, https response error StatusCode: 403, RequestID: A1, HostID: x=, api error AccessDenied: Access Denied", want: true},
		{name: "AWS: a wrong parameter", summary: "creating RDS DB Instance (db): operation error RDS: CreateDBInstance, https response error StatusCode: 400, RequestID: 1, api error InvalidParameterValue: Invalid master password", want: true},
		{name: "AWS: a wrong range", summary: "creating EC2 Subnet: operation error EC2: CreateSubnet, https response error StatusCode: 400, RequestID: 1, api error InvalidSubnet.Range: The CIDR '10.9.0.0/24' is invalid.", want: true},
		{name: "AWS: an alarm with a wrong period", summary: "putting CloudWatch Metric Alarm (x): operation error CloudWatch: PutMetricAlarm, https response error StatusCode: 400, RequestID: 1, api error ValidationError: Period must be a multiple of 60", want: true},
		{name: "AWS, older", summary: "Error creating queue: AccessDenied: Access to the resource https://sqs.eu-west-1.amazonaws.com/ is denied.", detail: "\tstatus code: 403, request id: 1", want: true},
		{name: "AWS: a role that was just made", summary: "creating Lambda Function (x): operation error Lambda: CreateFunction, https response error StatusCode: 400, RequestID: 1, InvalidParameterValueException: The role defined for the function cannot be assumed by Lambda."},
		{name: "AWS: a profile that was just made", summary: "creating EC2 Instance: operation error EC2: RunInstances, https response error StatusCode: 400, RequestID: 1, api error InvalidParameterValue: Value (web) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name"},
		{name: "AWS: a principal that was just made", summary: "putting S3 Bucket Policy: operation error S3: PutBucketPolicy, https response error StatusCode: 400, RequestID: 1, api error MalformedPolicy: Invalid principal in policy"},
		{name: "AWS: a trust that was just made", summary: "configuring Terraform AWS Provider: operation error STS: AssumeRole, https response error StatusCode: 403, RequestID: 1, api error AccessDenied: User: arn:aws:iam::1:user/a is not authorized to perform: sts:AssumeRole on resource: arn:aws:iam::1:role/b"},
		{name: "AWS: too often", summary: "reading EC2 VPC: operation error EC2: DescribeVpcs, https response error StatusCode: 400, RequestID: 1, api error Throttling: Rate exceeded"},
		{name: "AWS: a name that is still taken", summary: "creating S3 Bucket (acme): operation error S3: CreateBucket, https response error StatusCode: 409, RequestID: 1, BucketAlreadyExists: "},
		{name: "AWS: a limit", summary: "creating EC2 VPC: operation error EC2: CreateVpc, https response error StatusCode: 400, RequestID: 1, api error VpcLimitExceeded: The maximum number of VPCs has been reached."},
		{name: "AWS: not there, perhaps not yet", summary: "creating EC2 Route: operation error EC2: CreateRoute, https response error StatusCode: 400, RequestID: 1, api error InvalidParameterValue: The gateway ID 'igw-1' does not exist"},
		{name: "AWS: credentials that ran out", summary: "operation error STS: GetCallerIdentity, https response error StatusCode: 403, RequestID: 1, api error ExpiredToken: The security token included in the request is expired"},
		{name: "AWS: its own fault", summary: "creating EC2 VPC: operation error EC2: CreateVpc, https response error StatusCode: 500, RequestID: 1, api error InternalError: An internal error has occurred"},

		{name: "Google Cloud: no right", summary: "Error creating Network: googleapi: Error 403: Required 'compute.networks.create' permission for 'projects/p/global/networks/n', forbidden", detail: "\n  with google_compute_network.n,\n  on main.tf line 1, in resource \"google_compute_network\" \"n\":", want: true},
		{name: "Google Cloud: a wrong name", summary: "Error creating Network: googleapi: Error 400: Invalid value for field 'resource.name': 'N'. Must be a match of regex, invalid", want: true},
		{name: "Google Cloud: an account that was just made", summary: "Error setting IAM policy: googleapi: Error 400: Service account a@p.iam.gserviceaccount.com does not exist., badRequest"},
		{name: "Google Cloud: a quota", summary: "Error creating Instance: googleapi: Error 403: Quota 'CPUS' exceeded. Limit: 8.0 in region europe-west1., quotaExceeded"},

		{name: "Azure: no right", summary: "creating Resource Group \"a\": unexpected status 403 (403 Forbidden) with error: AuthorizationFailed: The client 'x' with object id 'x' does not have authorization to perform action 'Microsoft.Resources/subscriptions/resourcegroups/write'", want: true},
		{name: "Azure: a policy", summary: "creating Storage Account \"a\": unexpected status 403 (403 Forbidden) with error: RequestDisallowedByPolicy: Resource 'a' was disallowed by policy.", want: true},
		{name: "Azure: busy", summary: "updating Subnet \"a\": unexpected status 429 (429 Too Many Requests) with error: RetryableError: A retryable error occurred."},

		{name: "a provider's own check", summary: "Invalid Attribute Value Length", detail: "Attribute name string length must be at most 63, got: 70", want: true},
		{name: "an older provider's own check", summary: "expected instance_tenancy to be one of [\"default\" \"dedicated\"], got shared", want: true},
		{name: "a variable", summary: "No value for required variable", want: true},
		{name: "an error that nobody knows", summary: "Provider produced inconsistent final plan"},
		{name: "a text that only sounds like it", summary: "local-exec provisioner error", detail: "Output: AccessDenied InvalidParameterValue"},
		{name: "the network", summary: "Failed to query available provider packages", detail: "Could not retrieve the list of available versions for provider hashicorp/aws: could not connect to registry.terraform.io"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			other := diagnostic{Severity: "error", Summary: "something else"}
			errs := []diagnostic{other, {Severity: "error", Summary: tc.summary, Detail: tc.detail}}
			if got := needsChange(errs, tc.wroteAccess); got != tc.want {
				t.Errorf("%s %s: needsChange is %t", tc.summary, tc.detail, got)
			}
		})
	}
}

func TestAccessRule(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]bool{
		"aws_iam_role": true, "aws_iam_role_policy_attachment": true, "aws_s3_bucket_policy": true, "aws_lambda_permission": true,
		"google_project_iam_member": true, "google_service_account": true, "azurerm_role_assignment": true, "azurerm_user_assigned_identity": true,
		"aws_s3_bucket": false, "aws_vpc": false, "google_compute_network": false, "azurerm_resource_group": false, "terraform_data": false,
	} {
		if got := accessRule.MatchString(kind); got != want {
			t.Errorf("%s: %t", kind, got)
		}
	}
}
