package drill

import (
	"context"
	"slices"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/offer"
)

const (
	// vendorApp is the app whose releases the vendor's key signs.
	vendorApp = "app_of_the_drill"
	// firstRelease is the number of the release that a scene begins with.
	firstRelease = 5
)

func asSigned(*offer.Statement) {}

// sign adds the vendor's statement about a release to it, after an edit.
func (s *scene) sign(r *jobspec.Release, by signer, edit func(*offer.Statement)) error {
	manifest, err := r.Manifest()
	if err != nil {
		return err
	}
	digest, err := manifest.Digest()
	if err != nil {
		return err
	}
	at := time.Now().UTC().Truncate(time.Second)
	statement := offer.Statement{
		OrgID: s.plane.orgID, AppID: vendorApp, App: "drill", ReleaseID: r.ID, Number: r.Number, Manifest: digest, Issued: at, Expires: at.Add(time.Hour),
	}
	edit(&statement)
	env, err := offer.Sign(consent.Ed25519Signer(by.key), statement)
	if err != nil {
		return err
	}
	r.Signed = append(r.Signed, env)
	return nil
}

// revoke is the release with the vendor's revocation of it.
func (s *scene) revoke(r jobspec.Release) (jobspec.Release, error) {
	env, err := offer.Revoke(consent.Ed25519Signer(s.vendor.key), offer.Revocation{
		OrgID: s.plane.orgID, AppID: vendorApp, App: "drill", ReleaseID: r.ID, Number: r.Number, Reason: "it was taken back", Issued: time.Now().UTC().Truncate(time.Second),
	})
	r.Revoked = []capsule.Envelope{env}
	return r, err
}

// releaseGroup: a runner that takes signed releases only, and releases that are not.
func releaseGroup() group {
	good := check("released")
	offered := func(name, try string, number int, prepare func(s *scene, r *jobspec.Release, evil jobspec.Script) error) Attack {
		return Attack{Name: name, Adversary: Plane, Try: try, World: inFile(name), run: func(ctx context.Context, s *scene) (finding, error) {
			evil := check(name)
			release := jobspec.Release{ID: id.New(id.Release), Number: number, Scripts: append(slices.Clone(s.accepted), evil)}
			if err := prepare(s, &release, evil); err != nil {
				return finding{}, err
			}
			return ran(s, name, func() (jobspec.Result, error) { return s.takes(ctx, release, evil) })
		}}
	}
	bySigner := func(by func(*scene) signer, edit func(*offer.Statement)) func(*scene, *jobspec.Release, jobspec.Script) error {
		return func(s *scene, r *jobspec.Release, _ jobspec.Script) error { return s.sign(r, by(s), edit) }
	}
	vendor := func(s *scene) signer { return s.vendor }
	return group{
		name: "releases", shape: func() shape { return shape{signed: true, scripts: []jobspec.Script{good}} },
		allowed: offered("release", "a release that the vendor signed", firstRelease+1, bySigner(vendor, asSigned)),
		attacks: []Attack{
			offered("release-unsigned", "a release that nobody signed", 10, func(*scene, *jobspec.Release, jobspec.Script) error { return nil }),
			offered("release-by-a-stranger", "a release that another key signed", 10, bySigner(func(*scene) signer { return stranger() }, asSigned)),
			offered("release-mixed", "a signed release with a script swapped in", 10, func(s *scene, r *jobspec.Release, evil jobspec.Script) error {
				r.Scripts = append(slices.Clone(s.accepted), check("harmless"))
				if err := s.sign(r, s.vendor, asSigned); err != nil {
					return err
				}
				r.Scripts = append(slices.Clone(s.accepted), evil)
				return nil
			}),
			offered("release-of-another-app", "a release that the vendor signed for another app", 10, bySigner(vendor, func(s *offer.Statement) { s.AppID = "app_of_another" })),
			offered("release-that-expired", "a release that was signed long ago and never accepted", 10, bySigner(vendor, func(s *offer.Statement) {
				s.Issued, s.Expires = s.Issued.AddDate(-1, 0, 0), s.Issued.AddDate(0, -6, 0)
			})),
			offered("release-of-before", "an older signed release that this install never accepted", firstRelease-1, bySigner(vendor, asSigned)),
			offered("release-under-the-same-number", "another release under the number of the accepted one", firstRelease, bySigner(vendor, asSigned)),
			{
				Name: "release-revoked", Adversary: Plane, Try: "a release that the vendor revoked, with the revocation left out the second time", World: inFile("release-revoked"),
				run: func(ctx context.Context, s *scene) (finding, error) {
					evil := check("release-revoked")
					release := jobspec.Release{ID: id.New(id.Release), Number: 20, Scripts: append(slices.Clone(s.accepted), evil)}
					if err := s.sign(&release, s.vendor, asSigned); err != nil {
						return finding{}, err
					}
					revoked, err := s.revoke(release)
					if err != nil {
						return finding{}, err
					}
					if _, err := s.takes(ctx, revoked, evil); err != nil {
						return finding{}, err
					}
					return ran(s, "release-revoked", func() (jobspec.Result, error) { return s.takes(ctx, release, evil) })
				},
			},
			{
				Name: "release-less", Adversary: Employee, Try: "a script that is in no release at all", World: inFile("release-less"),
				run: func(ctx context.Context, s *scene) (finding, error) {
					spec := adHoc("release-less")
					job, err := s.give(spec)
					if err != nil {
						return finding{}, err
					}
					planned, err := s.result(ctx, job)
					if err != nil {
						return finding{}, err
					}
					plan := s.planOf(job)
					if plan.Pinned == "" {
						n, err := s.lines("release-less")
						return finding{effect: n > 0, rule: ruleOf(planned)}, err
					}
					apply, granted := applyOf(spec, plan)
					return ran(s, "release-less", func() (jobspec.Result, error) { return s.do(ctx, apply, granted) })
				},
			},
		},
	}
}
