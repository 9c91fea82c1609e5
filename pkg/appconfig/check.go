package appconfig

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/robfig/cron/v3"
)

// checker collects what a block finds wrong with its own values. Rules that
// need more than one block are in validate.go.
type checker struct {
	origin *Origin
	diags  []Diagnostic
}

func (c *checker) at(severity Severity, code Code, at Place, format string, args ...any) Diagnostic {
	return c.origin.diagnose(severity, code, at, format, args...)
}

func (c *checker) add(severity Severity, code Code, at Place, format string, args ...any) {
	c.diags = append(c.diags, c.at(severity, code, at, format, args...))
}

// unsupported reports something that the language has and this version lacks.
func (c *checker) unsupported(at Place, format string, args ...any) {
	c.add(Error, CodeUnsupported, at, "%s not supported yet by this version", fmt.Sprintf(format, args...))
}

// oneOf accepts the empty string: a missing required key is told elsewhere.
func (c *checker) oneOf(at Place, value string, allowed ...string) {
	if value == "" || slices.Contains(allowed, value) {
		return
	}
	d := c.at(Error, CodeValue, at, "%s is %q; allowed: %s", lastKey(at), value, strings.Join(allowed, ", "))
	if near := nearest(value, allowed); near != "" {
		d = d.remedy("did you mean %q?", near)
	}
	c.diags = append(c.diags, d)
}

// nameFormat is what every name may look like: it becomes part of paths, of
// template paths and of URLs.
var nameFormat = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]{0,126}[A-Za-z0-9])?$`)

func (c *checker) name(at Place, what, name string) {
	if name == "" || nameFormat.MatchString(name) {
		return
	}
	c.add(Error, CodeValue, at.key("name"),
		"%s name %q may have letters, digits, \"_\", \"-\" and \".\", and must begin and end with a letter or digit (at most 128)", what, name)
}

func (c *checker) cron(at Place, expr string) {
	if expr == "" || strings.Contains(expr, "{{") {
		return // a template is checked when it is rendered
	}
	if _, err := cron.ParseStandard(expr); err != nil {
		c.diags = append(c.diags, c.at(Error, CodeValue, at, "%q is not a cron expression (%v)", expr, err).
			remedy(`write five fields, such as "*/5 * * * *"`))
	}
}

var exactVersion = regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)

// terraformVersion accepts an exact version and, as Berth's own addition to the
// format, a range, which any Terraform within it satisfies.
func (c *checker) terraformVersion(at Place, version string) {
	if version == "" || exactVersion.MatchString(version) {
		return
	}
	if strings.ContainsAny(version[:1], "<>=~^") {
		if _, err := semver.NewConstraint(version); err == nil {
			return
		}
	}
	c.diags = append(c.diags, c.at(Error, CodeValue, at, "terraform_version %q is neither an exact version nor a range", version).
		remedy(`write all three numbers, such as "1.11.4", or a range, such as ">= 1.5.0, < 2.0.0"`))
}

func (c *checker) notNegative(at Place, n int) {
	if n < 0 {
		c.add(Error, CodeValue, at, "%s is %d; it cannot be negative", lastKey(at), n)
	}
}

func (c *checker) positive(at Place, d Duration) {
	if d < 0 {
		c.add(Error, CodeValue, at, "%s is %s; it must be longer than zero", lastKey(at), d)
	}
}

func (c *checker) operations(block Place, roles []OperationRole, allowed ...string) {
	for i, r := range roles {
		at := block.key("operation_roles").item(i).key("operation")
		c.oneOf(at, r.Operation, allowed...)
		if slices.ContainsFunc(roles[:i], func(o OperationRole) bool { return o.Operation == r.Operation }) {
			c.add(Error, CodeDuplicate, at, "operation %q has two roles", r.Operation)
		}
	}
}

// source checks that exactly one source is given, and that a local one stays
// inside the app folder.
func (c *checker) source(block Place, public, connected *Repo, ext *SourceExtension) {
	var given []string
	if public != nil {
		given = append(given, "public_repo")
	}
	if connected != nil {
		given = append(given, "connected_repo")
	}
	if ext != nil && ext.LocalSource != "" {
		given = append(given, "berth.local_source")
		if err := insideOfApp(ext.LocalSource); err != nil {
			c.add(Error, CodeOutsideOfApp, block.key("berth.local_source"), "local_source %q %v", ext.LocalSource, err)
		}
	}
	switch len(given) {
	case 0:
		c.diags = append(c.diags, c.at(Error, CodeMissing, block, "no source is given").
			remedy("add one of [public_repo], [connected_repo] or local_source in [berth]"))
	case 1:
	default:
		c.add(Error, CodeExclusive, block.key(given[1]), "only one source is possible, but %s are given", strings.Join(given, " and "))
	}
}

func lastKey(at Place) string {
	key := at.Key
	if i := strings.LastIndexByte(key, '.'); i >= 0 {
		key = key[i+1:]
	}
	return key
}
