package footprint

import (
	"encoding/json"
	"fmt"
	"strings"
)

// looks take in what resources of a type give, expose, run and speak to.
var looks = map[string]func(resource){
	"aws_iam_policy": grantsPolicy, "aws_iam_role_policy": grantsPolicy, "aws_iam_user_policy": grantsPolicy,
	"aws_iam_group_policy": grantsPolicy, "aws_sqs_queue_policy": grantsPolicy, "aws_sns_topic_policy": grantsPolicy,
	"aws_kms_key": grantsPolicy, "aws_ecr_repository_policy": grantsPolicy, "aws_secretsmanager_secret_policy": grantsPolicy,
	"aws_lambda_permission": lambdaPermission,
	"aws_iam_role":          awsRole,
	"aws_s3_bucket_policy": func(r resource) {
		grantsPolicy(r)
		if openPolicy(r.text("policy")) {
			r.expose(PublicData, r.by, "its policy lets everybody in")
		}
	},
	"aws_iam_role_policy_attachment":    attachment("role"),
	"aws_iam_user_policy_attachment":    attachment("user"),
	"aws_iam_group_policy_attachment":   attachment("group"),
	"aws_eks_access_policy_association": attachment("principal_arn"),
	"aws_security_group":                securityGroup,
	"aws_security_group_rule":           securityGroupRule,
	"aws_vpc_security_group_ingress_rule": func(r resource) {
		for _, key := range []string{"cidr_ipv4", "cidr_ipv6"} {
			if wholeInternet(r.telling(key)) {
				r.expose(OpenFirewall, r.by, portRange(r.all(), "from_port", "to_port", "ip_protocol")+" from "+r.text(key))
			}
		}
	},
	"aws_lb": func(r resource) {
		if r.all()["internal"] != true {
			r.expose(LoadBalancer, r.by, "")
		}
	},
	"aws_elb": func(r resource) {
		if r.all()["internal"] != true {
			r.expose(LoadBalancer, r.by, "")
		}
	},
	"aws_eip":                     always(PublicAddress),
	"aws_apigatewayv2_api":        always(PublicService),
	"aws_cloudfront_distribution": always(PublicService),
	"aws_instance":                when("associate_public_ip_address", PublicAddress),
	"aws_db_instance":             when("publicly_accessible", PublicService),
	"aws_rds_cluster_instance":    when("publicly_accessible", PublicService),
	"aws_redshift_cluster":        when("publicly_accessible", PublicService),
	"aws_lambda_function":         lambdaFunction,
	"aws_lambda_function_url":     equals("authorization_type", "NONE", PublicService),
	"aws_ecs_task_definition":     taskDefinition,
	"aws_s3_bucket_acl":           publicACL,
	"aws_s3_bucket":               publicACL,
	"aws_s3_bucket_public_access_block": func(r resource) {
		for _, key := range []string{"block_public_acls", "block_public_policy", "ignore_public_acls", "restrict_public_buckets"} {
			if r.all()[key] == false {
				r.expose(PublicData, r.by, key+" is off")
			}
		}
	},
	"aws_eks_cluster": func(r resource) {
		for _, vpc := range r.blocks("vpc_config") {
			if vpc["endpoint_public_access"] != false {
				r.expose(PublicService, r.by, "the API server, from "+orInternet(texts(vpc, "public_access_cidrs")))
			}
		}
	},

	"google_compute_firewall":        googleFirewall,
	"google_compute_global_address":  unlessInternal,
	"google_compute_address":         unlessInternal,
	"google_compute_forwarding_rule": googleForwarding, "google_compute_global_forwarding_rule": googleForwarding,
	"google_compute_instance": func(r resource) {
		for _, nic := range r.blocks("network_interface") {
			if len(children(nic, "access_config")) > 0 {
				r.expose(PublicAddress, r.by, "")
			}
		}
	},
	"google_sql_database_instance": func(r resource) {
		for _, settings := range r.blocks("settings") {
			for _, ip := range children(settings, "ip_configuration") {
				if ip["ipv4_enabled"] == true {
					r.expose(PublicService, r.by, "a public address")
				}
				for _, network := range children(ip, "authorized_networks") {
					if wholeInternet(text(network, "value")) {
						r.expose(PublicService, r.by, "from "+text(network, "value"))
					}
				}
			}
		}
	},
	"google_cloud_run_v2_service": func(r resource) {
		r.pods(r.read, r.by, 0)
		if ingress := r.text("ingress"); ingress == "" || ingress == "INGRESS_TRAFFIC_ALL" {
			r.expose(PublicService, r.by, "")
		}
	},

	"azurerm_network_security_rule": func(r resource) { azureRule(r, r.all()) },
	"azurerm_network_security_group": func(r resource) {
		for _, rule := range r.blocks("security_rule") {
			azureRule(r, rule)
		}
	},
	"azurerm_public_ip":                  always(PublicAddress),
	"azurerm_storage_account":            when("allow_nested_items_to_be_public", PublicData),
	"azurerm_mssql_server":               when("public_network_access_enabled", PublicService),
	"azurerm_postgresql_flexible_server": when("public_network_access_enabled", PublicService),
	"azurerm_storage_container": func(r resource) {
		if access := r.text("container_access_type"); access != "" && access != "private" {
			r.expose(PublicData, r.by, access)
		}
	},
	"azurerm_role_assignment": func(r resource) {
		role := r.text("role_definition_name")
		if role == "" {
			role = r.telling("role_definition_id")
		}
		r.grant(Grant{In: InAzure, By: r.by, To: named("principal", r.text("principal_id")), What: "role " + role, Scope: r.telling("scope")})
	},
	"azurerm_role_definition": func(r resource) {
		for _, p := range r.blocks("permissions") {
			if actions := append(texts(p, "actions"), texts(p, "data_actions")...); len(actions) > 0 {
				r.grant(Grant{In: InAzure, By: r.by, Actions: actions, What: "role " + r.text("name"), Scope: r.text("scope")})
			}
		}
	},

	"helm_release":        func(r resource) { r.url(r.text("repository"), r.by) },
	"kubernetes_manifest": func(r resource) { r.object(object(child(r.all(), "manifest"))) },
	"docker_image":        func(r resource) { r.image(r.text("name"), r.by) },
}

