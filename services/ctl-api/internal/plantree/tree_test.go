package plantree_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/plantree"
)

func TestOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		addresses []string
		want      string
	}{
		{"no module", []string{"terraform_data.greeting"}, "terraform_data greeting\n"},
		{"modules with dots, brackets and quotes in their keys", []string{`module.net["a.b]\""].module.inner.aws_vpc.main[0]`, `module.net["a.b]\""].data.aws_ami.x`, `module.net["c"].aws_vpc.main`},
			"> net[\"a.b]\\\"\"]\n  > inner\n    aws_vpc main[0]\n  data.aws_ami x\n> net[\"c\"]\n  aws_vpc main\n"},
		{"a key like the address of another engine", []string{`null_resource.x["a b/c::d"]`}, "null_resource x[\"a b/c::d\"]\n"},
		{"objects of a cluster", []string{"Deployment.apps shop/web", "Service shop/web", "Namespace shop", "Release shop/web"},
			"> shop\n  Deployment.apps web\n  Service web\n  Release web\nNamespace shop\n"},
		{"Pulumi, with a parent", []string{"my:index:Net$aws:ec2/vpc:Vpc::main", "aws:s3/bucket:Bucket::logs"},
			"> my:index:Net\n  aws:ec2/vpc:Vpc main\naws:s3/bucket:Bucket logs\n"},
		{"steps of an action, with a space and a dot", []string{"nightly/take a backup", "nightly/v1.2"}, "> nightly\n   take a backup\n   v1.2\n"},
		{"of no known form", []string{"", "thing", "module.x", "."}, " \n thing\nmodule x\n \n"},
	} {
		var objects []jobspec.ObjectChange
		for _, a := range tt.addresses {
			objects = append(objects, jobspec.ObjectChange{Address: a, Action: "create"})
		}
		var b strings.Builder
		draw(&b, plantree.Of(objects), "")
		if diff := cmp.Diff(tt.want, b.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func draw(b *strings.Builder, nodes []*plantree.Node, indent string) {
	for _, n := range nodes {
		if n.Kind == plantree.Module {
			fmt.Fprintf(b, "%s> %s\n", indent, n.Name)
		} else {
			fmt.Fprintf(b, "%s%s %s\n", indent, n.Type, n.Name)
		}
		draw(b, n.Children, indent+"  ")
	}
}

func TestAttributes(t *testing.T) {
	t.Parallel()
	got := plantree.Of([]jobspec.ObjectChange{{Address: "a.b", Action: "update", Reason: "tainted", Fields: []jobspec.FieldChange{
		{Path: "input", Before: `"a"`, After: `"b"`}, {Path: "id", Before: `"x"`, After: "(known after apply)"},
		{Path: "password", Before: "(sensitive)", After: `"shown by mistake"`}, {Path: "new", After: "1"},
		{Path: "key", Before: "(sensitive, digest 0123456789ab)", After: "(sensitive, digest 00112233aabb)"},
		{Path: "token", After: "(sensitive, digest 0123456789ab)"}, {Path: "cert", Before: "(sensitive)", After: "(known after apply)"},
	}}})
	want := []*plantree.Node{{Kind: "resource", Type: "a", Name: "b", Address: "a.b", Action: "update", Reason: "tainted", Children: []*plantree.Node{
		{Kind: "attribute", Name: "input", Before: `"a"`, After: `"b"`},
		{Kind: "attribute", Name: "id", Before: `"x"`, KnownAfterApply: true},
		{Kind: "attribute", Name: "password", Hidden: true, Before: "(sensitive)", After: "(sensitive)"},
		{Kind: "attribute", Name: "new", After: "1"},
		{Kind: "attribute", Name: "key", Hidden: true, Before: "(sensitive, digest 0123456789ab)", After: "(sensitive, digest 00112233aabb)"},
		{Kind: "attribute", Name: "token", Hidden: true, After: "(sensitive, digest 0123456789ab)"},
		{Kind: "attribute", Name: "cert", Hidden: true, Before: "(sensitive)", KnownAfterApply: true},
	}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
