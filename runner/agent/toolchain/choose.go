package toolchain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/berth-dev/berth/pkg/tfprogram"
)

// Where a program is from, in the order in which they are asked.
type origin int

const (
	named  origin = iota // the executable that the operator named
	mirror               // a directory that the operator named
	onPath               // PATH
	kept                 // fetched for an earlier job
)

// program is one of a tool that can be had without the network.
type program struct {
	version *semver.Version
	from    origin
	// path is the executable, "" for an archive of the mirror that is not unpacked.
	path string
}

// rules are what the operator allows.
type rules struct {
	vendor    tfprogram.Vendor
	sameMinor bool // another patch of the same minor version will do
	downloads bool
}

// choice is a program that is there, or else the version to fetch.
type choice struct {
	program *program
	fetch   string
}

// choose decides which program of a tool a module gets that asks for a version: an exact one,
// a range, or "" for any. It does no I/O.
//
// An exact version is that version, from wherever it can be had first. For a range,
// the operator's own executable comes first, then the newest that fits of what the
// operator gave; what was fetched for the exact version of another module comes last,
// since otherwise that module would decide on this one's upgrade.
func choose(want string, have []program, r rules) (choice, error) {
	have = slices.Clone(have)
	slices.SortStableFunc(have, func(a, b program) int { return int(a.from) - int(b.from) })
	exact, err := exactly(want)
	if err != nil {
		return choice{}, err
	}
	if exact != nil {
		return chooseExact(exact, have, r)
	}
	fits, err := semver.NewConstraint(strings.TrimSpace(firstOf(want, "*")))
	if err != nil {
		return choice{}, fmt.Errorf("%w: terraform_version %q is neither a version nor a range", ErrNone, want)
	}
	allowed := func(v *semver.Version) bool { return want == "" || fits.Check(v) }
	if p := newest(have, func(p program) bool { return p.from == named && allowed(p.version) }); p != nil {
		return choice{program: p}, nil
	}
	if p := newest(have, func(p program) bool { return p.from < kept && allowed(p.version) }); p != nil {
		return choice{program: p}, nil
	}
	ours := semver.MustParse(r.vendor.Version)
	if p := newest(have, func(p program) bool { return p.version.Equal(ours) && allowed(p.version) }); p != nil {
		return choice{program: p}, nil
	}
	if r.downloads && allowed(ours) {
		return choice{fetch: r.vendor.Version}, nil
	}
	if p := newest(have, func(p program) bool { return allowed(p.version) }); p != nil {
		return choice{program: p}, nil
	}
	return choice{}, none(want, have, r)
}

func chooseExact(want *semver.Version, have []program, r rules) (choice, error) {
	for i := range have {
		if have[i].version.Equal(want) {
			return choice{program: &have[i]}, nil
		}
	}
	if r.sameMinor {
		same := func(p program) bool {
			return p.version.Major() == want.Major() && p.version.Minor() == want.Minor() && p.version.Prerelease() == ""
		}
		if p := newest(have, same); p != nil {
			return choice{program: p}, nil
		}
	}
	if r.downloads {
		return choice{fetch: want.String()}, nil
	}
	return choice{}, none(want.String(), have, r)
}

// exactly reads an exact version, which may have "=" or "v" before it; nil for
// anything else.
func exactly(want string) (*semver.Version, error) {
	text := strings.TrimPrefix(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(want), "=")), "v")
	v, err := semver.StrictNewVersion(text)
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // it is a range, or the next one to read it says what is wrong
	}
	if v.Metadata() != "" {
		return nil, fmt.Errorf("%w: terraform_version %q: no release is called so", ErrNone, want)
	}
	return v, nil
}

// newest is the newest of those that count, of equals the first.
func newest(have []program, counts func(program) bool) *program {
	var best *program
	for i := range have {
		if p := &have[i]; counts(*p) && (best == nil || p.version.GreaterThan(best.version)) {
			best = p
		}
	}
	return best
}

// none says that nothing fits, what there is, and what to do.
func none(want string, have []program, r rules) error {
	var there []string
	for _, p := range have {
		if text := p.version.String(); !slices.Contains(there, text) {
			there = append(there, text)
		}
	}
	what := "no " + r.vendor.Tool
	if want != "" {
		what += " " + want
	}
	if len(there) == 0 {
		return fmt.Errorf("%w: %s is on this runner, and no other%s", ErrNone, what, r.text())
	}
	return fmt.Errorf("%w: %s is on this runner, which has %s%s", ErrNone, what, strings.Join(there, ", "), r.text())
}

func (r rules) text() string {
	if r.downloads {
		return "" // a range that leaves out what would be fetched
	}
	return "; downloads are forbidden"
}

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
