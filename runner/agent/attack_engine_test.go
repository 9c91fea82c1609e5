package agent_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent"
	"github.com/berth-dev/berth/runner/agent/datadir"
)

// outsider makes a file of the agent's user that no engine may get at, outside
// of the data directory.
func (r *runner) outsider(f form) (dir, file string) {
	r.t.Helper()
	dir = filepath.Join(filepath.Dir(r.dir.Path()), "outside")
	file = filepath.Join(dir, "f")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(outsiders), 0o600); err != nil {
		r.t.Fatal(err)
	}
	if f == byNamespaces && os.Geteuid() == 0 {
		for _, path := range []string{dir, file} {
			if err := os.Chown(path, r.uid, r.uid); err != nil {
				r.t.Fatal(err)
			}
		}
	}
	return dir, file
}

// outsiders is what a file of outsider says.
const outsiders = "the agent's own"

// untouched checks that a file is as outsider made it.
func (r *runner) untouched(f form, file string) {
	r.t.Helper()
	info, err := os.Lstat(file)
	if err != nil {
		r.t.Fatalf("the agent's file: %v", err)
	}
	owner := os.Geteuid()
	if f == byNamespaces && owner == 0 {
		owner = r.uid
	}
	if stat, _ := info.Sys().(*syscall.Stat_t); int(stat.Uid) != owner || info.Mode().Perm() != 0o600 {
		r.t.Errorf("the agent's file is now of user %d, mode %s", stat.Uid, info.Mode())
	}
	if raw, err := os.ReadFile(file); string(raw) != outsiders {
		r.t.Errorf("the agent's file now says %q (%v)", raw, err)
	}
}

func (r *runner) folderOf(job string) string { return filepath.Join(r.dir.Jobs(), job+".1", "engine") }

// A neighbour that has the path of another job's folder tries to swap
// directories for symlinks while root gives the folder away.
func TestAttackHandOver(t *testing.T) {
	t.Parallel()
	inForms(t, attackHandOver)
}

