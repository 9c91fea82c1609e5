package providers

import (
	"encoding/base64"
	"encoding/hex"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// Locked is a provider that a lock file names: one version, and the packages that count
// as it.
type Locked struct {
	Source  string // HOST/NAMESPACE/TYPE
	Version string
	// Hashes are those of unpacked packages ("h1:…"), in hex. Those of archives ("zh:…")
	// say nothing of what is unpacked.
	Hashes []string
}

// place is where Terraform looks for the package in a cache.
func (l Locked) place() string {
	return l.Source + "/" + l.Version + "/" + runtime.GOOS + "_" + runtime.GOARCH
}

var (
	lockBlock   = regexp.MustCompile(`(?ms)^provider\s+"([^"]+)"\s*\{(.*?)^\}`)
	lockVersion = regexp.MustCompile(`(?m)^\s*version\s*=\s*"([^"]+)"`)
	lockHash    = regexp.MustCompile(`"h1:([A-Za-z0-9+/=]+)"`)
	sourceForm  = regexp.MustCompile(`^[a-z0-9][a-z0-9.:-]*/[a-zA-Z0-9][a-zA-Z0-9_-]*/[a-zA-Z0-9][a-zA-Z0-9_-]*$`)
	versionForm = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+[a-zA-Z0-9.+-]*$`)
)

// ReadLock reads a lock file as Terraform writes it (.terraform.lock.hcl). What is not in
// that form is left out: it only costs a download. Names that lead elsewhere as a path
// are left out too.
func ReadLock(text []byte) []Locked {
	var all []Locked
	for _, block := range lockBlock.FindAllSubmatch(text, -1) {
		version := lockVersion.FindSubmatch(block[2])
		if version == nil || !sourceForm.Match(block[1]) || !versionForm.Match(version[1]) || strings.Contains(string(block[1]), "..") {
			continue
		}
		l := Locked{Source: string(block[1]), Version: string(version[1])}
		for _, hash := range lockHash.FindAllSubmatch(block[2], -1) {
			if raw, err := base64.StdEncoding.DecodeString(string(hash[1])); err == nil && len(raw) == 32 {
				l.Hashes = append(l.Hashes, hex.EncodeToString(raw))
			}
		}
		slices.Sort(l.Hashes)
		if len(l.Hashes) > 0 {
			all = append(all, l)
		}
	}
	slices.SortFunc(all, func(a, b Locked) int { return strings.Compare(a.place(), b.place()) })
	return all
}