// lookByName is for families of types.
func lookByName(kind string) func(resource) {
	switch {
	case strings.HasPrefix(kind, "google_") && (strings.HasSuffix(kind, "_iam_member") || strings.HasSuffix(kind, "_iam_binding")):
		return googleGrant
	case strings.HasPrefix(kind, "google_") && strings.HasSuffix(kind, "_iam_policy"):
		return googlePolicy
	case strings.HasPrefix(kind, "kubernetes_service"):
		return func(r resource) {
			for _, spec := range r.blocks("spec") {
				if text(spec, "type") == "LoadBalancer" {
					r.expose(LoadBalancer, r.by, "")
				}
			}
		}
	case strings.HasPrefix(kind, "kubernetes_ingress"):
		return func(r resource) {
			for _, spec := range r.blocks("spec") {
				for _, rule := range children(spec, "rule") {
					r.hostnames(IngressHost, []string{text(rule, "host")}, r.by)
				}
			}
		}
	case strings.HasPrefix(kind, "kubernetes_"), strings.HasPrefix(kind, "azurerm_container_"), strings.HasPrefix(kind, "google_cloud_run_"):
		return func(r resource) { r.pods(r.read, r.by, 0) }
	}
	return nil
}

func always(kind ExposureKind) func(resource) {
	return func(r resource) { r.expose(kind, r.by, "") }
}

func when(key string, kind ExposureKind) func(resource) {
	return func(r resource) {
		if r.is(key) {
			r.expose(kind, r.by, key)
		}
	}
}

func equals(key, value string, kind ExposureKind) func(resource) {
	return func(r resource) {
		if r.text(key) == value {
			r.expose(kind, r.by, key+" is "+value)
		}
	}
}

func publicACL(r resource) {
	if acl := r.text("acl"); strings.HasPrefix(acl, "public-") || acl == "authenticated-read" {
		r.expose(PublicData, r.by, "acl is "+acl)
	}
}

// wholeInternet tells ranges that leave nobody out.
func wholeInternet(cidr string) bool {
	return strings.HasSuffix(cidr, "/0") || cidr == "*" || strings.EqualFold(cidr, "Internet") || strings.EqualFold(cidr, "Any")
}

func orInternet(cidrs []string) string {
	if len(cidrs) == 0 {
		return "the whole internet"
	}
	return strings.Join(union(cidrs, nil), ", ")
}

func named(what, name string) []string {
	if name == "" {
		return nil
	}
	return []string{what + " " + name}
}

// portRange is a range of ports in words.
func portRange(m map[string]any, from, to, protocol string) string {
	name := word(m[protocol])
	if name == "-1" || name == "all" {
		return "every port"
	}
	a, b := word(m[from]), word(m[to])
	if a == b {
		return fmt.Sprintf("%s/%s", a, name)
	}
	return fmt.Sprintf("%s-%s/%s", a, b, name)
}

