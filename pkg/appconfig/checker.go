package appconfig

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	"github.com/robfig/cron/v3"

	"github.com/berth-dev/berth/pkg/appconfig/folder"
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// checker collects what a block finds wrong with its own values. Rules that
// need more than one block are in the package check.
type checker struct{ *place.Report }

// nameFormat is what every name may look like: it becomes part of paths, of
// template paths and of URLs.
var nameFormat = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]{0,126}[A-Za-z0-9])?$`)

// IsName tells whether a name may be used in an app folder.
func IsName(name string) bool { return nameFormat.MatchString(name) }

func (c *checker) name(at place.Place, what, name string) {
	if name == "" || IsName(name) {
		return
	}
	c.Add(place.Error, place.CodeValue, at.Below("name"),
		"%s name %q may have letters, digits, \"_\", \"-\" and \".\", and must begin and end with a letter or digit (at most 128)", what, name)
}

func (c *checker) cron(at place.Place, expr string) {
	if expr == "" || strings.Contains(expr, "{{") {
		return // a template is checked when it is rendered
	}
	if problem := cronProblem(expr); problem != "" {
		c.Diags = append(c.Diags, c.At(place.Error, place.CodeValue, at, "%q is not a cron expression (%s)", expr, problem).
			WithRemedy(`write five fields, such as "*/5 * * * *"`))
	}
}

// cronProblem tells what is wrong with a cron expression ("" when nothing is).
func cronProblem(expr string) string {
	if hasAnyPrefix(expr, "TZ=", "CRON_TZ=") {
		return "every schedule is in UTC" // and the parser panics on "TZ=UTC"
	}
	for field := range strings.FieldsSeq(expr) {
		if strings.Trim(field, ",") == "" {
			return "a field has no value" // the parser takes it for one that never comes, and searches for years
		}
	}
	schedule, err := cron.ParseStandard(expr)
	if err != nil {
		return err.Error()
	}
	anyTime := time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)
	if schedule.Next(anyTime).IsZero() {
		return "no such day ever comes"
	}
	return ""
}

var exactVersion = regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)

// terraformVersion accepts an exact version and, as Berth's own addition to the
// format, a range, which any Terraform within it satisfies.
func (c *checker) terraformVersion(at place.Place, version string) {
	if version == "" || exactVersion.MatchString(version) {
		return
	}
	if strings.ContainsAny(version[:1], "<>=~^") {
		if _, err := semver.NewConstraint(version); err == nil {
			return
		}
	}
	c.Diags = append(c.Diags, c.At(place.Error, place.CodeValue, at, "terraform_version %q is neither an exact version nor a range", version).
		WithRemedy(`write all three numbers, such as "1.11.4", or a range, such as ">= 1.5.0, < 2.0.0"`))
}

// setPathProblem tells why a key of a chart's values cannot be a path of
// `helm --set` ("" when it can).
func setPathProblem(path string) string {
	if path == "" {
		return "it is empty"
	}
	if i := strings.IndexAny(path, "=,{}"); i >= 0 {
		return fmt.Sprintf("it has %q", path[i])
	}
	for rest := path; ; {
		open := strings.IndexByte(rest, '[')
		if open < 0 {
			return ""
		}
		index, after, closed := strings.Cut(rest[open+1:], "]")
		if n, err := strconv.Atoi(index); !closed || err != nil || n < 0 || n > maxSetIndex {
			return fmt.Sprintf("an index is a number up to %d in brackets", maxSetIndex)
		}
		rest = after
	}
}

// maxSetIndex is the largest index that Helm accepts in a path.
const maxSetIndex = 65536

func (c *checker) notNegative(at place.Place, n int) {
	if n < 0 {
		c.Add(place.Error, place.CodeValue, at, "%s is %d; it cannot be negative", at.Last(), n)
	}
}

func (c *checker) positive(at place.Place, d place.Duration) {
	if d < 0 || d == 0 && c.isWritten(at) {
		c.Add(place.Error, place.CodeValue, at, "%s is %s; it must be longer than zero", at.Last(), d)
	}
}

// isWritten tells whether a key is given, with a value of the right type.
func (c *checker) isWritten(at place.Place) bool {
	pos, written := c.Origin.Positions[at.ID()]
	return written && !slices.ContainsFunc(c.Diags, func(d place.Diagnostic) bool {
		return d.Severity == place.Error && d.Line == pos.Line && d.Column == pos.Column && d.File == cmp.Or(pos.File, at.File)
	})
}

func (c *checker) operations(block place.Place, roles []OperationRole, allowed ...string) {
	for i, r := range roles {
		at := block.Below("operation_roles").Item(i).Below("operation")
		c.OneOf(at, r.Operation, allowed...)
		if slices.ContainsFunc(roles[:i], func(o OperationRole) bool { return o.Operation == r.Operation }) {
			c.Add(place.Error, place.CodeDuplicate, at, "operation %q has two roles", r.Operation)
		}
	}
}

// source checks that exactly one source is given, and that a local one stays
// inside the app folder. A block that merges in a file that is not here yet may
// get its source from there.
func (c *checker) source(block place.Place, merged string, from sources) {
	if from.local != "" {
		if err := folder.Inside(from.local); err != nil {
			c.Add(place.Error, place.CodeOutsideOfApp, block.Below("berth.local_source"), "local_source %q %v", from.local, err)
		}
	}
	c.oneSource(block, merged, from.given(), "[public_repo], [connected_repo] or local_source in [berth]")
}

func (c *checker) oneSource(block place.Place, merged string, given []string, possible string) {
	switch {
	case len(given) == 0 && merged == "" && !c.Misspelt(block, "public_repo", "connected_repo", "helm_repo", "berth") && !c.Misspelt(block.Below("berth"), "local_source", "oci_source"):
		c.Diags = append(c.Diags, c.At(place.Error, place.CodeMissing, block, "no source is given").WithRemedy("add one of %s", possible))
	case len(given) > 1:
		c.Add(place.Error, place.CodeExclusive, block.Below(given[1]), "only one source is possible, but %s are given", strings.Join(given, " and "))
	}
}

// sources are the ways to name a source, of which a block uses one.
type sources struct {
	public, connected *Repo
	local             string // [berth] local_source
	oci               string // [berth] oci_source
}

func (c *Component) sources() sources { return sourcesOf(c.PublicRepo, c.ConnectedRepo, c.Berth) }
func (s *Sandbox) sources() sources   { return sourcesOf(s.PublicRepo, s.ConnectedRepo, s.Berth) }

func sourcesOf(public, connected *Repo, ext *BlockExtension) sources {
	s := sources{public: public, connected: connected}
	if ext != nil {
		s.local, s.oci = ext.LocalSource, ext.OCISource
	}
	return s
}

// given lists the keys that name a source.
func (s sources) given() []string {
	var given []string
	if s.public != nil {
		given = append(given, "public_repo")
	}
	if s.connected != nil {
		given = append(given, "connected_repo")
	}
	if s.local != "" {
		given = append(given, "berth.local_source")
	}
	if s.oci != "" {
		given = append(given, "berth.oci_source")
	}
	return given
}
