package reversal_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/reversal"
)

const (
	free    = jobspec.Reversible
	unknown = jobspec.ReverseUnknown
	loses   = jobspec.ReverseLoses
	never   = jobspec.Irreversible
)

func change(action, address string, fields ...string) jobspec.ObjectChange {
	o := jobspec.ObjectChange{Action: action, Address: address}
	for _, f := range fields {
		o.Fields = append(o.Fields, jobspec.FieldChange{Path: f, Before: "1", After: "2"})
	}
	return o
}

func TestOfEachObject(t *testing.T) {
	t.Parallel()
	const tf, pulumi, helm, manifest = jobspec.KindTerraformModule, jobspec.KindPulumi, jobspec.KindHelmChart, jobspec.KindKubernetesManifest
	for _, tt := range []struct {
		kind jobspec.Kind
		o    jobspec.ObjectChange
		want jobspec.ReversalClass
	}{
		{tf, change("create", "aws_security_group.web"), free},
		{tf, change("create", "aws_db_instance.main"), loses},
		{tf, change("create", `module.db["a.b"].module.inner[0].aws_rds_cluster.main[0]`), loses},
		{tf, change("create", "aws_kms_key.data"), loses},
		{tf, change("create", "terraform_data.migrate"), unknown},
		{tf, change("update", "aws_db_instance.main", "tags.team"), free},
		{tf, change("update", "aws_db_instance.main", "tags.team", "engine_version"), never},
		{tf, change("update", "aws_db_instance.main", "allocated_storage"), never},
		{tf, change("update", "google_sql_database_instance.main", "settings[0].disk_size"), never},
		{tf, change("update", "aws_eks_cluster.main", "version"), never},
		{tf, change("update", "aws_lambda_layer.x", "version"), free},
		{tf, change("replace", "aws_db_instance.main"), never},
		{tf, change("delete", "aws_s3_bucket.data"), never},
		{tf, change("delete", `aws_s3_bucket.data["a b"]`), never},
		{tf, change("delete", "aws_s3_bucket.data (deposed 12ab)"), never},
		{tf, change("replace", "random_password.db"), never},
		{tf, change("replace", "aws_ecs_task_definition.web"), free},
		{tf, change("replace", "terraform_data.work"), unknown},
		{tf, change("delete", "acme_thing.x"), unknown},
		{tf, change("update", "acme_thing.x", "size"), free},
		{tf, change("forget", "aws_s3_bucket.data"), unknown},
		{tf, change("move", "aws_s3_bucket.data"), free},
		{tf, change("read", "data.aws_s3_bucket.data"), free},
		{pulumi, change("create", "aws:rds/instance:Instance::db"), loses},
		{pulumi, change("replace", "aws:s3/bucket:Bucket::data"), never},
		{pulumi, change("update", "aws:rds/instance:Instance::db", "engineVersion"), never},
		{pulumi, change("update", "aws:rds/instance:Instance::db", "tags"), free},
		{pulumi, change("delete", "acme:index:Thing::x"), unknown},
		{pulumi, change("create", "command:local:Command::seed"), unknown},
		{helm, change("update", "Deployment.apps shop/web", "spec.template.spec.containers[0].image"), free},
		{helm, change("upgrade", "Release shop/web", "chart.version"), free},
		{helm, change("create", "PersistentVolumeClaim shop/data"), loses},
		{helm, change("delete", "PersistentVolumeClaim shop/data"), never},
		{helm, change("update", "PersistentVolumeClaim shop/data", "spec.resources.requests.storage"), never},
		{helm, change("keep", "PersistentVolumeClaim shop/data"), free},
		{helm, change("update", "StatefulSet.apps shop/db", "spec.template.spec.containers[name=db].image"), unknown},
		{helm, change("update", "StatefulSet.apps shop/db", "spec.replicas"), free},
		{helm, change("replace", "StatefulSet.apps shop/db"), unknown},
		{helm, change("run", "Job migrate"), unknown},
		{helm, change("create", "CustomResourceDefinition.apiextensions.k8s.io things.acme.example"), loses},
		{helm, change("update", "CustomResourceDefinition.apiextensions.k8s.io things.acme.example", "spec.versions"), unknown},
		{helm, change("delete", "CustomResourceDefinition.apiextensions.k8s.io things.acme.example"), never},
		{manifest, change("create", "Job.batch shop/seed"), unknown},
		{manifest, change("delete", "Job.batch shop/seed"), free},
		{manifest, change("delete", "Namespace shop"), never},
		{manifest, change("delete", "ConfigMap shop/settings"), free},
		{manifest, change("replace", "Ingress.networking.k8s.io shop/web"), free},
		{manifest, change("delete", "Cluster.postgresql.cnpg.io shop/db"), unknown},
		{manifest, change("delete", "VolumeSnapshot.snapshot.storage.k8s.io shop/db"), unknown},
		{manifest, change("update", "Cluster.postgresql.cnpg.io shop/db", "spec.instances"), free},
	} {
		got := reversal.Of(tt.kind, jobspec.PlanSummary{Objects: []jobspec.ObjectChange{tt.o}}, "")
		if got.Class != tt.want {
			t.Errorf("%s: %s %s is %s, want %s", tt.kind, tt.o.Action, tt.o.Address, got.Class, tt.want)
		}
		if (len(got.Why) == 0) != (got.Class == free) || len(got.Why) > 0 && !strings.Contains(got.Why[0], tt.o.Address) {
			t.Errorf("%s: %s %s is %s because %q", tt.kind, tt.o.Action, tt.o.Address, got.Class, got.Why)
		}
	}
}

