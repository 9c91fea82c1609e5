package jobspec

// RunnerUpdate is the version of itself that a runner is to run. It names bytes and
// trusts none: the runner verifies what it finds there with the release key that its
// customer pinned.
type RunnerUpdate struct {
	Version string `json:"version"` // 1.4.0
	// ControlPlane is the version of the control plane, which a runner has to fit.
	ControlPlane string `json:"control_plane"`
	// Packages are what was made available of the version, one for each platform.
	Packages []RunnerPackage `json:"packages"`
}

// RunnerPackage holds the signed list of a release and the runner's archive for one
// platform.
type RunnerPackage struct {
	Platform string `json:"platform"` // linux_amd64
	Artifact
}

// For is the package of a platform.
func (u RunnerUpdate) For(platform string) (p RunnerPackage, found bool) {
	for _, p := range u.Packages {
		if p.Platform == platform {
			return p, true
		}
	}
	return RunnerPackage{}, false
}

// ChangeOfRunner is the change kind of a runner update, and the component of its effect.
const ChangeOfRunner = "runner_update"

func (u *RunnerUpdate) validate(p *problems) {
	if u.Version == "" {
		p.add("a runner update names no version")
	}
	for _, pack := range u.Packages {
		if pack.Platform == "" || pack.Repository == "" || !artifactDigest.MatchString(pack.Digest) {
			p.add("a package of runner version %s names no platform, repository or valid digest: %q", u.Version, pack.Digest)
		}
	}
}
