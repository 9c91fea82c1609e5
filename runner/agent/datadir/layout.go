// Package datadir owns the runner's data directory: where things are, who may
// read them, and how they are written so that a crash leaves the old or the new
// contents, never half of them. What the files mean is the business of the
// packages that keep them there.
//
//	DIR/
//	  trust.json          written by the customer: what the runner believes
//	  authorities/ca.crt  what trust.json may name, where it was given: see Take
//	  config.json         optional settings of the runner, the customer's too
//	  secrets/enrolment   single-use secret, deleted once the runner is enrolled
//	  identity            Ed25519 key of the runner, PKCS#8 in PEM
//	  seal-identity       age key that opens what is sealed to the install
//	  seal-form           there from the start, or once all was sealed again: only
//	                      what names its purpose opens
//	  customer-secrets/   the customer's secrets, each value sealed: see package secretstore
//	  salt                32 bytes: makes digests of inputs unguessable
//	  reseal.json         that the customer wants everything sealed again, or how
//	                      that ended
//	  handover.json       the customer's signature by which this machine took over
//	  recovery-change.json the old recovery key's signature under the new one
//	  runner.json         who the runner is, once it is enrolled
//	  chain.jsonl         the install's chain; this runner is its one writer
//	  chain-head          its head once more; chain-anchor.json: at the last anchor
//	  chain-held.json     events that wait for a decision about the chain
//	  chain-problem.json  why mutations wait for the customer, chain-decision.json what was decided
//	  session.json        the last session, and the one that is asked for
//	  key-problem.json    that another process holds this runner's key
//	  orders              what was begun: engines per order, tries per effect
//	  nonces, fences.json which nonces were used, which grants were seen
//	  settings.json       the last good signed settings, and when they came
//	  hosts.json          where logs and artifacts go, as the first session said
//	  schedule.json       the last tick of each scheduled action
//	  samples.json        the runner's own numbers that wait for the control plane
//	  remedies.json       what was done about unhealthy checks, and the count of it
//	  scripts.json        the scripts of releases that were accepted, with their texts
//	  script-runs.json    the runs of scripts that are not in the chain yet
//	  switch.json         the customer's switch
//	  roles/              which roles of the app the customer has switched on: see package roles
//	  consents/           what the customer's side agreed to, and its standing rules: see package consents
//	  drift.toml          which differences from what was deployed the customer accepts: see package driftrule
//	  egress/             what left the agent: see package egress
//	  kept/orders/<job>.json, kept/logs/<attempt>.json  for berth-runner evidence
//	  support/            bundles for support, and which of them the customer released
//	  egress-off.json     which classes of it the customer has switched off
//	  claim.json          the claim whose answer is still awaited
//	  status.json         what `berth-runner status` shows of the running agent
//	  plans/<change>.json what was planned, in the runner's own words
//	  plans/<change>.summary what people are shown of it, when it is too long to be sent
//	  jobs/<job>.<attempt>/  see package job
//	  runs/<run>.json     reports of scheduled runs that wait to be delivered
//	  spool/<job>.<attempt>/ log lines that wait to be delivered
//	  evidence/<job>.<attempt>/ what a refused or lost attempt left
//	  artifacts/          the install's own registry, an OCI layout
//	  install/            durable scratch of the install, the engine's own
//	  tools/              programs that the agent fetched
//	  release-keys.json   the release keys that the customer pinned, for updates of the runner
//	  vendor-releases.json   the signed releases of the app that were seen and accepted
//	  revoked-releases.json  those that the customer revoked
//	  vendor-key-changes.json  the customer's last changes of the vendor's keys
//	  versions/           versions of the runner that updates brought: see package versions
//	  locks/<resource>    held while an engine works on the resource
//	  lock                held by the one active agent
package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrBusy is returned by Lock while another agent works on the directory.
var ErrBusy = errors.New("another agent is active on this data directory")

// Dir is a data directory.
type Dir struct{ path string }

// At names the data directory at path without touching it.
func At(path string) (Dir, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return Dir{}, fmt.Errorf("data directory: %w", err)
	}
	return Dir{path: abs}, nil
}

