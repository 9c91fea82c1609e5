package engine_test

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/jobspec"
)

func buildJob(t *testing.T, source jobspec.Source) *jobDir {
	t.Helper()
	source.Push = "org_1/app/greeting"
	return newJob(t, jobspec.Spec{
		Kind: jobspec.KindTerraformModule, Operation: jobspec.OperationBuild, BuildID: "bld_1", Source: &source,
	})
}

func archiveJob(t *testing.T, files map[string]string) *jobDir {
	t.Helper()
	j := buildJob(t, jobspec.Source{Kind: "archive", Archive: &jobspec.Artifact{Repository: "org_1/sources", Digest: "sha256:0"}, Directory: "src/greeting"})
	for name, contents := range files {
		j.write(t, "in/source/"+name, contents)
	}
	return j
}

// artifact lists what a build made.
func (j *jobDir) artifact(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	root := filepath.Join(j.path, "out/artifact")
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if e.Type()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(path)
			files[name] = "-> " + target
			return err
		}
		data, err := os.ReadFile(path)
		files[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestBuildOfAnArchiveKeepsTheModuleAlone(t *testing.T) {
	t.Parallel()
	const certificate, key = "-----BEGIN CERTIFICATE-----\n", "-----BEGIN RSA PRIVATE KEY-----\n"
	j := archiveJob(t, map[string]string{
		"main.tf": `module "child" { source = "./child" }`, "child/main.tf": "# empty", "child/policy.json": "{}",
		"terraform.tfvars": "a = 1", ".terraform.lock.hcl": "# locked", "ca.pem": certificate,
		".git/config": "x", ".terraform/modules/modules.json": "{}", "terraform.tfstate": "{}", "terraform.tfstate.backup": "{}",
		"old.tfplan": "x", ".env": "SECRET=1", "server.pem": key, "child/deploy.key": key,
	})
	if err := os.Symlink("child/policy.json", filepath.Join(j.path, "in/source/policy.json")); err != nil {
		t.Fatal(err)
	}
	j.must(t)
	want := map[string]string{
		"main.tf": `module "child" { source = "./child" }`, "child/main.tf": "# empty", "child/policy.json": "{}",
		"terraform.tfvars": "a = 1", ".terraform.lock.hcl": "# locked", "ca.pem": certificate, "policy.json": "-> child/policy.json",
	}
	if diff := cmp.Diff(want, j.artifact(t)); diff != "" {
		t.Errorf("artifact (-want +got):\n%s", diff)
	}
	wantContains(t, "log", j.log(t), "left out: child/deploy.key")
}

func TestBuildsThatCannotBe(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		files map[string]string
		links map[string]string
		want  string
		fix   string // what the remedy says
	}{
		{name: "no module", files: map[string]string{"README.md": "x"}, want: "src/greeting: there are no .tf files in it", fix: "correct src/greeting; `terraform validate` there says more"},
		{name: "no HCL", files: map[string]string{"main.tf": "a = 1\nresource {"}, want: "src/greeting/main.tf:2: ", fix: "correct line 2 of src/greeting/main.tf; "},
		{name: "no HCL in a called module", files: map[string]string{"main.tf": "module \"m\" {\n  source = \"./m\"\n}", "m/x.tf": "}"}, want: "src/greeting/m/x.tf:1: ", fix: "correct line 1 of src/greeting/m/x.tf; "},
		{name: "a module outside", files: map[string]string{"main.tf": "module \"m\" {\n  source = \"../m\"\n}"}, want: `src/greeting/main.tf:1: module "m" is called by "../m", which is outside`, fix: "correct line 1 of src/greeting/main.tf; "},
		{name: "a module that is not there", files: map[string]string{"main.tf": "module \"m\" {\n  source = \"./m\"\n}"}, want: `which does not exist`, fix: "correct line 1 of src/greeting/main.tf; "},
		{name: "a backend that would win over ours", files: map[string]string{"main.tf": "", "z_override.tf": "terraform {\n  backend \"s3\" {}\n}"}, want: `z_override.tf:2: it declares in an override file where its state is kept ("s3")`, fix: "correct line 2 of src/greeting/z_override.tf; "},
		{name: "a link to outside", files: map[string]string{"main.tf": ""}, links: map[string]string{"passwd": "/etc/passwd"}, want: "src/greeting: passwd is a symlink to an absolute path", fix: "correct src/greeting"},
		{name: "a link that climbs out", files: map[string]string{"main.tf": ""}, links: map[string]string{"job": "../../job.json"}, want: "src/greeting: job is a symlink: it leads out of the source", fix: "correct src/greeting"},
		{name: "a link to nothing", files: map[string]string{"main.tf": ""}, links: map[string]string{"gone": "missing"}, want: "src/greeting: gone is a symlink to nothing", fix: "correct src/greeting"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			j := archiveJob(t, tc.files)
			for name, target := range tc.links {
				if err := os.Symlink(target, filepath.Join(j.path, "in/source", name)); err != nil {
					t.Fatal(err)
				}
			}
			r := j.run(t)
			wantContains(t, "error", r.Error, tc.want)
			wantContains(t, "remedy", r.Remedy, tc.fix)
			if r.Outcome != jobspec.OutcomeFailed || !strings.HasPrefix(r.Remedy, "correct ") {
				t.Errorf("outcome %s, remedy %q", r.Outcome, r.Remedy)
			}
			t.Logf("%s; %s", r.Error, r.Remedy)
		})
	}
}