func attackHandOver(t *testing.T, f form) {
	c := newChange(t, f.begin)
	dir, file := c.outsider(f)

	module := t.TempDir()
	for n := range last + 1 {
		sub := filepath.Join(module, fmt.Sprintf("d%05d", n))
		if err := os.Mkdir(sub, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(sub, "f"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	layout, err := oci.Open(c.dir.Artifacts())
	if err != nil {
		t.Fatal(err)
	}
	packed, err := oci.Pack(t.Context(), layout, oci.PackInput{Kind: oci.KindTerraformModule, Dir: module})
	if err != nil {
		t.Fatal(err)
	}
	c.artifact.Digest = packed.Digest.String()
	if f == byNamespaces {
		c.yield()
	}

	victim := c.spec(jobspec.OperationPlan)
	victim.JobID = "job_00000000000000000000000001"
	attacker := c.plane.give(script("touch "+c.file("ready"), "swap "+c.folderOf(victim.JobID)+"/in/artifact "+dir+" "+c.file("done")))
	c.appears(c.file("ready"))
	job := c.plane.give(victim)
	if result := c.plane.result(t, job); result.Outcome != jobspec.OutcomeSucceeded {
		t.Errorf("the victim: %+v", result)
	}
	c.touch("done")
	c.plane.result(t, attacker)
	for _, line := range c.plane.log(t, c.plane.streamOf(attacker)) {
		if strings.HasPrefix(line, "swapped") {
			t.Error(line)
			break
		}
	}
	c.untouched(f, file)
}

// What an engine leaves in the place of its own folders leads root nowhere: not
// when results are read, not when the folder is removed.
func TestAttackCollect(t *testing.T) {
	t.Parallel()
	inForms(t, attackCollect)
}

func attackCollect(t *testing.T, f form) {
	r := newRunner(t, runnerapi.RunnerKindInstall)
	f.begin(r)
	dir, file := r.outsider(f)
	job := r.plane.give(script(
		"sh mkdir out/deep && ln -s "+dir+" out/deep/there && ln -s "+dir+" work/there && ln -s "+file+" out/outputs.json",
		"sh ln -s "+dir+" out/pinned; rm -rf work/tmp && ln -s "+dir+" work/tmp",
		"sh mkdir -p out/shut/in work/shut/in && touch out/shut/in/f work/shut/in/f && chmod 0 out/shut/in out/shut work/shut/in work/shut",
		"sh mv out away 2>/dev/null; ln -s "+dir+" other 2>/dev/null && echo leak: writes next to its folders",
	))
	result := r.plane.result(t, job)
	if len(result.Outputs) > 0 {
		t.Errorf("outputs out of a file of root's: %v", result.Outputs)
	}
	r.noLeaks(job)
	r.gone(job)
	r.untouched(f, file)
}

// noLeaks fails with what an attacker says it got.
func (r *runner) noLeaks(job string) {
	r.t.Helper()
	lines := r.plane.log(r.t, r.plane.streamOf(job))
	for _, line := range lines {
		if strings.HasPrefix(line, "leak") {
			r.t.Error(line)
		}
	}
	if len(lines) == 0 {
		r.t.Error("the attacker said nothing at all")
	}
}

// A job of the same install looks for everything that is not its own while
// another one is at work.
func TestAttackNeighbour(t *testing.T) {
	t.Parallel()
	inForms(t, attackNeighbour)
}

func attackNeighbour(t *testing.T, f form) {
	r := newRunner(t, runnerapi.RunnerKindInstall)
	const secret = "correct-horse-battery"
	var sameUser []string
	if f == byNamespaces {
		sameUser = r.attacksOnTheSameUser(f)
	}
	f.begin(r)
	r.plane.until(t, "the enrolment", func() bool { return len(r.plane.enrolled) > 0 })
	spec := script("whoami", "touch "+r.file("begun"), "wait "+r.file("go"), "print unharmed")
	spec.State = r.sealed(map[string]any{"secret": secret})
	victim := r.plane.give(spec)
	r.appears(r.file("begun"))

	hosts := filepath.Join(os.TempDir(), filepath.Base(filepath.Dir(r.dir.Path()))+".txt")
	if err := os.WriteFile(hosts, []byte("the host's"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(hosts) })
	helper := filepath.Join(filepath.Dir(r.dir.Path()), "id")
	raw, err := os.ReadFile("/usr/bin/id")
	if err == nil {
		err = os.WriteFile(helper, raw, 0o755)
	}
	if err == nil {
		err = os.Chmod(helper, 0o755|os.ModeSetuid)
	}
	if err != nil {
		t.Fatal(err)
	}

	data, folder := r.dir.Path(), r.folderOf(victim)
	own := "/tmp/attack-of-neighbour-" + strconv.Itoa(os.Getpid()) // no one else's file has that name
	lines := []string{"whoami", "print begin"}
	for _, path := range []string{
		data + "/identity", data + "/seal-identity", data + "/salt", data + "/trust.json", data + "/chain.jsonl", data + "/runner.json",
		filepath.Dir(folder) + "/attempt.json", filepath.Dir(folder) + "/stdout.log", folder + "/job.json", folder + "/work/home", hosts,
	} {
		lines = append(lines, "sh cat "+path+" >/dev/null 2>&1 && echo leak: read "+path, "sh ls -d "+path+" >/dev/null 2>&1 && echo leak: sees "+path)
	}
	lines = append(lines, sameUser...)
	lines = append(lines,
		"sh ls "+data+" "+data+"/jobs | grep -v -e : -e '^$' -e '^jobs$' -e '^install$' -e ^job_.*[.]1$ | sed 's/^/leak: lists /'",
		"sh for e in /proc/[0-9]*/environ; do p=${e#/proc/}; p=${p%/environ}; [ $p = 1 ] || [ $p = $$ ] || ! cat $e >/dev/null 2>&1 || tr '\\0' '\\n' <$e | grep -q berth-no-such || true; done",
		"sh for c in /proc/[0-9]*/cmdline; do tr '\\0' ' ' <$c 2>/dev/null | grep -q '["+victim[:1]+"]"+victim[1:]+"' && echo leak: sees the process of the victim; done",
		"sh [ $(ls -d /proc/[0-9]* | wc -l) -lt 10 ] || echo leak: sees the processes of the machine",
		"sh kill -9 $(ls /proc | grep '^[0-9]*$' | grep -v -e '^1$' -e \"^$$\\$\") 2>/dev/null",
		"sh grep -q '^NoNewPrivs:.1$' /proc/self/status || echo leak: may get new privileges",
		"sh grep -q '^CapBnd:.0000000000000000$' /proc/self/status || echo leak: has capabilities within reach",
		"sh [ $(id -G | wc -w) = 1 ] || echo leak: is in other groups",
		"sh "+helper+" -u | grep -qx 0 && echo leak: setuid works",
		"sh unshare -Urm sh -c 'umount -l "+data+"; cat "+data+"/identity' >/dev/null 2>&1 && echo leak: looked behind the mount",
		"sh umount "+data+" 2>/dev/null && echo leak: took the mount away",
		"sh touch in/x job.json 2>/dev/null && echo leak: writes what it was given",
		"sh echo mine >"+own+" && echo mine >work/tmp/x && echo mine >out/x && echo mine >$BERTH_INSTALL_DIR/x && cat job.json >/dev/null && echo works",
	)
	attacker := r.plane.give(script(lines...))
	if result := r.plane.result(t, attacker); result.Outcome != jobspec.OutcomeSucceeded {
		t.Errorf("the attacker: %+v", result)
	}
	r.noLeaks(attacker)
	said := r.plane.log(t, r.plane.streamOf(attacker))
	if !slices.Contains(said, "works") {
		t.Errorf("the attacker cannot do its own work:\n%s", strings.Join(said, "\n"))
	}
	r.touch("go")
	if result := r.plane.result(t, victim); result.Outcome != jobspec.OutcomeSucceeded {
		t.Errorf("the victim: %+v", result)
	}
	users := map[string]bool{}
	for _, line := range append(said, r.plane.log(t, r.plane.streamOf(victim))...) {
		if strings.HasPrefix(line, "uid ") {
			users[line] = true
		}
	}
	if want := map[form]int{byUsers: 2, byNamespaces: 1}[f]; len(users) != want {
		t.Errorf("two jobs at once have the users %v, want %d", users, want)
	}
	if _, err := os.Stat(own); err == nil {
		t.Error("what a job wrote to its /tmp is in the machine's")
	}
}

// attacksOnTheSameUser try what the kernel would grant to the agent's user. What
// they look for is there before the agent starts.
func (r *runner) attacksOnTheSameUser(f form) []string {
	_, file := r.outsider(f)
	name := "@berth-attack-" + filepath.Base(filepath.Dir(r.dir.Path()))
	var said []string
	if scopes() {
		l, err := net.Listen("unix", name)
		if err != nil {
			r.t.Fatal(err)
		}
		r.t.Cleanup(func() { _ = l.Close() })
		said = append(said, "dial "+name)
	}
	if os.Geteuid() == 0 { // only root can put something of the user's there
		mine := func(parent, below string) string {
			dir, err := os.MkdirTemp(parent, "berth-attack-")
			if err != nil {
				r.t.Fatal(err)
			}
			r.t.Cleanup(func() { _ = os.RemoveAll(dir) })
			path := filepath.Join(dir, below)
			err = errors.Join(os.Chmod(dir, 0o755), os.MkdirAll(path, 0o755), os.WriteFile(path+"/f", []byte(outsiders), 0o600),
				os.Chown(path, r.uid, r.uid), os.Chown(path+"/f", r.uid, r.uid))
			if err != nil {
				r.t.Fatal(err)
			}
			return path
		}
		for _, parent := range []string{"/var/lib", "/opt"} {
			dir := mine(parent, "")
			said = append(said, "sh cat "+dir+"/f >/dev/null 2>&1 && echo leak: reads "+dir)
		}
		deep := mine("/opt", "of/root")
		said = append(said, "sh { echo x >"+deep+"/new; } 2>/dev/null && echo leak: writes to "+deep)
	}
	return append(said,
		"sh cat "+file+" >/dev/null 2>&1 && echo leak: reads what the runner has elsewhere",
		"sh unshare -U true 2>/dev/null && echo leak: makes a user namespace",
		"sh mount -o remount,rw,bind in 2>/dev/null && echo leak: opened in/",
		"sh mount -o remount,rw,bind . 2>/dev/null && echo leak: opened its folder",
		"sh mount -t tmpfs none work/home 2>/dev/null && echo leak: mounts",
		"sh { echo x >job.json; } 2>/dev/null && echo leak: rewrites its job",
		"sh rm -f job.json 2>/dev/null && echo leak: removes its job",
		"sh { chmod 700 in && touch in/x; } 2>/dev/null && echo leak: opened in/ by its mode",
		"sh mv in out/in 2>/dev/null && echo leak: moved in/ away",
		"sh ln -s /etc other 2>/dev/null && echo leak: writes in its folder",
		"sh ls /dev | grep -v -x -e fd -e full -e null -e ptmx -e pts -e random -e shm -e stderr -e stdin -e stdout -e tty -e urandom -e zero | sed 's/^/leak: device /'",
		"sh [ -z \"$(ls /dev/pts | grep -v ptmx)\" ] || echo leak: terminals of others",
		"sh echo x >/dev/null && head -c 1 /dev/urandom >/dev/null || echo leak: not even /dev/null works",
		"sh find / -xdev -maxdepth 3 -user $(id -u) ! -path '/proc/*' ! -path '/tmp*' ! -path /var ! -path /var/tmp ! -path '/dev*' 2>/dev/null | while read f; do [ -z \"$(ls -A $f 2>/dev/null)\" ] || echo leak: has $f; done",
		"sh for f in $(find / -maxdepth 2 -type d ! -path '/proc*' 2>/dev/null); do case $f in /tmp*|/var/tmp*|/dev/shm*) ;; *) [ ! -w $f ] || echo leak: writes to $f ;; esac; done",
		"sh kill -0 "+strconv.Itoa(os.Getpid())+" 2>/dev/null && echo leak: signals the agent",
		"sh { echo 100 >/proc/sys/user/max_user_namespaces; } 2>/dev/null && echo leak: allows itself namespaces",
	)
}

// scopes tells whether the kernel keeps processes off abstract sockets, by
// Landlock.
func scopes() bool {
	const create, version, hasScopes = 444, 1, 6
	v, _, errno := syscall.RawSyscall(create, 0, 0, version)
	return errno == 0 && v >= hasScopes
}

// A neighbour tries to rewrite what an apply was approved with, from before the
// apply begins until after it runs.
func TestAttackPinned(t *testing.T) {
	t.Parallel()
	inForms(t, attackPinned)
}

func attackPinned(t *testing.T, f form) {
	// The apply waits, then says what is pinned.
	var r *runner
	c := newChangeOf(t, func(made *runner) { r = made; f.begin(r) }, func(s *jobspec.Spec) {
		s.TerraformModule.VarFiles = []string{"touch " + r.file("begun") + "\nwait " + r.file("go") + "\n" +
			"sh { echo rewritten >in/pinned/plan; } 2>/dev/null && echo leak: rewrote its own plan\n" +
			"sh { chmod -R u+w in && mv in/pinned in/other; } 2>/dev/null && echo leak: moved its own plan\n" +
			"sh { mount -o remount,rw,bind in || umount in; } 2>/dev/null && echo leak: opened in/\n" +
			"sh cat in/pinned/plan; echo; cat in/artifact/main.tf"}
	})
	attack := strings.Join([]string{
		`sh target=""; while [ ! -e ` + c.file("go") + ` ]`,
		`do [ -n "$target" ] || target=$(cat ` + c.file("target") + ` 2>/dev/null)`,
		`for f in "$target"/in/pinned/plan "$target"/in/artifact/main.tf; do { echo rewritten >"$f" && echo "leak: rewrote $f"; } 2>/dev/null; done`,
		`done; echo end`,
	}, "; ")
	attack = strings.ReplaceAll(attack, "do; ", "do ")
	attacker := c.plane.give(script("touch "+c.file("ready"), attack))
	c.appears(c.file("ready"))
	job := c.order(asItIs)
	if err := os.WriteFile(c.file("target.new"), []byte(c.folderOf(job)), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(c.file("target.new"), c.file("target")); err != nil {
		t.Fatal(err)
	}
	c.appears(c.file("begun"))
	time.Sleep(200 * time.Millisecond) // for the attacker, not for the test
	c.touch("go")
	result := c.plane.result(t, job)
	if result.Outcome != jobspec.OutcomeSucceeded {
		t.Errorf("the apply: %+v", result)
	}
	c.noLeaks(job)
	lines := c.plane.log(t, c.plane.streamOf(job))
	if !slices.Contains(lines, `{"planned":"api"}`) || !slices.Contains(lines, "# nothing") || slices.Contains(lines, "rewritten") {
		t.Errorf("the apply ran with:\n%s", strings.Join(lines, "\n"))
	}
	c.plane.result(t, attacker)
	c.noLeaks(attacker)
	if said := c.plane.log(t, c.plane.streamOf(attacker)); !slices.Contains(said, "end") {
		t.Errorf("the attacker did not come to its end:\n%s", strings.Join(said, "\n"))
	}
}

// A limit that was asked for and cannot be set: nothing runs as if it were.
func TestAttackLimits(t *testing.T) {
	t.Parallel()
	inForms(t, attackLimits)
}

func attackLimits(t *testing.T, f form) {
	const tooMany = 1 << 62 // more than a kernel counts
	r := newRunner(t, runnerapi.RunnerKindInstall)
	if f == byNamespaces && os.Geteuid() == 0 {
		r.yield()
		cmd := r.process(processConfig{PIDs: tooMany}, r.user())
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "--engine-limits off") {
			t.Errorf("the agent ended with %v, want it to say how to go on:\n%s", err, out)
		}
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	config := agent.Config{
		Data: r.dir.Path(), Engine: r.binary, Executable: r.binary, EngineUID: r.uid, Version: "1.2.0", EnginePIDs: tooMany,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	err := agent.Run(ctx, config)
	if err == nil || !strings.Contains(err.Error(), "--engine-limits off") {
		t.Errorf("the agent ended with %v, want it to say how to go on", err)
	}
}

// Without root there are no control groups to write: the agent runs engines
// without limits and says so.
func TestWithoutLimits(t *testing.T) {
	t.Parallel()
	needsNamespaces(t)
	r := newRunner(t, runnerapi.RunnerKindInstall)
	byNamespaces.begin(r)
	job := r.plane.give(script("print hello"))
	if result := r.plane.result(t, job); result.Outcome != jobspec.OutcomeSucceeded {
		t.Errorf("result = %+v", result)
	}
	var status agent.Status
	if _, err := datadir.ReadJSON(r.dir.Status(), &status); err != nil {
		t.Fatal(err)
	}
	r.plane.mu.Lock()
	defer r.plane.mu.Unlock()
	for _, said := range []string{status.Limits, fmt.Sprint(r.plane.sessions[0].Facts["limits"])} {
		if !strings.HasPrefix(said, "none: control groups cannot be used here: ") {
			t.Errorf("limits are said to be %q", said)
		}
	}
}

// Where the kernel gives no namespaces, and where somebody turned it off, an
// engine shares the agent's user, and the agent says so.
func TestWithoutNamespaces(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		config processConfig
		want   string
	}{
		"the kernel gives none": {processConfig{Barred: true}, "the runner is not root, and user namespaces cannot be used here, so engines share its user: "},
		"--engine-uids is off":  {processConfig{UIDs: "off"}, "--engine-uids is off"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.config.Barred {
				needsNamespaces(t)
			}
			r := newRunner(t, runnerapi.RunnerKindInstall)
			r.yield()
			cmd := r.process(tc.config, r.user())
			if tc.config.Barred { // a user namespace in which there are no further ones
				uid := os.Geteuid()
				if uid == 0 {
					uid = r.uid
					cmd.SysProcAttr.Credential.NoSetGroups = true
				}
				gid := os.Getegid()
				if gid == 0 {
					gid = r.uid
				}
				const sysResource = 24
				cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
				cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
				cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
				cmd.SysProcAttr.AmbientCaps = []uintptr{sysResource}
			}
			r.run(cmd)
			job := r.plane.give(script("read "+r.dir.Path()+"/identity", "whoami"))
			if result := r.plane.result(t, job); result.Outcome != jobspec.OutcomeSucceeded {
				t.Errorf("result = %+v", result)
			}
			if lines := r.plane.log(t, r.plane.streamOf(job)); !slices.Contains(lines, "readable true") {
				t.Errorf("the engine cannot even read the agent's key, so this test proves nothing:\n%s", strings.Join(lines, "\n"))
			}
			var status agent.Status
			if _, err := datadir.ReadJSON(r.dir.Status(), &status); err != nil {
				t.Fatal(err)
			}
			r.plane.mu.Lock()
			defer r.plane.mu.Unlock()
			s := r.plane.sessions[0]
			if s.Trust != runnerapi.TrustDevelopment || !strings.HasPrefix(fmt.Sprint(s.Facts["isolation"]), tc.want) || status.Trust != "development" {
				t.Errorf("trust = %s because %v, status %+v; want development because %s", s.Trust, s.Facts["isolation"], status, tc.want)
			}
		})
	}
}

// What an engine needs of the hidden places is shown to it, and no more, and it
// cannot write there.
func TestEngineSees(t *testing.T) {
	t.Parallel()
	inForms(t, engineSees)
}

func engineSees(t *testing.T, f form) {
	r := newRunner(t, runnerapi.RunnerKindInstall)
	dir, err := os.MkdirTemp("", "berth-seen-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	seen, other := filepath.Join(dir, "seen"), filepath.Join(dir, "other")
	for _, path := range []string{seen, other} {
		if err := os.WriteFile(path, []byte("x"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Chmod(dir, 0o755), os.Chmod(seen, 0o666), datadir.WriteJSON(r.dir.Config(), map[string]any{"engine_sees": seen + ":" + dir + "/absent"})); err != nil {
		t.Fatal(err)
	}
	f.begin(r)
	job := r.plane.give(script("read "+seen, "sh { echo y >"+seen+"; } 2>/dev/null && echo leak: writes there", "sh cat "+other+" >/dev/null 2>&1 && echo leak: reads what is next to it"))
	r.plane.result(t, job)
	r.noLeaks(job)
	if lines := r.plane.log(t, r.plane.streamOf(job)); !slices.Contains(lines, "readable true") {
		t.Errorf("the engine does not see what was named:\n%s", strings.Join(lines, "\n"))
	}
}

// Before an agent starts, preflight does what it would do to find out.
func TestPreflightWithoutRoot(t *testing.T) {
	t.Parallel()
	needsNamespaces(t)
	r := newRunner(t, runnerapi.RunnerKindInstall)
	r.yield()
	cmd := exec.CommandContext(t.Context(), r.binary, "preflight", r.dir.Path())
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: r.user()}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "engines are kept apart by user namespaces - <nil>\n") {
		t.Errorf("preflight: %v\n%s", err, out)
	}
}

// An engine tries everything on the files of its artifact, which other jobs share, and
// the next job reads what was built.
func TestAttackShared(t *testing.T) {
	t.Parallel()
	inForms(t, func(t *testing.T, f form) {
		const file = "in/artifact/main.tf"
		var data string
		c := newChangeOf(t, func(r *runner) { data = r.dir.Path(); f.begin(r) }, func(s *jobspec.Spec) {
			var lines []string
			for what, try := range map[string]string{
				"rewrote": "{ echo rewritten >" + file + "; }", "appended": "{ echo more >>" + file + "; }", "cut": "truncate -s 1 " + file,
				"opened": "chmod 666 " + file, "took": "chown $(id -u) " + file, "dated": "touch -d 2001-01-01 " + file,
				"removed": "rm -f " + file, "moved": "mv " + file + " work/", "replaced": "cp /etc/hostname in/artifact/",
				"linked and wrote": "ln " + file + " work/own && { echo mine >work/own; }", "found trees": "ls " + data + "/trees",
			} {
				lines = append(lines, "sh "+try+" >/dev/null 2>&1 && echo leak: "+what)
			}
			s.TerraformModule.VarFiles = []string{strings.Join(append(lines, "sh cat "+file), "\n")}
		})
		job := c.order(asItIs) // after the plan, which did the same
		if result := c.plane.result(t, job); result.Outcome != jobspec.OutcomeSucceeded {
			t.Fatalf("the apply: %+v", result)
		}
		c.noLeaks(job)
		if said := c.plane.log(t, c.plane.streamOf(job)); !slices.Contains(said, "# nothing") {
			t.Errorf("after the attacks of its plan the apply reads:\n%s", strings.Join(said, "\n"))
		}
		kept, err := filepath.Glob(filepath.Join(c.dir.Trees(), "*", "main.tf"))
		if want := map[form]int{byUsers: 1, byNamespaces: 0}[f]; err != nil || len(kept) != want {
			t.Fatalf("%d trees are kept for all jobs (%v), want %d", len(kept), err, want)
		}
		for _, path := range kept {
			raw, err := os.ReadFile(path)
			info, statErr := os.Stat(path)
			if err := errors.Join(err, statErr); err != nil {
				t.Fatal(err)
			}
			if sys, _ := info.Sys().(*syscall.Stat_t); string(raw) != "# nothing\n" || info.Mode() != 0o444 || sys.Uid != 0 {
				t.Errorf("what all jobs share says %q, mode %s, user %d", raw, info.Mode(), sys.Uid)
			}
		}
	})
}