func TestOfAPlan(t *testing.T) {
	t.Parallel()
	bucket, group := change("create", "aws_s3_bucket.a"), change("create", "aws_security_group.a")
	for _, tt := range []struct {
		name string
		kind jobspec.Kind
		plan jobspec.PlanSummary
		said jobspec.ReversalClass
		want jobspec.ReversalClass
		why  int
	}{
		{"nothing", jobspec.KindTerraformModule, jobspec.PlanSummary{NoChange: true}, never, free, 0},
		{"the worst counts", jobspec.KindTerraformModule, jobspec.PlanSummary{Objects: []jobspec.ObjectChange{group, bucket, change("delete", "x_y.z")}}, "", loses, 2},
		{"the app is stricter", jobspec.KindTerraformModule, jobspec.PlanSummary{Objects: []jobspec.ObjectChange{group}}, never, never, 1},
		{"the app is milder", jobspec.KindTerraformModule, jobspec.PlanSummary{Objects: []jobspec.ObjectChange{bucket}}, free, loses, 1},
		{"the app says it of what is unknown", jobspec.KindHelmChart, jobspec.PlanSummary{Objects: []jobspec.ObjectChange{change("run", "Job migrate")}}, free, unknown, 1},
		{"a word of another version", jobspec.KindTerraformModule, jobspec.PlanSummary{Objects: []jobspec.ObjectChange{group}}, "fine", unknown, 1},
		{"a plugin", jobspec.KindPlugin, jobspec.PlanSummary{Objects: []jobspec.ObjectChange{group}}, free, unknown, 1},
		{"a rehearsal", jobspec.KindRehearsal, jobspec.PlanSummary{Rehearsed: &jobspec.Rehearsed{}}, "", unknown, 1},
		{"an image", jobspec.KindContainerImage, jobspec.PlanSummary{}, "", free, 0},
	} {
		got := reversal.Of(tt.kind, tt.plan, tt.said)
		if got.Class != tt.want || len(got.Why) != tt.why {
			t.Errorf("%s: %+v, want %s and %d reasons", tt.name, got, tt.want, tt.why)
		}
	}
	var many jobspec.PlanSummary
	for range 100 {
		many.Objects = append(many.Objects, bucket)
	}
	many.Objects = append(many.Objects, change("delete", "aws_s3_bucket.last"))
	if got := reversal.Of(jobspec.KindTerraformModule, many, ""); got.Class != never || len(got.Why) != 8 || !strings.Contains(got.Why[0], "last") {
		t.Errorf("of many: %+v", got)
	}
}

func TestReverse(t *testing.T) {
	t.Parallel()
	forward := []jobspec.ObjectChange{
		change("create", "ConfigMap a/new"), change("update", "Deployment.apps a/web", "spec.replicas"), change("delete", "Service a/old"), change("keep", "Secret a/kept"), change("run", "Job hook"),
	}
	want := []jobspec.ObjectChange{
		{Action: "create", Address: "Service a/old"},
		{Action: "update", Address: "Deployment.apps a/web", Fields: []jobspec.FieldChange{{Path: "spec.replicas", Before: "2", After: "1"}}},
		{Action: "delete", Address: "ConfigMap a/new"},
	}
	if diff := cmp.Diff(want, reversal.Reverse(forward)); diff != "" {
		t.Errorf("backwards (-want +got):\n%s", diff)
	}
}