func securityGroup(r resource) {
	if marked(r.later, "ingress") {
		r.telling("ingress")
		return
	}
	for _, rule := range r.blocks("ingress") {
		for _, cidr := range append(texts(rule, "cidr_blocks"), texts(rule, "ipv6_cidr_blocks")...) {
			if wholeInternet(cidr) {
				r.expose(OpenFirewall, r.by, portRange(rule, "from_port", "to_port", "protocol")+" from "+cidr)
			}
		}
	}
}

func securityGroupRule(r resource) {
	if r.text("type") != "ingress" {
		return
	}
	for _, key := range []string{"cidr_blocks", "ipv6_cidr_blocks"} {
		r.telling(key)
		for _, cidr := range texts(r.all(), key) {
			if wholeInternet(cidr) {
				r.expose(OpenFirewall, r.by, portRange(r.all(), "from_port", "to_port", "protocol")+" from "+cidr)
			}
		}
	}
}

func googleFirewall(r resource) {
	if r.text("direction") == "EGRESS" {
		return
	}
	from := texts(r.all(), "source_ranges")
	if len(from) == 0 && len(texts(r.all(), "source_tags"))+len(texts(r.all(), "source_service_accounts")) == 0 {
		from = []string{"0.0.0.0/0"}
	}
	for _, cidr := range from {
		if !wholeInternet(cidr) {
			continue
		}
		for _, allow := range r.blocks("allow") {
			ports := "every port"
			if list := texts(allow, "ports"); len(list) > 0 {
				ports = strings.Join(list, ", ")
			}
			r.expose(OpenFirewall, r.by, ports+"/"+text(allow, "protocol")+" from "+cidr)
		}
	}
}

func unlessInternal(r resource) {
	if r.text("address_type") != "INTERNAL" {
		r.expose(PublicAddress, r.by, "")
	}
}

func googleForwarding(r resource) {
	if scheme := r.text("load_balancing_scheme"); !strings.HasPrefix(scheme, "INTERNAL") {
		r.expose(LoadBalancer, r.by, r.text("port_range"))
	}
}

func azureRule(r resource, rule map[string]any) {
	if !strings.EqualFold(text(rule, "direction"), "Inbound") || !strings.EqualFold(text(rule, "access"), "Allow") {
		return
	}
	ports := append(texts(rule, "destination_port_range"), texts(rule, "destination_port_ranges")...)
	for _, from := range append(texts(rule, "source_address_prefix"), texts(rule, "source_address_prefixes")...) {
		if wholeInternet(from) {
			r.expose(OpenFirewall, r.by, strings.Join(ports, ", ")+"/"+text(rule, "protocol")+" from "+from)
		}
	}
}

// publicMembers are everybody, for Google.
var publicMembers = map[string]bool{"allUsers": true, "allAuthenticatedUsers": true}

func googleGrant(r resource) {
	members := texts(r.all(), "members")
	if member := r.telling("member"); member != "" {
		members = append(members, member)
	}
	r.googleRole(r.telling("role"), members)
}

func (r resource) googleRole(role string, members []string) {
	scope := ""
	for _, key := range []string{"project", "folder", "org_id", "bucket", "service_account_id", "secret_id", "name", "location"} {
		if v := r.text(key); v != "" {
			scope = key + " " + v
			break
		}
	}
	for _, member := range members {
		if publicMembers[member] {
			kind := PublicService
			if strings.HasPrefix(r.kind, "google_storage_") {
				kind = PublicData
			}
			r.expose(kind, r.by, role+" for "+member)
			member = everybody
		}
		r.grant(Grant{In: InGoogle, By: r.by, To: []string{member}, What: role, Scope: scope})
	}
}

func googlePolicy(r resource) {
	var data struct {
		Bindings []struct {
			Role    string   `json:"role"`
			Members []string `json:"members"`
		} `json:"bindings"`
	}
	if raw := r.telling("policy_data"); raw == "" || json.Unmarshal([]byte(raw), &data) != nil {
		return
	}
	for _, b := range data.Bindings {
		r.googleRole(b.Role, b.Members)
	}
}

func lambdaFunction(r resource) {
	r.image(r.text("image_uri"), r.by)
	for _, env := range r.blocks("environment") {
		variables := child(env, "variables")
		for _, name := range keysOf(variables) {
			r.variable(name, text(variables, name), r.by)
		}
	}
}

func taskDefinition(r resource) {
	raw := r.telling("container_definitions")
	if raw == "" {
		return
	}
	list, _ := decode([]byte(raw)).([]any)
	for _, item := range list {
		if c, ok := item.(map[string]any); ok {
			r.image(text(c, "image"), r.by)
			for _, e := range children(c, "environment") {
				r.variable(text(e, "name"), text(e, "value"), r.by)
			}
		}
	}
}
