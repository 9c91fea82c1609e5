package module_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/runner/engine/module"
)

func TestProviders(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, file, source string
		want               map[string]module.Provider
	}{
		{"none but what is built in", "main.tf", `resource "terraform_data" "a" {}`, nil},
		{"by the type of a resource", "main.tf", `resource "aws_vpc" "a" {}`, map[string]module.Provider{"aws": {Source: "hashicorp/aws"}}},
		{"by the type of a data source", "main.tf", `data "aws_vpc" "a" {}`, map[string]module.Provider{"aws": {Source: "hashicorp/aws"}}},
		{"named by a resource", "main.tf", `
terraform {
  required_providers {
    mine = { source = "registry.terraform.io/acme/cloud", version = "~> 1" }
  }
}
resource "cloud_thing" "a" { provider = mine.west }`, map[string]module.Provider{"mine": {Source: "acme/cloud", Version: "~> 1"}}},
		{"with further configurations", "main.tf", `
terraform {
  required_providers {
    aws = {
      source = "hashicorp/aws"
      configuration_aliases = [aws.dns]
    }
  }
}
provider "aws" {}
provider "aws" { alias = "east" }`, map[string]module.Provider{"aws": {Source: "hashicorp/aws", Aliases: []string{"dns", "east"}}}},
		{"an old form of version", "main.tf", "terraform {\nrequired_providers { random = \"~> 3\" }\n}", map[string]module.Provider{"random": {Source: "hashicorp/random"}}},
		{"as JSON", "main.tf.json", `{"terraform": {"required_providers": {"az": {"source": "hashicorp/azurerm"}}}, "resource": {"google_x": {"a": {}}}}`,
			map[string]module.Provider{"az": {Source: "hashicorp/azurerm"}, "google": {Source: "hashicorp/google"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, tt.file), []byte(tt.source), 0o600); err != nil {
				t.Fatal(err)
			}
			m, err := module.Read(dir, false)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, m.Providers); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
