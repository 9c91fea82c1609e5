package drill

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/seal"
)

// theSecret is a value of the customer's that is given to one script.
const theSecret = "correct-horse-battery-staple"

// vendorCode is an accepted script with what it tries. What it finds it appends to the
// install's file NAME.leak, which is where the drill looks.
type vendorCode struct {
	name, try string
	lines     []string
	// tampers is a file below the data directory that it should not change.
	tampers string
	// world is where else to look; nil for nowhere.
	world func(*scene) (effect bool, err error)
	where string
}

func (v vendorCode) script() jobspec.Script {
	lines := append([]string{`D=$(dirname "$BERTH_INSTALL_DIR")`, `leak() { echo "$*" >> "$BERTH_INSTALL_DIR/` + v.name + `.leak"; }`}, v.lines...)
	return check(v.name, append(lines, "true")...)
}

// outside is a file that a script would leave on the machine itself.
var outside = fmt.Sprintf("berth-drill-was-here-%d", os.Getpid())

// longSleep names a process that a script leaves behind.
var longSleep = fmt.Sprintf("%d.4711", 100000+os.Getpid())

var allVendorCode = []vendorCode{
	{name: "engine-reads-keys", try: "reads the runner's keys", lines: []string{`for f in identity seal-identity salt secrets/enrolment; do head -c 16 "$D/$f" >/dev/null 2>&1 && leak "$f"; done`}},
	{name: "engine-reads-trust", try: "reads whom the customer trusts", lines: []string{`grep -q . "$D/trust.json" 2>/dev/null && leak trust.json`}},
	{name: "engine-reads-plans", try: "reads plans and the chain", lines: []string{`for f in "$D"/plans/* "$D/chain.jsonl" "$D/scripts.json"; do head -c 4 "$f" >/dev/null 2>&1 && leak "$f"; done`}},
	{name: "engine-reads-neighbours", try: "reads the folders of other jobs", lines: []string{`for d in "$D"/jobs/*; do case "$PWD" in "$d"*) ;; *) head -c 4 "$d/engine/job.json" >/dev/null 2>&1 && leak "$d";; esac; done`}},
	{name: "engine-reads-the-agent", try: "reads the environment and memory of the agent", lines: []string{
		`for p in /proc/[0-9]*; do tr '\0' ' ' < "$p/cmdline" 2>/dev/null | grep -q 'berth-runner.*run' && { cat "$p/environ" >/dev/null 2>&1 && leak "$p/environ"; }; done`,
	}},
	{name: "engine-reads-root", try: "reads a file that only root may read", lines: []string{`head -c 1 /etc/shadow >/dev/null 2>&1 && leak /etc/shadow`}},
	{name: "engine-writes-trust", try: "adds a key to those that the customer trusts", tampers: "trust.json", lines: []string{`echo '{}' > "$D/trust.json"`}},
	{name: "engine-writes-scripts", try: "accepts scripts in the customer's place", tampers: "scripts.json", lines: []string{`echo '{}' > "$D/scripts.json"; rm -f "$D/scripts.json"`}},
	{name: "engine-writes-the-chain", try: "cuts the record of what was done", tampers: "chain.jsonl", lines: []string{`: > "$D/chain.jsonl"; rm -f "$D/chain.jsonl"`}},
	{name: "engine-writes-answers", try: "agrees to changes in the customer's place", where: "files in the folder of the customer's answers", lines: []string{`mkdir -p "$D/consents" && echo '{}' > "$D/consents/answer-evil.json"`},
		world: func(s *scene) (bool, error) { return exists(filepath.Join(s.dir.Consents(), "answer-evil.json")) }},
	{name: "engine-writes-the-switch", try: "sets the customer's switch", where: "the file of the switch", lines: []string{`echo '{"mode":"run"}' > "$D/switch.json"`},
		world: func(s *scene) (bool, error) { return exists(s.dir.Switch()) }},
	{name: "engine-writes-outside", try: "leaves a file on the machine", where: "the machine's /etc and /tmp", lines: []string{
		`echo x > /etc/` + outside, `echo x > /tmp/` + outside, `echo x > /var/tmp/` + outside,
	}, world: func(*scene) (bool, error) {
		for _, dir := range []string{"/etc", "/tmp", "/var/tmp"} {
			file := filepath.Join(dir, outside)
			if found, err := exists(file); err != nil || found {
				_ = os.Remove(file)
				return found, err
			}
		}
		return false, nil
	}},
	{name: "engine-kills-the-agent", try: "kills every process that it sees", where: "whether the runner's process is the same", lines: []string{
		`for p in /proc/[0-9]*; do p=${p#/proc/}; [ "$p" = $$ ] || [ "$p" = "$PPID" ] || [ "$p" = 1 ] || kill -9 "$p" 2>/dev/null; done`,
	}, world: func(s *scene) (bool, error) {
		select {
		case <-s.ended:
			return true, nil
		default:
			return false, nil
		}
	}},
	{name: "engine-gains-rights", try: "becomes root by programs of the machine", lines: []string{
		`for s in "su -c id" "sudo -n id" "pkexec id"; do timeout 5 $s </dev/null 2>/dev/null | grep -q 'uid=0' && leak "$s"; done`,
		`grep -q '^NoNewPrivs:.*0' /proc/self/status && leak "setuid programs count"`,
		`[ "$(grep '^CapEff:' /proc/self/status | tr -d '[:space:]' | cut -d: -f2)" = 0000000000000000 ] || leak "capabilities"`,
	}},
	{name: "engine-stays", try: "leaves a process behind when its job is over", where: "the machine's processes", lines: []string{`setsid nohup sleep ` + longSleep + ` >/dev/null 2>&1 &`},
		world: func(*scene) (bool, error) { return processOf(longSleep) }},
}

