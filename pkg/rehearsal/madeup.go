package rehearsal

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig"
)

// What made-up values consist of. The account and the project cannot exist, names
// below .invalid never resolve (RFC 2606), and 192.0.2.0/24 is for documentation
// (RFC 5737).
const (
	account   = "000000000000"
	project   = "rehearsal-000000"
	fictional = "rehearsal.invalid"
	address   = "192.0.2.10"
)

// Always lists the paths of what the stack of a platform gives whatever the app reads.
func Always(app *appconfig.App, p Platform) [][]string { return always(app, p) }

// always lists what the stack of a platform gives whatever the app reads.
func always(app *appconfig.App, p Platform) [][]string {
	stack := map[Platform][]string{
		AWS: {"account_id", "region", "vpc_id", "runner_subnet", "public_subnets", "private_subnets", "runner_iam_role_arn",
			"provision_iam_role_arn", "maintenance_iam_role_arn", "deprovision_iam_role_arn"},
		GCP: {"project_id", "region", "network_name", "runner_subnet", "public_subnet", "private_subnet", "runner_service_account_email",
			"provision_service_account_email", "maintenance_service_account_email", "deprovision_service_account_email"},
		Azure: {"subscription_id", "tenant_id", "location", "resource_group_name", "vnet_id", "public_subnet_ids", "private_subnet_ids",
			"runner_subnet_id", "key_vault_name"},
	}[p]
	var paths [][]string
	for _, name := range stack {
		paths = append(paths, []string{"install_stack", "outputs", name})
	}
	if p == AWS {
		for _, s := range app.Secrets {
			paths = append(paths, []string{"install_stack", "outputs", s.Name + "_arn"})
		}
	}
	for _, name := range map[Platform][]string{AWS: {"region"}, GCP: {"project_id", "region"}, Azure: {"location"}}[p] {
		paths = append(paths, []string{"cloud_account", string(p), name})
	}
	if p != None {
		paths = append(paths, []string{"domain", "public_domain"}, []string{"domain", "internal_domain"})
	}
	return paths
}

// SecretARN is the made-up name of a secret in the platform's store.
func (r Result) SecretARN(name string) string {
	if arn, ok := r.Stack[name+"_arn"].(string); ok {
		return arn
	}
	return "rehearsal-" + name
}

// A rule makes up values for names that match.
type rule struct {
	platform Platform // "" for all
	names    *regexp.Regexp
	make     func(b *builder, path []string) any
}

func text(format string) func(*builder, []string) any {
	return func(b *builder, path []string) any {
		return strings.NewReplacer("{region}", b.region, "{name}", nameOf(path), "{hex17}", hexOf(path, 17), "{hex12}", hexOf(path, 12)).Replace(format)
	}
}

func just(v any) func(*builder, []string) any { return func(*builder, []string) any { return v } }

func named(pattern string) *regexp.Regexp { return regexp.MustCompile(`^(.*_)?(` + pattern + `)$`) }

// many are names of lists. What is in one is made up by its singular.
var many = named(`(subnet|subnet_id|security_group_id|zone|az|availability_zone|arn|id|cidr|instance|nameserver|name_server)s|subnet_ids`)

