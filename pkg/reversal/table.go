package reversal

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// The actions of a plan that a class depends on.
const (
	create  = "create"
	update  = "update"
	replace = "replace"
	remove  = "delete"
)

// holdsData are the types of Terraform resources that hold data of their own: what
// destroys one destroys its data, and no plan brings that back.
var holdsData = set(
	// AWS
	"aws_db_instance", "aws_rds_cluster", "aws_rds_cluster_instance", "aws_rds_global_cluster", "aws_docdb_cluster", "aws_neptune_cluster", "aws_redshift_cluster",
	"aws_dynamodb_table", "aws_dynamodb_global_table", "aws_elasticache_cluster", "aws_elasticache_replication_group", "aws_memorydb_cluster",
	"aws_opensearch_domain", "aws_elasticsearch_domain", "aws_s3_bucket", "aws_s3_object", "aws_ebs_volume", "aws_efs_file_system", "aws_fsx_lustre_file_system",
	"aws_fsx_windows_file_system", "aws_fsx_ontap_file_system", "aws_instance", "aws_kinesis_stream", "aws_msk_cluster", "aws_mq_broker", "aws_sqs_queue", "aws_ecr_repository",
	"aws_cognito_user_pool", "aws_timestreamwrite_table", "aws_keyspaces_table", "aws_backup_vault", "aws_cloudwatch_log_group", "aws_eks_cluster",
	// Google Cloud
	"google_sql_database_instance", "google_sql_database", "google_storage_bucket", "google_storage_bucket_object", "google_compute_disk", "google_compute_instance",
	"google_bigquery_dataset", "google_bigquery_table", "google_bigtable_instance", "google_spanner_instance", "google_spanner_database", "google_redis_instance",
	"google_filestore_instance", "google_firestore_database", "google_pubsub_topic", "google_pubsub_subscription", "google_alloydb_cluster", "google_artifact_registry_repository",
	"google_container_cluster",
	// Azure
	"azurerm_postgresql_server", "azurerm_postgresql_flexible_server", "azurerm_mysql_server", "azurerm_mysql_flexible_server", "azurerm_mssql_server", "azurerm_mssql_database",
	"azurerm_cosmosdb_account", "azurerm_cosmosdb_sql_database", "azurerm_storage_account", "azurerm_storage_container", "azurerm_storage_blob", "azurerm_storage_share",
	"azurerm_managed_disk", "azurerm_redis_cache", "azurerm_servicebus_queue", "azurerm_eventhub", "azurerm_container_registry", "azurerm_linux_virtual_machine",
	"azurerm_windows_virtual_machine", "azurerm_kubernetes_cluster", "azurerm_resource_group",
	// others
	"postgresql_database", "mysql_database", "mongodbatlas_cluster", "mongodbatlas_advanced_cluster", "digitalocean_database_cluster", "digitalocean_volume",
	"digitalocean_spaces_bucket", "hcloud_volume", "kubernetes_persistent_volume", "kubernetes_persistent_volume_v1", "kubernetes_persistent_volume_claim",
	"kubernetes_persistent_volume_claim_v1", "kubernetes_namespace", "kubernetes_namespace_v1", "helm_release",
)

// isKey are the types whose loss makes unreadable what was encrypted with them, or
// whose value was made up once: another one is made in their place.
var isKey = set(
	"aws_kms_key", "google_kms_crypto_key", "google_kms_key_ring", "azurerm_key_vault", "azurerm_key_vault_key", "tls_private_key", "random_password", "random_string",
	"random_id", "random_bytes", "random_uuid", "random_pet", "random_integer", "aws_iam_access_key", "google_service_account_key",
)

// runs are the types that exist to run something.
var runs = set("null_resource", "terraform_data", "aws_lambda_invocation", "kubernetes_job", "kubernetes_job_v1", "google_cloud_run_v2_job", "helm_release")

// holdsNothing are the types that are made again as they were, from the config alone.
var holdsNothing = set(
	"local_file", "local_sensitive_file", "time_sleep", "aws_security_group", "aws_security_group_rule", "aws_vpc_security_group_ingress_rule", "aws_vpc_security_group_egress_rule",
	"aws_iam_role", "aws_iam_policy", "aws_iam_role_policy", "aws_iam_role_policy_attachment", "aws_iam_instance_profile", "aws_lambda_function", "aws_lambda_permission",
	"aws_cloudwatch_metric_alarm", "aws_cloudwatch_event_rule", "aws_cloudwatch_event_target", "aws_ecs_service", "aws_ecs_task_definition", "aws_launch_template",
	"aws_lb_listener", "aws_lb_listener_rule", "aws_lb_target_group", "aws_lb_target_group_attachment", "aws_route", "aws_route_table", "aws_route_table_association",
	"aws_route53_record", "aws_db_parameter_group", "google_project_iam_member", "google_service_account_iam_member", "google_compute_firewall", "google_dns_record_set",
	"google_cloud_run_service", "google_cloud_run_v2_service", "azurerm_role_assignment", "azurerm_network_security_rule", "azurerm_dns_a_record",
	"kubernetes_deployment", "kubernetes_deployment_v1", "kubernetes_service", "kubernetes_service_v1", "kubernetes_config_map", "kubernetes_config_map_v1", "kubernetes_role",
	"kubernetes_role_binding", "kubernetes_service_account", "kubernetes_service_account_v1", "kubernetes_ingress_v1",
)

