package build

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/reach"
	"github.com/berth-dev/berth/runner/engine/job"
)

// forms are how tools say where in a source a fault is. Their groups are
// directory, file and line, of which each may be empty, and what is wrong.
var forms = []*regexp.Regexp{
	regexp.MustCompile(`^(?:in (?P<dir>\S+/): )?(?P<file>[^\s:]+):(?P<line>\d+)(?::\d+)?: (?P<what>.*)$`),                                          // ours, and HCL
	regexp.MustCompile(`^(?:parse|execution) error at \([^/\s]+/(?P<file>[^\s:]+):(?P<line>\d+)(?::\d+)?\): (?P<what>.*)$`),                        // a template of Helm
	regexp.MustCompile(`^(?:cannot load )?(?P<file>[^\s:]+\.(?:yaml|yml|json|lock|toml)): (?:.*?: )?(?:yaml: )?line (?P<line>\d+): (?P<what>.*)$`), // YAML
	regexp.MustCompile(`^(?:cannot load )?(?P<file>[^\s:]+\.(?:yaml|yml|json|lock|toml|tf)): (?P<what>.*)$`),                                       // a rule of Helm
}

// wrong is the failure of a build whose source somebody has to correct. What the
// tool says of file and line comes first, as a path of the app folder or of the
// repository; more is what else helps, "" for nothing.
func wrong(j *job.Job, err error, more string) *job.Failure {
	s := j.Spec.Source
	text := strings.Join(strings.Fields(err.Error()), " ")
	at, remedy := describe(s)+": ", "correct "+folder(s)
	if j.Spec.File != "" {
		remedy += ", or what " + j.Spec.File + " says of its source"
	}
	for _, form := range forms {
		m := form.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		group := func(name string) string {
			if i := form.SubexpIndex(name); i >= 0 {
				return m[i]
			}
			return ""
		}
		file := path.Join(s.Directory, group("dir"), group("file"))
		what := group("what")
		at, remedy = origin(s)+file, "correct "+file
		if line := group("line"); line != "" {
			at, remedy = at+":"+line, fmt.Sprintf("correct line %s of %s", line, file)
		}
		at, text = at+": ", what
		break
	}
	if more != "" {
		remedy += "; " + more
	}
	return job.Wrongf(remedy, "%s%s", at, text)
}

// origin begins what is said of a source: where it comes from, unless that is
// said by its paths.
func origin(s *jobspec.Source) string {
	if s.Kind == "archive" && s.Repo == "" && s.Directory != "" {
		return ""
	}
	return describe(s) + ": "
}

// folder names the directory of a source, for people.
func folder(s *jobspec.Source) string {
	if s.Chart != nil {
		return "the chart in its repository"
	}
	if dir := path.Clean(filepath.ToSlash(s.Directory)); dir != "." {
		return dir
	}
	return "it"
}

// correct says which key of the app folder to correct, in which file if the order
// says that.
func correct(j *job.Job, key string) string {
	if j.Spec.File == "" {
		return "correct " + key
	}
	return "correct " + key + " in " + j.Spec.File
}

// orCopy is the way round a repository that cannot be had.
func orCopy(s *jobspec.Source) string {
	return ", or sync with a copy of the repository: berth sync --source-map " + withoutCredentials(s.Repo) + "=FOLDER"
}

// tell is how often people are told that somebody does not answer.
const tell = 15 * time.Second

// wait is for somebody's answer, for a limited time.
type wait struct {
	what  string
	limit time.Duration
}

// patiently does what may hang, for a limited time, and says in the log that it
// waits. What does not end by itself is left behind: it ends with the process.
func patiently(ctx context.Context, j *job.Job, w wait, do func() error) error {
	began, done := time.Now(), make(chan error, 1)
	go func() { done <- do() }()
	over := time.NewTimer(w.limit)
	defer over.Stop()
	tick := time.NewTicker(min(tell, w.limit/2))
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
			j.Logf("still waiting for %s after %s, at most %s", w.what, time.Since(began).Round(time.Second), w.limit)
		case <-over.C:
			return fmt.Errorf("%s did not answer within %s", w.what, w.limit)
		}
	}
}

// reason is why somebody was not reached, in the fewest words that tell it.
func reason(err error) string {
	if why, _ := reach.Why(err); why != "" {
		return why
	}
	return err.Error()
}
