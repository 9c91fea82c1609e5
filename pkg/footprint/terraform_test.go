package footprint_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/footprint"
	"github.com/berth-dev/berth/pkg/policy"
)

// change is one resource of a plan.
type change struct {
	kind, provider     string
	old, now           string // values, "" for none
	doing              string // actions, separated by spaces
	unknown, sensitive string
}

func aws(kind, doing, old, now string) change {
	return change{kind: kind, provider: "registry.terraform.io/hashicorp/aws", doing: doing, old: old, now: now}
}

func plan(t *testing.T, changes ...change) []policy.Document {
	t.Helper()
	or := func(text string) json.RawMessage {
		if text == "" {
			return json.RawMessage("null")
		}
		return json.RawMessage(text)
	}
	var list []map[string]any
	for i, c := range changes {
		list = append(list, map[string]any{
			"address": fmt.Sprintf("%s.r%d", c.kind, i), "mode": "managed", "type": c.kind, "provider_name": c.provider,
			"change": map[string]any{
				"actions": strings.Fields(c.doing), "before": or(c.old), "after": or(c.now), "after_unknown": or(c.unknown), "after_sensitive": or(c.sensitive), "before_sensitive": or(c.sensitive),
			},
		})
	}
	list = append(list, map[string]any{"address": "data.aws_ami.x", "mode": "data", "type": "aws_ami", "provider_name": "registry.terraform.io/hashicorp/aws", "change": map[string]any{"actions": []string{"read"}}})
	body, err := json.Marshal(map[string]any{"format_version": "1.2", "resource_changes": list})
	if err != nil {
		t.Fatal(err)
	}
	return []policy.Document{{Form: policy.FormPlan, Name: "plan of database", Body: body}}
}

