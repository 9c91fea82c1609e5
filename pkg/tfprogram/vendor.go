package tfprogram

import (
	_ "embed"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
)

// hashicorpKey is the key that HashiCorp signs its releases with, fingerprint
// C874 011F 0AB4 0511 0D02 1055 3436 5D94 72D7 468F, as their own installer
// (github.com/hashicorp/hc-install) carries it.
//
//go:embed hashicorp.asc
var hashicorpKey string

// openTofuKey is the key that the OpenTofu project signs its releases with, fingerprint
// E3E6 E43D 84CB 852E ADB0 051D 0C0A F313 E5FD 9F80, as their own downloader
// (github.com/opentofu/tofudl, package branding) carries it. They also sign with cosign,
// which would need their log of certificates to be reached.
//
//go:embed opentofu.asc
var openTofuKey string

// Vendor is a tool for Terraform modules as its vendor publishes it.
type Vendor struct {
	Tool    string // its name in plans and in app folders
	Title   string // its name in sentences
	Program string // of its executable, also in archives
	Version string // the last release that the engines are tested with
	// Site is where its releases are: SITE/FOLDER/FILE, FOLDER being that of a version.
	Site string

	before, signature, key string // of a version's folder; of its signature's name
}

// The vendors.
var (
	Terraform = Vendor{
		Tool: "terraform", Title: "Terraform", Program: "terraform", Version: Version,
		Site: "https://releases.hashicorp.com/terraform", signature: ".sig", key: hashicorpKey,
	}
	OpenTofu = Vendor{
		Tool: "opentofu", Title: "OpenTofu", Program: "tofu", Version: OpenTofuVersion,
		Site: "https://github.com/opentofu/opentofu/releases/download", before: "v", signature: ".gpgsig", key: openTofuKey,
	}
)

// Of tells whose program an executable is, by what it is called: the two tell their
// versions in one form.
func Of(path string) Vendor {
	if strings.HasPrefix(filepath.Base(path), OpenTofu.Program) {
		return OpenTofu
	}
	return Terraform
}

// Folder is the folder of a version on the vendor's site.
func (v Vendor) Folder(version string) string { return v.before + version }

// ArchiveName is the vendor's name of a version's archive for this machine.
func (v Vendor) ArchiveName(version string) string {
	return fmt.Sprintf("%s_%s_%s_%s.zip", v.Program, version, runtime.GOOS, runtime.GOARCH)
}

// SumsName is the vendor's name of a version's list of checksums.
func (v Vendor) SumsName(version string) string {
	return v.Program + "_" + version + "_SHA256SUMS"
}

// SignatureName is the vendor's name of the signature of that list.
func (v Vendor) SignatureName(version string) string { return v.SumsName(version) + v.signature }

// PlainName is the shorter name that a file of a version may have in a mirror, such as
// SHA256SUMS.
func (v Vendor) PlainName(version, name string) string {
	return strings.TrimPrefix(name, v.Program+"_"+version+"_")
}