func exists(file string) (bool, error) {
	_, err := os.Lstat(file)
	if os.IsNotExist(err) {
		return false, nil
	}
	return err == nil, err
}

// processOf tells whether a process has a word among its arguments, after the time that
// one takes to be ended.
func processOf(word string) (found bool, err error) {
	for range 30 {
		found = false
		all, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			return false, err
		}
		for _, file := range all {
			if raw, err := os.ReadFile(file); err == nil && strings.Contains(string(raw), word) && strings.HasPrefix(string(raw), "sleep") {
				found = true
			}
		}
		if !found {
			return false, nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return found, nil
}

// engineGroup: code that the customer accepted, and that does more than it should.
func engineGroup() group {
	good := check("engine")
	g := group{
		name: "engines",
		shape: func() shape {
			sh := shape{scripts: []jobspec.Script{good}}
			for _, v := range allVendorCode {
				sh.scripts = append(sh.scripts, v.script())
			}
			return sh
		},
		allowed: Attack{Name: "engine", Adversary: Vendor, Try: "writes into its install's directory", World: inFile("engine"), run: func(ctx context.Context, s *scene) (finding, error) {
			return ran(s, "engine", func() (jobspec.Result, error) { return s.do(ctx, run(good)) })
		}},
	}
	for _, v := range allVendorCode {
		a := Attack{Name: v.name, Adversary: Vendor, Try: v.try, World: inFile(v.name + ".leak")}
		switch {
		case v.tampers != "":
			a.World = "the bytes of " + v.tampers
			a.run = func(ctx context.Context, s *scene) (finding, error) {
				return tampers(ctx, s, v.script(), filepath.Join(s.dir.Path(), v.tampers))
			}
		case v.world != nil:
			a.World = v.where
			a.run = func(ctx context.Context, s *scene) (finding, error) {
				if _, err := s.do(ctx, run(v.script())); err != nil {
					return finding{}, err
				}
				effect, err := v.world(s)
				return finding{effect: effect, rule: sealedOff}, err
			}
		default:
			a.run = v.leaks
		}
		g.attacks = append(g.attacks, a)
	}
	return g
}

// leaks runs the code and looks at what it found.
func (v vendorCode) leaks(ctx context.Context, s *scene) (finding, error) {
	result, err := s.do(ctx, run(v.script()))
	if err != nil {
		return finding{}, err
	}
	if n, err := s.lines(v.name); err != nil || n == 0 {
		return finding{}, fmt.Errorf("the script did not run: %s: %w", result.Error, err)
	}
	leak, err := os.ReadFile(s.mark(v.name + ".leak"))
	if os.IsNotExist(err) {
		return finding{rule: sealedOff}, nil
	}
	return finding{effect: len(leak) > 0, rule: strings.TrimSpace(string(leak))}, err
}

// secretScript is a script that is given a secret and does something with it.
func secretScript(name string, lines ...string) jobspec.Script {
	s := check(name, lines...)
	s.Action.Steps[0].EnvVars = map[string]string{"GIVEN": "{{ .nuon.inputs.inputs.secret }}"}
	return s
}

// sealGroup: secrets of the customer's, which are to stay where they are.
func sealGroup() group {
	keeps := func(name string) jobspec.Script {
		return secretScript(name, `printf %s "$GIVEN" > "$BERTH_INSTALL_DIR/`+name+`.value"`)
	}
	opened := func(name, try string, edits ...func(*sealing)) (Attack, jobspec.Script) {
		script := keeps(name)
		return Attack{Name: name, Adversary: Plane, Try: try, World: "the value in the install's file \"" + name + ".value\"", run: func(ctx context.Context, s *scene) (finding, error) {
			state, err := s.sealed(theSecret, edits...)
			if err != nil {
				return finding{}, err
			}
			spec := run(script)
			spec.State = state
			result, err := s.do(ctx, spec)
			if err != nil {
				return finding{}, err
			}
			value, err := os.ReadFile(s.mark(name + ".value"))
			if os.IsNotExist(err) {
				err = nil
			}
			return finding{effect: strings.Contains(string(value), theSecret), rule: ruleOf(result)}, err
		}}, script
	}
	left := func(name, try, line string) (Attack, jobspec.Script) {
		script := secretScript(name, line)
		return Attack{Name: name, Adversary: Vendor, Try: try, World: "every byte that left the machine", run: func(ctx context.Context, s *scene) (finding, error) {
			secret := theSecret + "-of-" + name
			state, err := s.sealed(secret)
			if err != nil {
				return finding{}, err
			}
			spec := run(script)
			spec.State = state
			result, err := s.do(ctx, spec)
			if err != nil {
				return finding{}, err
			}
			if n, err := s.lines(name); err != nil || n == 0 {
				return finding{}, fmt.Errorf("the script did not run: %s: %w", result.Error, err)
			}
			err = s.plane.until(ctx, "the log", func() bool { return strings.Contains(s.plane.received.String(), "end of "+name) })
			coded := base64.StdEncoding.EncodeToString([]byte(secret))
			return finding{effect: s.plane.saw(secret) || s.plane.saw(coded), rule: "known secrets are redacted"}, err
		}}, script
	}
	g := group{name: "seals"}
	var all []jobspec.Script
	add := func(a Attack, script jobspec.Script) {
		g.attacks, all = append(g.attacks, a), append(all, script)
	}
	var first jobspec.Script
	g.allowed, first = opened("seal", "a secret that was sealed to this install, for the script that names it")
	all = append(all, first)
	add(opened("seal-of-another-install", "a secret that was sealed for another install", func(s *sealing) { s.install = "ins" + strings.Repeat("0", 20) }))
	add(opened("seal-of-another-org", "a secret that was sealed for another org", func(s *sealing) { s.org = "org" + strings.Repeat("0", 20) }))
	add(opened("seal-of-a-state", "a sealed Terraform state, passed off as an input", func(s *sealing) {
		s.purpose = &seal.Purpose{OrgID: s.org, InstallID: s.install, Kind: seal.KindState, Resource: "res"}
	}))
	add(opened("seal-of-another-place", "a sealed output, passed off as an input", func(s *sealing) {
		s.purpose = &seal.Purpose{OrgID: s.org, InstallID: s.install, Kind: seal.KindOutput, Resource: "res", Path: "/outputs/password"}
	}))
	// The line that ends the log is in two parts: the text of the script is no such line.
	add(left("secret-in-the-log", "prints the secret that it was given", `echo "it is $GIVEN"; echo "end of" "secret-in-the-log"`))
	add(left("secret-in-base64", "prints it in base64", `echo "it is $(printf %s "$GIVEN" | base64 -w0)"; printf '%s\n' "$GIVEN"; echo "end of" "secret-in-base64"`))
	add(left("secret-in-an-error", "fails with it", `echo "$GIVEN" >&2; echo "end of" "secret-in-an-error"; [ -z "$GIVEN" ] || (echo "fatal: $GIVEN" >&2; exit 3)`))
	add(left("secret-in-numbers", "writes it among its numbers", `printf 'berth_drill{value="%s"} 1\n' "$GIVEN" > "${BERTH_METRICS:-/dev/null}"; echo "end of" "secret-in-numbers"`))
	g.shape = func() shape { return shape{scripts: all} }
	return g
}