// Make creates what is missing of the directory, closed to everybody else.
// With an engine group, its members may pass through to the directories that
// are theirs, without being able to list anything.
func (d Dir) Make(engineGID int) error {
	for _, name := range []string{"", "secrets", "plans", "runs", "spool", "evidence", "locks", "guardrails", "kept", "kept/orders", "kept/logs", "support"} {
		if err := os.MkdirAll(d.join(name), 0o700); err != nil {
			return fmt.Errorf("data directory: %w", err)
		}
	}
	passage := os.FileMode(0o700)
	if engineGID > 0 {
		passage = 0o710
	}
	for _, name := range []string{"", "jobs"} {
		if err := os.MkdirAll(d.join(name), passage); err != nil {
			return fmt.Errorf("data directory: %w", err)
		}
		if engineGID > 0 {
			if err := os.Chown(d.join(name), -1, engineGID); err != nil {
				return fmt.Errorf("data directory: %w", err)
			}
		}
		if err := closeTo(d.join(name), passage); err != nil {
			return fmt.Errorf("data directory: %w", err)
		}
	}
	return nil
}

// closeTo gives a directory its mode. One of another owner keeps its own, where
// this user can work in it: the root of a volume in a cluster, which its driver
// gave to the pod's group.
func closeTo(path string, mode os.FileMode) error {
	err := os.Chmod(path, mode)
	if errors.Is(err, fs.ErrPermission) && unix.Access(path, unix.R_OK|unix.W_OK|unix.X_OK) == nil {
		return nil
	}
	return err
}