// oneWay are fields that a service raises and does not lower: the version of what
// reads the data, and the size of a disk.
var oneWay = regexp.MustCompile(`(?:^|\.)(engine_version|kubernetes_version|database_version|server_version|min_master_version|mysql_version|postgres_version|allocated_storage|disk_size|disk_size_gb|size_gb|storage_mb|volume_size)$`)

// oneWayOf are fields that are one way in one type only.
var oneWayOf = map[string]string{"aws_eks_cluster": "version", "azurerm_postgresql_flexible_server": "version", "azurerm_mysql_flexible_server": "version", "aws_ebs_volume": "size", "google_compute_disk": "size"}

func set(names ...string) map[string]bool {
	all := map[string]bool{}
	for _, n := range names {
		all[n] = true
	}
	return all
}

// index is what stands behind an instance of a resource or module.
var index = regexp.MustCompile(`\[("[^"]*"|\d+)\]`)

// terraformType is the type of an address such as module.db["a.b"].aws_db_instance.main[0].
func terraformType(address string) string {
	plain, _, _ := strings.Cut(index.ReplaceAllString(address, ""), " ") // " (deposed …)"
	parts := strings.Split(plain, ".")
	for len(parts) > 2 && parts[0] == "module" {
		parts = parts[2:]
	}
	return parts[0]
}

func ofTerraform(o jobspec.ObjectChange) finding {
	if o.Action == "read" || strings.HasPrefix(o.Address, "data.") {
		return finding{}
	}
	t := terraformType(o.Address)
	switch {
	case o.Action == remove || o.Action == replace:
		return taken(o, t)
	case o.Action == create && runs[t], o.Action == update && t == "helm_release":
		return finding{jobspec.ReverseUnknown, fmt.Sprintf("%s: what it runs may leave something behind", o.Address)}
	case o.Action == create && holdsData[t]:
		return finding{jobspec.ReverseLoses, fmt.Sprintf("%s is new: going back deletes it, with what was written to it", o.Address)}
	case o.Action == create && isKey[t]:
		return finding{jobspec.ReverseLoses, fmt.Sprintf("%s is new: going back deletes it, and what was encrypted with it stays unreadable", o.Address)}
	case o.Action == "forget" || o.Action == "import":
		return finding{jobspec.ReverseUnknown, fmt.Sprintf("%s: going back finds it managed by somebody else (%s)", o.Address, o.Action)}
	case o.Action == update:
		return raised(o, func(path string) bool { return oneWay.MatchString(path) || oneWayOf[t] == path })
	}
	return finding{jobspec.Reversible, ""}
}

// taken is what it costs that a resource of Terraform is deleted or replaced.
func taken(o jobspec.ObjectChange, t string) finding {
	how := map[string]string{remove: "deletes", replace: "replaces"}[o.Action]
	switch {
	case holdsData[t]:
		return finding{jobspec.Irreversible, fmt.Sprintf("it %s %s: going back does not bring its data back", how, o.Address)}
	case isKey[t]:
		return finding{jobspec.Irreversible, fmt.Sprintf("it %s %s: going back makes another one, not the one of before", how, o.Address)}
	case runs[t]:
		return finding{jobspec.ReverseUnknown, fmt.Sprintf("it %s %s: what that runs may leave something behind", how, o.Address)}
	case holdsNothing[t]:
		return finding{jobspec.Reversible, ""}
	}
	return finding{jobspec.ReverseUnknown, fmt.Sprintf("it %s %s, and whether a %s holds data is not known", how, o.Address, t)}
}

// raised is what an update in place costs.
func raised(o jobspec.ObjectChange, isOneWay func(path string) bool) finding {
	for _, f := range o.Fields {
		if isOneWay(f.Path) {
			return finding{jobspec.Irreversible, fmt.Sprintf("%s: %s changes, which mostly goes one way only", o.Address, f.Path)}
		}
	}
	return finding{jobspec.Reversible, ""}
}