func TestPlans(t *testing.T) {
	t.Parallel()
	policyOf := func(statement string) string {
		text, _ := json.Marshal(`{"Version":"2012-10-17","Statement":` + statement + `}`)
		return fmt.Sprintf(`{"name":"p","policy":%s}`, text)
	}
	group := func(from string) string {
		return `{"ingress":[{"from_port":22,"to_port":22,"protocol":"tcp","cidr_blocks":["` + from + `"]}]}`
	}
	for _, tc := range []struct {
		name string
		plan []change
		want []string
	}{
		{
			"a new type", []change{aws("aws_sqs_queue", "create", "", `{}`)},
			[]string{"newly needs:", "  sqs:CreateQueue, sqs:GetQueueAttributes, sqs:ListQueueTags, sqs:TagQueue for aws_sqs_queue (aws_sqs_queue.r0)"},
		},
		{"one more of a type that is there", []change{aws("aws_sqs_queue", "no-op", `{}`, `{}`), aws("aws_sqs_queue", "create", "", `{}`)}, nil},
		{"a removal", []change{aws("aws_sqs_queue", "delete", `{}`, "")}, nil},
		{
			"actions that other types have needed are not new", []change{aws("aws_route", "no-op", `{}`, `{}`), aws("aws_route_table_association", "create", "", `{}`)},
			[]string{"newly needs:", "  ec2:AssociateRouteTable for aws_route_table_association (aws_route_table_association.r1)"},
		},
		{
			"those that widen rights come first", []change{aws("aws_sqs_queue", "create", "", `{}`), aws("aws_eks_addon", "create", "", `{}`)},
			[]string{
				"newly needs:", "  eks:CreateAddon, eks:DescribeAddon, eks:TagResource, iam:PassRole for aws_eks_addon (aws_eks_addon.r1)",
				"  sqs:CreateQueue, sqs:GetQueueAttributes, sqs:ListQueueTags, sqs:TagQueue for aws_sqs_queue (aws_sqs_queue.r0)",
			},
		},
		{
			"an unknown type is not nothing", []change{aws("aws_quantum_thing", "create", "", `{}`), {kind: "time_static", provider: "registry.terraform.io/acme/time", doing: "create", now: `{}`}},
			[]string{
				"newly needs, nobody can tell:", "  what aws_quantum_thing of registry.terraform.io/hashicorp/aws needs (aws_quantum_thing.r0)",
				"  what time_static of registry.terraform.io/acme/time needs (time_static.r1)",
			},
		},
		{"what needs no right of anybody", []change{
			{kind: "terraform_data", provider: "terraform.io/builtin/terraform", doing: "create", now: `{}`}, {kind: "random_pet", provider: "registry.opentofu.org/hashicorp/random", doing: "create", now: `{}`},
		}, nil},
		{
			"a policy gains iam:PassRole", []change{aws("aws_iam_policy", "update", policyOf(`{"Effect":"Allow","Action":"s3:GetObject","Resource":"*"}`),
				policyOf(`[{"Effect":"Allow","Action":["s3:GetObject","iam:PassRole"],"Resource":"*"},{"Effect":"Deny","Action":"ec2:*","Resource":"*"}]`))},
			[]string{"newly gives:", "  iam:PassRole on * (aws_iam_policy.r0)"},
		},
		{
			"everything", []change{aws("aws_iam_role_policy", "update", policyOf(`[]`), policyOf(`{"Effect":"Allow","NotAction":"iam:*","Resource":["a","b"]}`))},
			[]string{"newly gives:", "  * but iam:* on a (aws_iam_role_policy.r0)", "  * but iam:* on b (aws_iam_role_policy.r0)"},
		},
		{
			"a policy is narrowed", []change{aws("aws_iam_policy", "update", policyOf(`{"Effect":"Allow","Action":"s3:*","Resource":"*"}`),
				policyOf(`{"Effect":"Allow","Action":"s3:GetObject","Resource":"arn:aws:s3:::x/*"}`))}, nil,
		},
		{
			"a role is trusted by another account", []change{aws("aws_iam_role", "update", `{"assume_role_policy":"{\"Statement\":[]}"}`,
				`{"assume_role_policy":"{\"Statement\":[{\"Effect\":\"Allow\",\"Action\":\"sts:AssumeRole\",\"Principal\":{\"AWS\":\"arn:aws:iam::1:root\"}}]}"}`)},
			[]string{"newly gives:", "  sts:AssumeRole on aws_iam_role.r0 to AWS arn:aws:iam::1:root"},
		},
		{
			"a policy that nobody knows yet, and one that is secret", []change{
				{kind: "aws_iam_policy", provider: "registry.terraform.io/hashicorp/aws", doing: "update", old: `{}`, now: `{}`, unknown: `{"policy":true}`},
				{kind: "aws_iam_policy", provider: "registry.terraform.io/hashicorp/aws", doing: "create", now: policyOf(`{"Effect":"Allow","Action":"sts:secret","Resource":"*"}`), sensitive: `{"policy":true}`},
			},
			[]string{
				"newly needs, nobody can tell:", "  policy of aws_iam_policy.r0, which is only known at the apply", "  policy of aws_iam_policy.r1, which is sensitive",
			},
		},
		{
			"a managed policy", []change{aws("aws_iam_role_policy_attachment", "no-op", `{"role":"r","policy_arn":"arn:a"}`, `{"role":"r","policy_arn":"arn:a"}`),
				aws("aws_iam_role_policy_attachment", "create", "", `{"role":"r","policy_arn":"arn:aws:iam::aws:policy/AdministratorAccess"}`)},
			[]string{"newly gives:", "  policy arn:aws:iam::aws:policy/AdministratorAccess to role r (aws_iam_role_policy_attachment.r1)"},
		},
		{"a security group for some", []change{aws("aws_security_group", "update", group("10.0.0.0/8"), group("10.0.0.0/7"))}, nil},
		{
			"a security group for all", []change{aws("aws_security_group", "update", group("10.0.0.0/8"), group("0.0.0.0/0"))},
			[]string{"newly exposes:", "  open to the internet, 22/tcp from 0.0.0.0/0 (aws_security_group.r0)"},
		},
		{
			"a public bucket", []change{aws("aws_s3_bucket_policy", "update", policyOf(`[]`), policyOf(`{"Effect":"Allow","Action":"s3:GetObject","Principal":"*","Resource":"arn:b/*"}`))},
			[]string{"newly gives:", "  s3:GetObject on arn:b/* to everybody (aws_s3_bucket_policy.r0)", "newly exposes:", "  public data, its policy lets everybody in (aws_s3_bucket_policy.r0)"},
		},
		{
			"public databases, clusters and functions", []change{
				aws("aws_db_instance", "update", `{"publicly_accessible":false}`, `{"publicly_accessible":true}`),
				aws("aws_eks_cluster", "update", `{"vpc_config":[{"endpoint_public_access":false}]}`, `{"vpc_config":[{"endpoint_public_access":true,"public_access_cidrs":["1.2.3.4/32"]}]}`),
				aws("aws_lambda_function_url", "update", `{"authorization_type":"AWS_IAM"}`, `{"authorization_type":"NONE"}`),
			},
			[]string{
				"newly exposes:", "  a public service, publicly_accessible (aws_db_instance.r0)", "  a public service, the API server, from 1.2.3.4/32 (aws_eks_cluster.r1)",
				"  a public service, authorization_type is NONE (aws_lambda_function_url.r2)",
			},
		},
		{
			"images and hosts of tasks", []change{aws("aws_ecs_task_definition", "delete create", `{"container_definitions":"[{\"image\":\"a/b:1\"}]"}`,
				`{"container_definitions":"[{\"image\":\"a/b:2\",\"environment\":[{\"name\":\"URL\",\"value\":\"https://u:p@x.example.com\"}]}]"}`)},
			[]string{"new images:", "  a/b:2 (aws_ecs_task_definition.r0)", "newly speaks to, as far as can be known:", "  x.example.com (aws_ecs_task_definition.r0, URL)"},
		},
		{
			"variables that are sensitive", []change{{
				kind: "aws_lambda_function", provider: "registry.terraform.io/hashicorp/aws", doing: "update", old: `{}`,
				now: `{"environment":[{"variables":{"A":"https://open.example.com","B":"https://secret.example.com"}}]}`, sensitive: `{"environment":[{"variables":{"B":true}}]}`,
			}},
			[]string{"newly speaks to, as far as can be known:", "  open.example.com (aws_lambda_function.r0, A)"},
		},
		{
			"Google", []change{
				{kind: "google_project_iam_member", provider: "registry.terraform.io/hashicorp/google", doing: "update", old: `{}`, now: `{"project":"p","role":"roles/owner","member":"serviceAccount:x"}`},
				{kind: "google_storage_bucket_iam_member", provider: "registry.terraform.io/hashicorp/google", doing: "update", old: `{}`, now: `{"bucket":"b","role":"roles/storage.objectViewer","member":"allUsers"}`},
				{kind: "google_compute_firewall", provider: "registry.terraform.io/hashicorp/google", doing: "update", old: `{"source_ranges":["10.0.0.0/8"]}`, now: `{"source_ranges":["0.0.0.0/0"],"allow":[{"protocol":"tcp","ports":["22"]}]}`},
			},
			[]string{
				"newly gives:", "  roles/storage.objectViewer in bucket b to everybody (google_storage_bucket_iam_member.r1)", "  roles/owner in project p to serviceAccount:x (google_project_iam_member.r0)",
				"newly exposes:", "  open to the internet, 22/tcp from 0.0.0.0/0 (google_compute_firewall.r2)", "  public data, roles/storage.objectViewer for allUsers (google_storage_bucket_iam_member.r1)",
			},
		},
		{
			"Azure", []change{
				{kind: "azurerm_role_assignment", provider: "registry.terraform.io/hashicorp/azurerm", doing: "create", now: `{"role_definition_name":"Owner","principal_id":"x","scope":"/subscriptions/s"}`},
				{kind: "azurerm_network_security_rule", provider: "registry.terraform.io/hashicorp/azurerm", doing: "update", old: `{}`, now: `{"direction":"Inbound","access":"Allow","protocol":"Tcp","destination_port_range":"3389","source_address_prefix":"*"}`},
			},
			[]string{
				"newly needs:", "  Microsoft.Authorization/roleAssignments/read, Microsoft.Authorization/roleAssignments/write, Microsoft.Authorization/roleDefinitions/read for azurerm_role_assignment (azurerm_role_assignment.r0)",
				"newly gives:", "  role Owner in /subscriptions/s to principal x (azurerm_role_assignment.r0)",
				"newly exposes:", "  open to the internet, 3389/Tcp from * (azurerm_network_security_rule.r1)",
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, footprint.Of(plan(t, tc.plan...), footprint.Known{}).Lines()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Each line of the table is whole, and in the form of its cloud.
func TestClouds(t *testing.T) {
	t.Parallel()
	counts := map[string]int{}
	for name, o := range footprint.Clouds() {
		counts[o.Provider]++
		if len(o.Create) == 0 || len(o.Read) == 0 || o.Page == "" {
			t.Errorf("%s: %+v", name, o)
		}
		for _, list := range [][]string{o.Create, o.Read, o.Update, o.Delete} {
			for _, action := range list {
				ok := strings.Count(action, ":") == 1 && strings.HasPrefix(name, "aws_") || strings.Count(action, ".") == 2 && strings.HasPrefix(name, "google_") ||
					strings.HasPrefix(action, "Microsoft.") && strings.Count(action, "/") >= 2 && strings.HasPrefix(name, "azurerm_")
				if !ok || strings.ContainsAny(action, "=|*[]- ") {
					t.Errorf("%s: action %q", name, action)
				}
			}
		}
	}
	if counts["aws"] < 60 || counts["google"] < 25 || counts["azure"] < 20 || len(counts) != 3 {
		t.Errorf("%v", counts)
	}
}

func TestOtherTools(t *testing.T) {
	t.Parallel()
	list := []policy.Document{
		{Form: policy.FormPulumi, Name: "plan of p", Body: raw(`{"steps":[{"op":"create","urn":"urn:a","newState":{"type":"aws:s3/bucket:Bucket"}},{"op":"update","urn":"urn:b","oldState":{"type":"aws:rds/instance:Instance"},"newState":{"type":"aws:rds/instance:Instance"}},{"op":"create","urn":"urn:c","newState":{"type":"pulumi:pulumi:Stack"}}]}`)},
		{Form: policy.FormChanges, Name: "plan of g", Body: raw(`{"type":"greeting","changes":[{"address":"a","action":"create"}]}`)},
	}
	want := []string{"newly needs, nobody can tell:", "  what aws:s3/bucket:Bucket of Pulumi needs (urn:a)", "  what the plugin greeting needs (plan of g)"}
	if diff := cmp.Diff(want, footprint.Of(list, footprint.Known{}).Lines()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