// Usable says whether this user can work on what is in the directory: it may
// have been written by an agent of another user, root above all.
func (d Dir) Usable() error {
	for _, name := range []string{"", "identity", "runner.json", "jobs"} {
		info, err := os.Stat(d.join(name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = unix.Access(d.join(name), unix.R_OK|unix.W_OK)
		}
		if err == nil {
			continue
		}
		owner := "another user"
		if info != nil {
			if stat, ok := info.Sys().(*syscall.Stat_t); ok {
				owner = fmt.Sprintf("user %d", stat.Uid)
			}
		}
		return fmt.Errorf("%s belongs to %s, and this runner is user %d: %w", d.join(name), owner, os.Geteuid(), err)
	}
	return nil
}

// Path is the directory itself.
func (d Dir) Path() string { return d.path }

// Roles has which roles of the app the customer has switched on.
func (d Dir) Roles() string { return d.join("roles") }

// Consents holds what the customer's side agreed to.
func (d Dir) Consents() string { return d.join("consents") }

// CustomerSecrets has the secrets that the customer keeps for the install.
func (d Dir) CustomerSecrets() string { return d.join("customer-secrets") }

// BuildKit is what builds of images need: client, socket and cache.
func (d Dir) BuildKit() string { return d.join("buildkit") }

// VendorReleases are the signed releases of the app that were seen and accepted.
func (d Dir) VendorReleases() string { return d.join("vendor-releases.json") }

// RevokedReleases are those that the customer revoked.
func (d Dir) RevokedReleases() string { return d.join("revoked-releases.json") }

// VendorKeyChanges are the customer's last changes of the vendor's keys.
func (d Dir) VendorKeyChanges() string { return d.join("vendor-key-changes.json") }

// ReleaseKeys are the keys whose releases the customer trusts.
func (d Dir) ReleaseKeys() string { return d.join("release-keys.json") }

// LockFile is what the one active agent holds.
func (d Dir) LockFile() string { return d.join("lock") }

// Tools is where programs are that the agent fetched.
func (d Dir) Tools() string { return d.join("tools") }

// Inits is what terraform init found out, resource by resource.
func (d Dir) Inits() string { return d.join("inits") }

// Trees is where artifacts are unpacked for all jobs. It is a cache of this agent
// process.
func (d Dir) Trees() string { return d.join("trees") }

// States is where the newest states of each resource are, sealed.
func (d Dir) States() string { return d.join("states") }

// Trust is what the customer's side wrote down to be believed.
func (d Dir) Trust() string { return d.join("trust.json") }

// Config holds settings of the runner.
func (d Dir) Config() string { return d.join("config.json") }

// Contexts holds the customer's kubeconfigs for named contexts.
func (d Dir) Contexts() string { return d.join("contexts") }

// Enrolment is the single-use secret, until the runner is enrolled.
func (d Dir) Enrolment() string { return d.join("secrets", "enrolment") }

// StackReport is the phone-home of the stack, until it was delivered.
func (d Dir) StackReport() string { return d.join("secrets", "stack.json") }

// Code recognises the code that was taken in last.
func (d Dir) Code() string { return d.join("code.json") }

// Reseal is the customer's wish that everything is sealed again.
func (d Dir) Reseal() string { return d.join("reseal.json") }

// Unlock is the customer's wish that the lock of a Terraform state is freed.
func (d Dir) Unlock() string { return d.join("unlock.json") }

// Handover is the customer's signature by which this machine takes over.
func (d Dir) Handover() string { return d.join("handover.json") }

// RecoveryChange is the signature of a recovery key under the one after it.
func (d Dir) RecoveryChange() string { return d.join("recovery-change.json") }

// Runner says who the runner is.
func (d Dir) Runner() string { return d.join("runner.json") }

// Chain is the install's chain.
func (d Dir) Chain() string { return d.join("chain.jsonl") }

// ChainHead is the head of the chain, kept a second time.
func (d Dir) ChainHead() string { return d.join("chain-head") }

// ChainAnchor is the head of the chain when it took the last anchor.
func (d Dir) ChainAnchor() string { return d.join("chain-anchor.json") }

// ChainProblem is why mutations wait for the customer's decision.
func (d Dir) ChainProblem() string { return d.join("chain-problem.json") }

// ChainHeld are events that wait for the decision.
func (d Dir) ChainHeld() string { return d.join("chain-held.json") }

// ChainDecision is the decision, until it was carried out.
func (d Dir) ChainDecision() string { return d.join("chain-decision.json") }

// Session names the last session, and the one that is asked for.
func (d Dir) Session() string { return d.join("session.json") }

// KeyProblem says that another process holds this runner's key.
func (d Dir) KeyProblem() string { return d.join("key-problem.json") }

// Orders are counts of what was begun for each order.
func (d Dir) Orders() string { return d.join("orders") }

// Hosts are the addresses that the first session named.
func (d Dir) Hosts() string { return d.join("hosts.json") }

// Nonces are those of orders that were used.
func (d Dir) Nonces() string { return d.join("nonces") }

// Fences are the grants that were seen.
func (d Dir) Fences() string { return d.join("fences.json") }

// Settings is the envelope of the last good settings.
func (d Dir) Settings() string { return d.join("settings.json") }

// Schedule is the last tick of each action.
func (d Dir) Schedule() string { return d.join("schedule.json") }

// Remedies is what the runner did about unhealthy checks, and its count.
func (d Dir) Remedies() string { return d.join("remedies.json") }

// Samples are the runner's own numbers that wait for the control plane.
func (d Dir) Samples() string { return d.join("samples.json") }

// Scripts are those that were accepted.
func (d Dir) Scripts() string { return d.join("scripts.json") }

// ScriptRuns are the runs of scripts that are not in the chain yet.
func (d Dir) ScriptRuns() string { return d.join("script-runs.json") }

// Switch is the customer's switch.
func (d Dir) Switch() string { return d.join("switch.json") }

// ClusterSwitch is the switch as it was set in the cluster.
func (d Dir) ClusterSwitch() string { return d.join("switch-cluster.json") }

// DriftRules has the differences from what was deployed that the customer accepts.
func (d Dir) DriftRules() string { return d.join("drift.toml") }

// Guardrails has the customer's guardrails.
func (d Dir) Guardrails() string { return d.join("guardrails") }

// GuardrailsOfCluster is the ConfigMap of guardrails, as it was last.
func (d Dir) GuardrailsOfCluster() string { return d.join("guardrails", ".cluster.json") }

// GuardrailsAgreed are kinds of objects that the customer is not asked about again.
func (d Dir) GuardrailsAgreed() string { return d.join("guardrails-agreed.json") }

// GuardrailsState is what there is to show of the guardrails.
func (d Dir) GuardrailsState() string { return d.join("guardrails-state.json") }

// Deprovision is the customer's word that what holds data may be removed.
func (d Dir) Deprovision() string { return d.join("deprovision.json") }

// Egress has the egress ledger, and logs that were withheld.
func (d Dir) Egress() string { return d.join("egress") }

// KeptOrder is the vendor's signed order of a job that changed something.
func (d Dir) KeptOrder(job string) string { return d.join("kept", "orders", job+".json") }

// KeptLog says how the log of an attempt ended.
func (d Dir) KeptLog(attempt string) string { return d.join("kept", "logs", attempt+".json") }

// Support has bundles for support, and what the customer released of them.
func (d Dir) Support() string { return d.join("support") }

// EgressOff are classes of bytes that the customer switched off.
func (d Dir) EgressOff() string { return d.join("egress-off.json") }

// Claim is the claim whose answer is awaited.
func (d Dir) Claim() string { return d.join("claim.json") }

// Status is what the agent tells of itself.
func (d Dir) Status() string { return d.join("status.json") }

// Jobs has a directory for each attempt.
func (d Dir) Jobs() string { return d.join("jobs") }

// Runs has the reports of runs that never began.
func (d Dir) Runs() string { return d.join("runs") }

// Artifacts is the install's own registry.
func (d Dir) Artifacts() string { return d.join("artifacts") }

// Install is the durable scratch of the install.
func (d Dir) Install() string { return d.join("install") }

// Plan is the record of what was planned for a change.
func (d Dir) Plan(change string) string { return d.join("plans", change+".json") }

// PlanSummary is all that there is to show of a plan, as JSON, when it is too
// long to be sent.
func (d Dir) PlanSummary(change string) string { return d.join("plans", change+".summary") }

// Plans has all such records.
func (d Dir) Plans() string { return d.join("plans") }

// Spool has the log lines of an attempt that wait to be delivered.
func (d Dir) Spool(attempt string) string { return d.join("spool", attempt) }

// Evidence has what nobody took of an attempt.
func (d Dir) Evidence(attempt string) string { return d.join("evidence", attempt) }

// ResourceLock is held while an engine works on the resource.
func (d Dir) ResourceLock(id string) string { return d.join("locks", id) }

func (d Dir) identity() string     { return d.join("identity") }
func (d Dir) sealIdentity() string { return d.join("seal-identity") }
func (d Dir) sealForm() string     { return d.join("seal-form") }
func (d Dir) salt() string         { return d.join("salt") }

func (d Dir) join(parts ...string) string {
	return filepath.Join(append([]string{d.path}, parts...)...)
}

// Lock makes the caller the one active agent until the file is closed or the
// process ends.
func (d Dir) Lock() (*os.File, error) {
	return Flock(d.join("lock"), ErrBusy)
}

// Unlock ends a lock of Flock at once, also where a child that is just being started still
// has a copy of the file: a file that is only closed stays locked until that one is, too.
func Unlock(f *os.File) {
	_ = unix.Flock(int(f.Fd()), unix.LOCK_UN) // the end of the process unlocks it in any case
	_ = f.Close()
}

// Locked reports whether an agent is active, without waiting for it.
func (d Dir) Locked() bool { return Held(d.join("lock")) }

// Flock takes the lock file at path, made when missing, or returns busy while
// somebody else has it. The lock lasts until every copy of the file is closed,
// also those that child processes inherited.
func Flock(path string, busy error) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, busy
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f, nil
}

// AwaitFlock is Flock for who waits until the lock file is free.
func AwaitFlock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f, nil
}

// Held reports whether somebody has the lock file at path.
func Held(path string) bool {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err != nil {
		return true // cannot tell: take the safe side
	}
	defer f.Close()
	return unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) != nil
}