// rules by name, the first that matches: those of a platform, then those of all.
var rules = []rule{
	{AWS, named(`account_id|aws_account_id|registry_id`), just(account)},
	{AWS, named(`vpc_id|vpc`), text("vpc-{hex17}")},
	{AWS, named(`subnet|subnet_id`), text("subnet-{hex17}")},
	{AWS, named(`security_group(_id)?|sg_id`), text("sg-{hex17}")},
	{AWS, named(`az|availability_zone|zone`), text("{region}a")},
	{AWS, named(`hosted_zone_id|zone_id`), text("Z{hex17}")},
	{AWS, named(`oidc_provider_arn`), text("arn:aws:iam::" + account + ":oidc-provider/oidc.eks.{region}.amazonaws.com/id/{hex17}")},
	{AWS, named(`oidc_provider`), text("oidc.eks.{region}.amazonaws.com/id/{hex17}")},
	{AWS, named(`role|role_arn|iam_role`), text("arn:aws:iam::" + account + ":role/rehearsal-{name}")},
	{AWS, named(`policy_arn`), text("arn:aws:iam::" + account + ":policy/rehearsal-{name}")},
	{AWS, named(`cluster_arn`), text("arn:aws:eks:{region}:" + account + ":cluster/rehearsal-{name}")},
	{AWS, named(`bucket_arn`), text("arn:aws:s3:::rehearsal-{name}")},
	{AWS, named(`kms_key_arn|key_arn`), text("arn:aws:kms:{region}:" + account + ":key/00000000-0000-4000-8000-{hex12}")},
	{AWS, named(`certificate_arn`), text("arn:aws:acm:{region}:" + account + ":certificate/00000000-0000-4000-8000-{hex12}")},
	{AWS, named(`arn`), text("arn:aws:secretsmanager:{region}:" + account + ":secret:rehearsal-{name}-AbCdEf")},
	{AWS, named(`repository_url|repository_uri|registry_url|registry`), text(account + ".dkr.ecr.{region}.amazonaws.com/rehearsal")},

	{GCP, named(`project|project_id`), just(project)},
	{GCP, named(`zone`), text("{region}-a")},
	{GCP, named(`network|network_self_link|vpc|vpc_id|network_id`), just("projects/" + project + "/global/networks/rehearsal")},
	{GCP, named(`subnet|subnetwork|subnet_id|subnet_self_link`), text("projects/" + project + "/regions/{region}/subnetworks/rehearsal-{name}")},
	{GCP, named(`service_account|service_account_email|sa_email`), text("rehearsal-{hex12}@" + project + ".iam.gserviceaccount.com")},
	{GCP, named(`registry|repository_url`), text("{region}-docker.pkg.dev/" + project + "/rehearsal")},

	{Azure, named(`(subscription|tenant|client|principal|object)_id`), text("00000000-0000-4000-8000-{hex12}")},
	{Azure, named(`vnet_id|network_id|vpc_id`), just(azureGroup + "/providers/Microsoft.Network/virtualNetworks/rehearsal")},
	{Azure, named(`subnet_id|subnet`), text(azureGroup + "/providers/Microsoft.Network/virtualNetworks/rehearsal/subnets/{name}")},
	{Azure, named(`resource_group(_name)?`), just("rehearsal")},
	{Azure, named(`resource_group_id`), just(azureGroup)},
	{Azure, named(`login_server|registry`), just("rehearsal.azurecr.invalid")},
	{Azure, named(`id`), text(azureGroup + "/providers/Microsoft.Rehearsal/things/{name}")},

	{"", named(`port`), just(5432)},
	{"", named(`count|size|replicas|number`), just(2)},
	{"", regexp.MustCompile(`^(is|has|enable|use)_.*|.*enabled$`), just(true)},
	{"", named(`cidr|cidr_block|cidr_range`), just("192.0.2.0/24")},
	{"", named(`ip|ip_address|public_ip|private_ip`), just(address)},
	{"", named(`region|location`), text("{region}")},
	{"", named(`tags|labels|annotations`), just(map[string]any{"rehearsal": "true"})},
	{"", named(`(certificate_authority|ca|ca_certificate|certificate)(_data)?|ca_cert(ificate)?(_data)?`),
		just(base64.StdEncoding.EncodeToString([]byte("made up for a rehearsal")))},
	{"", named(`url|uri|endpoint|issuer`), text("https://{name}." + fictional)},
	{"", named(`host|hostname|address|fqdn|domain|domain_name|dns_name|dns|public_domain|internal_domain`), text("{name}." + fictional)},
	{"", named(`email`), text("{name}@" + fictional)},
	{"", named(`version`), just("1.31")},
	{"", named(`token|password|secret_value|access_key|secret_key`), just("made-up-for-a-rehearsal")},
}

const azureGroup = "/subscriptions/00000000-0000-4000-8000-000000000000/resourceGroups/rehearsal"

// value makes up what stands at a path.
func (b *builder) value(path []string) any {
	if many.MatchString(last(path)) {
		return b.list(path)
	}
	return b.single(path)
}

func (b *builder) single(path []string) any {
	name := strings.ReplaceAll(strings.ToLower(last(path)), "-", "_")
	if name == "id" || name == "arn" || name == "name" { // vpc.id is a vpc_id
		if long := strings.ReplaceAll(strings.ToLower(above(path)), "-", "_") + "_" + name; above(path) != "outputs" {
			name = long
		}
	}
	for _, r := range rules {
		if (r.platform == "" || r.platform == b.platform) && r.names.MatchString(name) {
			return r.make(b, path)
		}
	}
	return "rehearsal-" + nameOf(path)
}

// listLength is the most that templates index of subnets and zones.
const listLength = 3

// list makes up a list, the items of which differ.
func (b *builder) list(path []string) any {
	one := strings.TrimSuffix(last(path), "s")
	items := make([]any, listLength)
	for i := range items {
		items[i] = b.single(append(path[:len(path)-1:len(path)-1], strconv.Itoa(i), one))
		if one == "az" || strings.HasSuffix(one, "zone") {
			items[i] = b.region + map[Platform]string{GCP: "-"}[b.platform] + string(rune('a'+i))
		}
	}
	return items
}

func last(path []string) string { return path[len(path)-1] }

func above(path []string) string {
	if len(path) < 2 {
		return ""
	}
	return path[len(path)-2]
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// nameOf is a path as a name that clouds take, at most 40 characters.
func nameOf(path []string) string {
	name := last(path)
	if a := above(path); a != "outputs" && a != "" {
		name = a + "-" + name
	}
	name = strings.Trim(notInNames.ReplaceAllString(strings.ToLower(name), "-"), "-")
	const longest = 40
	return strings.TrimRight(name[:min(len(name), longest)], "-")
}

// hexOf is an id of n digits, most of them 0, that differs by path.
func hexOf(path []string, n int) string {
	sum := sha256.Sum256([]byte(strings.Join(path, ".")))
	const own = 6
	return strings.Repeat("0", n-own) + hex.EncodeToString(sum[:])[:own]
}

// Input makes up a value for an input that is required and has no default, by its
// type and name, as installs are given it.
func Input(app *appconfig.App, in appconfig.Input) string {
	b := builder{platform: PlatformOf(app), region: regionOf(Rehearsal{Platform: PlatformOf(app)})}
	switch in.Type {
	case appconfig.InputNumber:
		for _, bound := range []*string{in.Min, in.Max} {
			if bound != nil {
				return *bound
			}
		}
		return "2"
	case appconfig.InputBool:
		return "true"
	case appconfig.InputList:
		return `["rehearsal"]`
	case appconfig.InputJSON:
		return "{}"
	}
	return fmt.Sprint(b.single([]string{"inputs", in.Name}))
}
