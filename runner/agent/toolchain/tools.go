package toolchain

import (
	"context"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/tfprogram"
)

// Tools finds programs of both tools. It is safe for concurrent use.
//
// A module that names no tool gets the executable that the operator named with
// --terraform, whichever of the two that is, and else Terraform. One that names a tool
// gets that tool and never the other.
type Tools struct {
	either    *Box
	terraform *Box
	tofu      *Box
}

// OpenTofu is where programs of OpenTofu are from, where that differs from Terraform's.
type OpenTofu struct {
	// Named and Mirror are as in Config.
	Named, Mirror string
	// Site and Key stand in for the vendor's in tests.
	Site, Key string
}

// NewTools returns both. terraform has what holds for both, too: the rules and the
// directories. Its executable may be an OpenTofu, which is then one of those.
func NewTools(terraform Config, openTofu OpenTofu, digests Digests) *Tools {
	tofu := terraform
	tofu.Vendor, tofu.Named, tofu.Mirror = tfprogram.OpenTofu, openTofu.Named, openTofu.Mirror
	tofu.Site, tofu.Key = openTofu.Site, openTofu.Key
	t := &Tools{either: New(terraform, digests)}
	t.terraform = t.either
	if tfprogram.Of(terraform.Named).Tool == jobspec.ToolOpenTofu {
		if tofu.Named == "" {
			tofu.Named = terraform.Named
		}
		terraform.Named = ""
		t.terraform = New(terraform, digests)
	}
	t.tofu = New(tofu, digests)
	return t
}

// For returns the program for a module that asks for a tool, or "" for either, and for a
// version as [Box.For] has it. Its errors are those of [Box.For].
func (t *Tools) For(ctx context.Context, tool, version string) (path string, err error) {
	switch tool {
	case jobspec.ToolOpenTofu:
		return t.tofu.For(ctx, version)
	case jobspec.ToolTerraform:
		return t.terraform.For(ctx, version)
	}
	return t.either.For(ctx, version)
}

// Pinned returns the program that a plan names, as [Box.Pinned] does.
func (t *Tools) Pinned(ctx context.Context, tool jobspec.Tool) (path string, err error) {
	if tool.Name == jobspec.ToolOpenTofu {
		return t.tofu.Pinned(ctx, tool.Version, tool.Digest)
	}
	return t.terraform.Pinned(ctx, tool.Version, tool.Digest)
}

// VersionOf is the version that an executable tells, "" when it tells none.
func (t *Tools) VersionOf(ctx context.Context, path string) string {
	if t == nil {
		return ""
	}
	return t.either.VersionOf(ctx, path) // they tell it in one form
}
