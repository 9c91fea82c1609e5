package modulefetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/modulekeys"
	"github.com/berth-dev/berth/runner/engine/build"
	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/module"
)

// Folder is where fetched modules are in an artifact.
const Folder = ".berth/modules"

const (
	maxModules   = 200
	maxDepth     = 20
	fetchTimeout = 10 * time.Minute // of one module
)

// Pack fetches the modules that the one in dir calls from elsewhere, and those that
// they call, puts them below Folder, and has the calls lead there.
func Pack(ctx context.Context, j *job.Job, dir string) ([]jobspec.Module, error) {
	f := &fetcher{job: j, root: dir, session: &session{}, seen: map[string]bool{}, got: map[[2]string]fetched{}}
	raw, err := os.ReadFile(j.In("build", modulekeys.File))
	if err == nil {
		if f.session.keys, err = modulekeys.Parse(raw); err != nil {
			return nil, job.Failf("ask the operator of this builder to correct "+modulekeys.File, "credentials of modules: %v", err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	shared() // before go-git asks for its transports
	if err := f.walk(context.WithValue(ctx, sessionKey{}, f.session), place{dir: "."}); err != nil {
		return nil, err
	}
	return f.pins, nil
}

// fetcher packs the modules of one build.
type fetcher struct {
	job     *job.Job
	root    string // the artifact
	session *session
	seen    map[string]bool       // directories whose calls are done
	got     map[[2]string]fetched // by source without its directory, and version
	pins    []jobspec.Module
	tries   int
}

// fetched is a package in the artifact.
type fetched struct {
	dir string // below root
	sub string // what its registry says about the directory in it
}

// place is a module in the artifact.
type place struct {
	dir   string // below the artifact's root
	base  string // the fetched package that it is in; "" for the source itself
	of    string // the source of that package, for people
	depth int
}

// walk fetches what a module calls, and what those modules call in turn.
func (f *fetcher) walk(ctx context.Context, at place) error {
	if f.seen[at.dir] {
		return nil
	}
	f.seen[at.dir] = true
	m, err := module.Read(filepath.Join(f.root, filepath.FromSlash(at.dir)), f.job.Spec.Source.Tool == jobspec.ToolOpenTofu)
	switch {
	case err != nil && at.base == "":
		return nil // the check of the build says it, with its place
	case err != nil:
		return job.Wrongf("correct it there", "module %s cannot be read: %v", at.of, err)
	case at.depth > maxDepth:
		return job.Wrongf("", "modules call each other more than %d times deep, at %s", maxDepth, at.of)
	}
	sources := map[string]string{}
	for _, call := range effective(m.Calls) {
		next, err := f.call(ctx, at, call)
		if err != nil {
			return err
		}
		if next == nil {
			continue
		}
		if !call.Local() {
			to, err := filepath.Rel(filepath.FromSlash(at.dir), filepath.FromSlash(next.dir))
			if err != nil {
				return err
			}
			if to = filepath.ToSlash(to); !strings.HasPrefix(to, "../") {
				to = "./" + to
			}
			sources[call.Name] = to
		}
		if err := f.walk(ctx, *next); err != nil {
			return err
		}
	}
	if len(sources) == 0 {
		return nil
	}
	if err := rewrite(filepath.Join(f.root, filepath.FromSlash(at.dir)), m.Files, sources); err != nil {
		return fmt.Errorf("module %s: %w", path.Join(at.of, at.dir), err)
	}
	return nil
}

// effective are the calls of a module by name, with what override files say of them.
func effective(calls []module.Call) []module.Call {
	var all []module.Call
	for _, c := range calls {
		i := slices.IndexFunc(all, func(o module.Call) bool { return o.Name == c.Name })
		if i < 0 {
			all = append(all, c)
			continue
		}
		if c.Source != "" {
			all[i].Source, all[i].At = c.Source, c.At
		}
		if c.Version != "" {
			all[i].Version = c.Version
		}
	}
	return all
}

// call says where in the artifact a called module is, and fetches it if need be; nil
// for one that nothing can be said of.
func (f *fetcher) call(ctx context.Context, at place, call module.Call) (*place, error) {
	where := call.At
	if at.dir != "." {
		where = path.Join(at.dir, call.At)
	}
	if at.base != "" {
		where += " of " + at.of
	}
	if call.Source == "" {
		f.job.Logf("module %q (%s): its source is no plain text, so it is not fetched", call.Name, where)
		return nil, nil
	}
	if call.Local() {
		next := at
		next.dir, next.depth = path.Join(at.dir, call.Source), at.depth+1
		if next.dir == ".." || strings.HasPrefix(next.dir, "../") {
			return nil, nil // of the source itself: the check of the build says it
		}
		if at.base != "" && next.dir != at.base && !strings.HasPrefix(next.dir, at.base+"/") {
			return nil, job.Wrongf("correct it there", "module %q (%s) is called by %q, which is outside of its repository", call.Name, where, call.Source)
		}
		return &next, nil
	}
	what := wanted{call: call, where: where}
	address, err := Parse(call.Source)
	if err != nil {
		return nil, job.Wrongf("correct its source, or put a copy into the component's directory", "%s: %v", what, err)
	}
	got, err := f.obtain(ctx, what, address)
	if err != nil {
		return nil, err
	}
	next := place{base: got.dir, of: withoutQuery(call.Source), depth: at.depth + 1}
	if next.dir, err = f.directoryIn(got, address.Sub); err != nil {
		return nil, job.Wrongf("correct its source", "%s: %v", what, err)
	}
	return &next, nil
}

// wanted is a call, for people.
type wanted struct {
	call  module.Call
	where string
}

func (w wanted) String() string {
	return fmt.Sprintf("module %q (%s) is of %s", w.call.Name, w.where, withoutQuery(w.call.Source))
}

var (
	inAddress = regexp.MustCompile(`//[^/?#]*@`)
	// asked begins the errors of requests; their addresses may be signed.
	asked = regexp.MustCompile(`(?:Get|Post) "[^"]*": `)
)

// withoutQuery is a source without credentials and query.
func withoutQuery(source string) string {
	where, _, _ := strings.Cut(source, "?")
	return inAddress.ReplaceAllString(where, "//")
}

// directoryIn finds a directory in a package. "*" is the only one there is, which
// archives of code hosts have.
func (f *fetcher) directoryIn(got fetched, sub string) (string, error) {
	dir := got.dir
	for part := range strings.SplitSeq(path.Join(got.sub, sub), "/") {
		if part == "" || part == "." {
			continue
		}
		if part == "*" {
			entries, err := os.ReadDir(filepath.Join(f.root, filepath.FromSlash(dir)))
			entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return !e.IsDir() })
			if err != nil || len(entries) != 1 {
				return "", errors.New("there is not exactly one directory in it")
			}
			part = entries[0].Name()
		}
		dir = path.Join(dir, part)
	}
	place, err := filepath.EvalSymlinks(filepath.Join(f.root, filepath.FromSlash(dir)))
	if err != nil {
		return "", fmt.Errorf("there is no directory %q in it", path.Join(got.sub, sub))
	}
	base, err := filepath.EvalSymlinks(filepath.Join(f.root, filepath.FromSlash(got.dir)))
	if err != nil {
		return "", err
	}
	if rel, err := filepath.Rel(base, place); err != nil || !filepath.IsLocal(rel) {
		return "", errors.New("its directory leads out of it")
	}
	return dir, nil
}

// obtain puts a package into the artifact, each once.
func (f *fetcher) obtain(ctx context.Context, what wanted, a Address) (fetched, error) {
	source, _, _ := splitSub(what.call.Source)
	key := [2]string{source, what.call.Version}
	if got, ok := f.got[key]; ok {
		return got, nil
	}
	if f.tries++; f.tries > maxModules {
		return fetched{}, job.Wrongf("", "more than %d modules are called from elsewhere", maxModules)
	}
	limited, cancel := context.WithTimeoutCause(ctx, fetchTimeout, fmt.Errorf("it did not answer within %s", fetchTimeout))
	defer cancel()
	to := f.job.Work("modules", fmt.Sprint(f.tries))
	if err := os.MkdirAll(to, 0o700); err != nil {
		return fetched{}, err
	}
	f.session.met(0, "")
	pin, sub, err := f.fetch(limited, what, a, to)
	if err != nil {
		if ctx.Err() != nil {
			return fetched{}, context.Cause(ctx)
		}
		if limited.Err() != nil {
			err = context.Cause(limited)
		}
		return fetched{}, f.explain(what, err)
	}
	sum := sha256.Sum256([]byte(pin.From + "\n" + pin.Content()))
	got := fetched{dir: path.Join(Folder, nameOf(pin)+"-"+hex.EncodeToString(sum[:6])), sub: sub}
	into := filepath.Join(f.root, filepath.FromSlash(got.dir))
	if _, err := os.Stat(into); errors.Is(err, fs.ErrNotExist) { // else under another name already
		if err := os.MkdirAll(filepath.Dir(into), 0o700); err != nil {
			return got, err
		}
		leftOut, err := build.CopyTree(ctx, to, into)
		if err != nil {
			return got, job.Wrongf("correct it there", "%s: %v", what, err)
		}
		for _, name := range leftOut {
			f.job.Logf("left out of %s: %s", withoutQuery(pin.Source), name)
		}
	}
	if err := os.RemoveAll(to); err != nil {
		return got, err
	}
	f.got[key] = got
	f.note(pin)
	return got, nil
}

var notInName = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// nameOf is what a package's directory is called, for people who look into it.
func nameOf(pin jobspec.Module) string {
	name := strings.TrimSuffix(path.Base(pin.From), ".git")
	if pin.Version != "" {
		name = strings.ReplaceAll(withoutQuery(pin.Source), "/", "-")
	}
	name = strings.Trim(notInName.ReplaceAllString(name, "-"), "-")
	return name[:min(len(name), 60)]
}

// fetch gets a package into a directory.
func (f *fetcher) fetch(ctx context.Context, what wanted, a Address, to string) (pin jobspec.Module, sub string, err error) {
	source, _, _ := splitSub(what.call.Source)
	pin = jobspec.Module{Source: withoutSecrets(source), Wanted: what.call.Version, Moves: true}
	switch {
	case a.Host != "":
		if a, pin.Version, err = f.fromRegistry(ctx, a, what.call.Version); err != nil {
			return pin, "", err
		}
		pin.Moves, sub = !exactly(what.call.Version), a.Sub
	case what.call.Version != "":
		return pin, "", errors.New("it has a version, which only modules of a registry have")
	case a.Ask != "":
		if a, err = f.ask(ctx, a); err != nil {
			return pin, "", err
		}
		sub = a.Sub
	}
	if a.Git == "" {
		pin.From = withoutQuery(a.Archive)
		pin.Digest, err = f.download(ctx, a, to)
		return pin, sub, err
	}
	pin.From = withoutQuery(a.Git)
	pin.Commit, err = build.Checkout(context.WithValue(ctx, gitKey{}, true), to, a.Git, a.Ref)
	if pin.Version == "" {
		pin.Moves = pin.Commit != a.Ref
	}
	return pin, sub, err
}

// withoutSecrets is a source as written with nothing of its query but the ref of git.
func withoutSecrets(source string) string {
	where, query, _ := strings.Cut(source, "?")
	values, _ := url.ParseQuery(query)
	if ref := values.Get("ref"); ref != "" {
		return inAddress.ReplaceAllString(where, "//") + "?ref=" + ref
	}
	return inAddress.ReplaceAllString(where, "//")
}

// ask has an address say where a module is.
func (f *fetcher) ask(ctx context.Context, a Address) (Address, error) {
	u, err := url.Parse(a.Ask)
	if err != nil {
		return a, errNoAddress
	}
	query := u.Query()
	query.Set("terraform-get", "1")
	u.RawQuery = query.Encode()
	res, err := f.get(ctx, u)
	if err != nil {
		return a, err
	}
	defer res.Body.Close()
	return relative(u, res.Header.Get("X-Terraform-Get"))
}

// note writes down what was fetched, and says what is another one than before.
func (f *fetcher) note(pin jobspec.Module) {
	for _, before := range f.job.Spec.Source.Modules {
		if before.Source == pin.Source && before.Wanted == pin.Wanted && before.Content() != pin.Content() {
			pin.Before = before.Content()
		}
	}
	f.pins = append(f.pins, pin)
	exact := pin.Digest
	if pin.Commit != "" {
		exact = "commit " + pin.Commit
	}
	if pin.Version != "" {
		exact = "version " + pin.Version + ", " + exact
	}
	note := ""
	switch {
	case pin.Before != "":
		note = ": it has moved, an earlier build had " + pin.Before
	case pin.Moves:
		note = ": name a commit (?ref=) or one version for the same build every time"
	}
	f.job.Logf("fetched module %s from %s, %s%s", pin.Source, pin.From, exact, note)
}

// explain says why a module was not had, and what helps.
func (f *fetcher) explain(what wanted, err error) error {
	const orCopy = ", or put a copy of it into the component's directory"
	refused := f.session.last()
	switch {
	case refused != nil && refused.key != "":
		return job.Failf("ask the operator of this builder to renew them in "+modulekeys.File+" of this org in BERTH_BUILD_SECRETS"+orCopy,
			"%s, whose server refuses these credentials (%d, the entry %s)", what, refused.status, refused.key)
	case refused != nil:
		return job.Failf("ask the operator of this builder to add them to "+modulekeys.File+" of this org in BERTH_BUILD_SECRETS, or correct its source if it is public"+orCopy,
			"%s, which needs credentials: the server answers %d without", what, refused.status)
	}
	return job.Failf("check its source and that the Build Runner reaches it"+orCopy, "%s, which cannot be fetched: %s", what, inAddress.ReplaceAllString(asked.ReplaceAllString(err.Error(), ""), "//"))
}