// A repository on disk, made with git.
type repository struct{ dir string }

func newRepository(t *testing.T) repository {
	t.Helper()
	r := repository{dir: t.TempDir()}
	r.git(t, "init", "-q", "-b", "main")
	return r
}

func (r repository) url() string { return "file://" + r.dir }

func (r repository) git(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@localhost",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@localhost")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func (r repository) commit(t *testing.T, files map[string]string) string {
	t.Helper()
	for name, contents := range files {
		path := filepath.Join(r.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(contents), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r.git(t, "add", "-A")
	r.git(t, "commit", "-q", "-m", "change")
	return r.git(t, "rev-parse", "HEAD")
}

func TestBuildOfACommit(t *testing.T) {
	t.Parallel()
	repo := newRepository(t)
	first := repo.commit(t, map[string]string{"infra/db/main.tf": "# first", "README.md": "x"})
	second := repo.commit(t, map[string]string{"infra/db/main.tf": "# second"})
	for commit, want := range map[string]string{first: "# first", second: "# second"} {
		j := buildJob(t, jobspec.Source{Kind: "git", Repo: repo.url(), Ref: "main", Commit: commit, Directory: "./infra/db"})
		j.must(t)
		if diff := cmp.Diff(map[string]string{"main.tf": want}, j.artifact(t)); diff != "" {
			t.Errorf("artifact of %s (-want +got):\n%s", commit, diff)
		}
	}
}

func TestBuildOfScripts(t *testing.T) {
	t.Parallel()
	repo := newRepository(t)
	commit := repo.commit(t, map[string]string{"ops/check.sh": "#!/bin/sh\n", "ops/lib/say.sh": "# say", "main.tf": "# x"})
	build := func(directory string) *jobDir {
		j := buildJob(t, jobspec.Source{Kind: "git", Repo: repo.url(), Ref: "main", Commit: commit, Directory: directory})
		j.spec.Kind, j.spec.TerraformModule = jobspec.KindScripts, nil
		return j
	}
	j := build("ops")
	j.must(t)
	want := map[string]string{"check.sh": "#!/bin/sh\n", "lib/say.sh": "# say"}
	if diff := cmp.Diff(want, j.artifact(t)); diff != "" {
		t.Errorf("artifact (-want +got):\n%s", diff)
	}
	r := build("gone").run(t)
	wantContains(t, "error", r.Error, `there is no directory "gone"`)
}

func TestBuildOfACommitThatOnlyATagHas(t *testing.T) {
	t.Parallel()
	repo := newRepository(t)
	repo.commit(t, map[string]string{"main.tf": "# kept"})
	repo.git(t, "checkout", "-q", "-b", "side")
	tagged := repo.commit(t, map[string]string{"main.tf": "# tagged"})
	repo.git(t, "tag", "v1")
	repo.git(t, "checkout", "-q", "main")
	repo.git(t, "branch", "-q", "-D", "side")
	for _, allowed := range []string{"true", "false"} {
		repo.git(t, "config", "uploadpack.allowAnySHA1InWant", allowed)
		j := buildJob(t, jobspec.Source{Kind: "git", Repo: repo.url(), Ref: "v1", Commit: tagged})
		j.must(t)
		if got := j.artifact(t)["main.tf"]; got != "# tagged" {
			t.Errorf("main.tf is %q", got)
		}
	}
}

func TestGitSourcesThatCannotBe(t *testing.T) {
	t.Parallel()
	repo := newRepository(t)
	commit := repo.commit(t, map[string]string{"main.tf": "# x"})
	broken := repo.commit(t, map[string]string{"infra/main.tf": "locals {\n  a = 1\n  b = \n}\n"})
	repo.git(t, "branch", "broken")
	repo.git(t, "reset", "-q", "--hard", commit)
	private := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	t.Cleanup(private.Close)
	missing := strings.Repeat("0123456789", 4)
	for _, tc := range []struct {
		name   string
		source jobspec.Source
		want   []string
		fix    string
	}{
		{"a commit that is gone", jobspec.Source{Repo: repo.url(), Ref: "main", Commit: missing}, []string{repo.url() + " at main: commit " + missing + " is not there any more"}, "sync again"},
		{"a repository that is not there", jobspec.Source{Repo: repo.url() + "-nope", Ref: "main", Commit: commit}, []string{"-nope at main: there is no such repository"}, "correct repo in components/greeting.toml, or sync with a copy of the repository: berth sync --source-map " + repo.url() + "-nope=FOLDER"},
		{"a directory that is not there", jobspec.Source{Repo: repo.url(), Ref: "main", Commit: commit, Directory: "infra"}, []string{`at main: there is no directory "infra"`}, "correct directory in components/greeting.toml"},
		{"a file with a mistake", jobspec.Source{Repo: repo.url(), Ref: "main", Commit: broken, Directory: "infra"}, []string{repo.url() + " at main: infra/main.tf:3: "}, "correct line 3 of infra/main.tf"},
		{"a host where nobody listens", jobspec.Source{Repo: "http://127.0.0.1:1/a.git", Ref: "main", Commit: commit}, []string{"http://127.0.0.1:1/a.git at main: the repository cannot be read: 127.0.0.1:1 refuses the connection"}, "--source-map http://127.0.0.1:1/a.git=FOLDER"},
		{"a host that asks for a password", jobspec.Source{Repo: private.URL + "/a.git", Ref: "main", Commit: commit}, []string{"may not be read without credentials"}, "--source-map " + private.URL + "/a.git=FOLDER"},
		{"a directory outside", jobspec.Source{Repo: repo.url(), Ref: "main", Commit: commit, Directory: "../../in"}, []string{`there is no directory "in"`}, "correct directory in components/greeting.toml"},
		{"a short commit", jobspec.Source{Repo: repo.url(), Ref: "main", Commit: "main"}, []string{`"main" is not a full commit`}, ""},
		{"an address without a scheme", jobspec.Source{Repo: "git@host:x/y.git", Ref: "main", Commit: commit}, []string{"is not a URL"}, "correct repo in components/greeting.toml"},
		{"a password in the address", jobspec.Source{Repo: "https://user:hunter2@127.0.0.1:1/x.git", Ref: "main", Commit: commit}, []string{"https://127.0.0.1:1/x.git at main: "}, "--source-map https://127.0.0.1:1/x.git=FOLDER"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tc.source.Kind = "git"
			j := buildJob(t, tc.source)
			j.spec.File = "components/greeting.toml"
			r := j.run(t)
			wantContains(t, "remedy", r.Remedy, tc.fix)
			for _, want := range tc.want {
				wantContains(t, "error", r.Error, want)
			}
			if !slices.Contains([]jobspec.Outcome{jobspec.OutcomeFailed, jobspec.OutcomeRefused}, r.Outcome) {
				t.Errorf("outcome %s", r.Outcome)
			}
			if strings.Contains(j.log(t)+j.read(t, "out/result.json"), "hunter2") {
				t.Error("the password is told")
			}
		})
	}
}