// pulumiData are words in the types of Pulumi resources that hold data.
var pulumiData = regexp.MustCompile(`(?i):(rds|docdb|neptune|redshift|dynamodb|elasticache|memorydb|s3|ebs|efs|fsx|sql|storage|bigquery|bigtable|spanner|redis|filestore|firestore|cosmosdb|documentdb|dbforpostgresql|kms|ecr)/|PersistentVolume|core/v1:Namespace|Database|Bucket|Volume|RandomPassword|RandomString|PrivateKey`)

func ofPulumi(o jobspec.ObjectChange) finding {
	data := pulumiData.MatchString(o.Address)
	switch {
	case (o.Action == remove || o.Action == replace) && data:
		return finding{jobspec.Irreversible, fmt.Sprintf("it takes %s away: going back does not bring back what it held", o.Address)}
	case o.Action == remove || o.Action == replace:
		return finding{jobspec.ReverseUnknown, fmt.Sprintf("it takes %s away, and whether that holds data is not known", o.Address)}
	case o.Action == create && data:
		return finding{jobspec.ReverseLoses, fmt.Sprintf("%s is new: going back deletes it, with what was written to it", o.Address)}
	case o.Action == create && strings.Contains(o.Address, "command:"):
		return finding{jobspec.ReverseUnknown, fmt.Sprintf("%s: what it runs may leave something behind", o.Address)}
	case o.Action == update:
		return raised(o, func(path string) bool { return oneWay.MatchString(snake(path)) })
	}
	return finding{jobspec.Reversible, ""}
}

var hump = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// snake is a name of Pulumi as Terraform writes it: engineVersion, engine_version.
func snake(path string) string {
	return strings.ToLower(hump.ReplaceAllString(path, "${1}_${2}"))
}

// ofKubernetes is by the address "Kind.group namespace/name".
func ofKubernetes(o jobspec.ObjectChange) finding {
	kind, _, _ := strings.Cut(o.Address, " ")
	kind, group, _ := strings.Cut(kind, ".")
	away := o.Action == remove || o.Action == replace
	switch {
	case o.Action == "run":
		return finding{jobspec.ReverseUnknown, fmt.Sprintf("hook %s runs, and what it changes is not known", o.Address)}
	case kind == "Job" && group == "batch" && (o.Action == create || o.Action == replace):
		return finding{jobspec.ReverseUnknown, fmt.Sprintf("%s runs, and what it changes is not known", o.Address)}
	case kind == "CustomResourceDefinition":
		return ofCRD(o, away)
	case kind == "PersistentVolumeClaim" || kind == "PersistentVolume" || kind == "Namespace" && group == "":
		return ofVolume(o, away)
	case kind == "StatefulSet" && group == "apps":
		return ofStatefulSet(o, away)
	case away && !builtIn(group):
		return finding{jobspec.ReverseUnknown, fmt.Sprintf("it takes %s away, and whether that holds data is not known", o.Address)}
	}
	return finding{jobspec.Reversible, ""}
}

func ofCRD(o jobspec.ObjectChange, away bool) finding {
	switch {
	case away:
		return finding{jobspec.Irreversible, fmt.Sprintf("it takes %s away, and every object of it: going back does not bring these back", o.Address)}
	case o.Action == create:
		return finding{jobspec.ReverseLoses, fmt.Sprintf("%s is new: going back deletes it, and every object of it", o.Address)}
	}
	return finding{jobspec.ReverseUnknown, fmt.Sprintf("%s changes: objects may be stored so that the version before cannot read them", o.Address)}
}

func ofVolume(o jobspec.ObjectChange, away bool) finding {
	switch {
	case away:
		return finding{jobspec.Irreversible, fmt.Sprintf("it takes %s away: going back does not bring its data back", o.Address)}
	case o.Action == create:
		return finding{jobspec.ReverseLoses, fmt.Sprintf("%s is new: going back deletes it, with what was written to it", o.Address)}
	}
	return raised(o, func(path string) bool { return strings.HasSuffix(path, "resources.requests.storage") })
}

func ofStatefulSet(o jobspec.ObjectChange, away bool) finding {
	if away {
		return finding{jobspec.ReverseUnknown, fmt.Sprintf("it takes %s away; whether its volumes stay is not known", o.Address)}
	}
	for _, f := range o.Fields {
		if o.Action == update && strings.HasSuffix(f.Path, "image") {
			return finding{jobspec.ReverseUnknown, fmt.Sprintf("%s gets another image: the one of before may not read what it writes", o.Address)}
		}
	}
	return finding{jobspec.Reversible, ""}
}

// builtIn tells the groups of Kubernetes itself, whose other kinds hold no data.
func builtIn(group string) bool {
	switch group {
	case "", "apps", "batch", "autoscaling", "policy":
		return true
	}
	return strings.HasSuffix(group, ".k8s.io") && !strings.HasPrefix(group, "snapshot.")
}
