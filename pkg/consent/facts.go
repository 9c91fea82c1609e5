package consent

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// imagePath is the field of a Kubernetes object that names a container's image.
var imagePath = regexp.MustCompile(`(^|\.)(initContainers|containers|ephemeralContainers)\[[^\]]*\]\.image$`)

// harmless are the actions of plans that take nothing away.
var harmless = map[string]bool{"keep": true, "look": true, "read": true}

// Describe makes facts of what a plan shows. An action that it does not know counts as a
// deletion, too.
func Describe(changeKind, component string, s jobspec.PlanSummary) Facts {
	f := Facts{ChangeKind: changeKind, Component: component}
	counts := s.Counts()
	f.Create, f.Update, f.Replace, f.Delete, f.Other = counts.Create, counts.Update, counts.Replace, counts.Delete, counts.Run
	for action, n := range counts.Other {
		switch action {
		case "install", "upgrade", "rollback": // of a chart's release; its objects are listed too
			f.Other += n
		default:
			if !harmless[action] {
				f.Other, f.Delete = f.Other+n, f.Delete+n
			}
		}
	}
	if f.Steps = chartSteps(s); len(f.Steps) > 0 {
		return f
	}
	if only, images := versionsOnly(s); only {
		f.ImagesOnly, f.Steps = images, steps(s)
	}
	return f
}

// chartSteps are the versions of a chart that changes its version.
func chartSteps(s jobspec.PlanSummary) (list []Step) {
	for _, o := range s.Objects {
		if o.Action != "upgrade" {
			continue
		}
		for _, field := range o.Fields {
			switch field.Path {
			case "chart.name", "chart.version", "chart.app_version":
				list = append(list, Step{Of: field.Path, From: unquoted(field.Before), To: unquoted(field.After)})
			}
		}
	}
	return list
}

func unquoted(text string) string {
	var s string
	if json.Unmarshal([]byte(text), &s) != nil {
		return text
	}
	return s
}

// versionsOnly says whether all that changes are versions: images of containers, or the
// version of the runner. images is true when it is the first, at least once.
func versionsOnly(s jobspec.PlanSummary) (only, images bool) {
	if counts := s.Counts(); counts.Update == 0 || counts.Create+counts.Replace+counts.Delete+counts.Run > 0 || len(s.Outputs) > 0 {
		return false, false
	}
	changed := 0
	for _, o := range s.Objects {
		switch {
		case harmless[o.Action], o.Action == "upgrade":
			continue
		case o.Action != "update" || len(o.Fields) == 0:
			return false, false
		}
		changed++
		for _, field := range o.Fields {
			switch {
			case imagePath.MatchString(field.Path):
				images = true
			case o.Address == runnerAddress && runnerFields[field.Path]:
			default:
				return false, false
			}
		}
	}
	return changed == s.Counts().Update, images
}

// runnerAddress is what the plan of the runner's own update calls it.
const runnerAddress = "runner"

// runnerFields are the fields of that plan.
var runnerFields = map[string]bool{"version": true, "berth-runner": true, "berth-engine": true, "archive": true, "signed by release key": true}

// steps are the versions that a plan changes, one for each field that names one.
func steps(s jobspec.PlanSummary) (list []Step) {
	for _, o := range s.Objects {
		for _, field := range o.Fields {
			switch {
			case o.Address == runnerAddress && field.Path == "version":
				list = append(list, Step{Of: "the runner", From: field.Before, To: field.After})
			case imagePath.MatchString(field.Path):
				name, from := imageVersion(field.Before)
				other, to := imageVersion(field.After)
				if name != other {
					from, to = name, other // another image altogether: no step of versions
				}
				list = append(list, Step{Of: name, From: from, To: to})
			}
		}
	}
	return list
}

// imageVersion splits a quoted image reference; without a tag there is no version.
func imageVersion(quoted string) (name, version string) {
	ref, _, _ := strings.Cut(unquoted(quoted), "@")
	colon := strings.LastIndexByte(ref, ':')
	if colon < 0 || strings.Contains(ref[colon:], "/") {
		return ref, ""
	}
	return ref[:colon], ref[colon+1:]
}

// patch says whether the step goes up within a minor version.
func (s Step) patch() bool {
	from, err := semver.StrictNewVersion(strings.TrimPrefix(s.From, "v"))
	if err != nil {
		return false
	}
	to, err := semver.StrictNewVersion(strings.TrimPrefix(s.To, "v"))
	return err == nil && from.Prerelease() == "" && to.Prerelease() == "" &&
		from.Major() == to.Major() && from.Minor() == to.Minor() && to.GreaterThan(from)
}

// Words says what the facts are, for people.
func (f Facts) Words() string {
	counts := jobspec.Counts{Create: f.Create, Update: f.Update, Replace: f.Replace, Delete: f.Delete, Run: f.Other}
	return strings.TrimSpace(f.ChangeKind + " " + f.Component + ": " + counts.String())
}
