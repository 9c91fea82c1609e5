package pods

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/services/builder/internal/database"
	"github.com/berth-dev/berth/services/builder/internal/fleet/roster"
	"github.com/berth-dev/berth/services/internal/fault"
)

// office looks after the Build Runner of one org, once.
type office struct {
	fleet   *Fleet
	orgID   string
	pod     *corev1.Pod // as it is; nil when there is none
	aliases []corev1.HostAlias
	log     *slog.Logger
	// done: there is neither a pod nor anything for it to do.
	done bool
}

func (o *office) work(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	s, err := o.state(ctx)
	if err != nil {
		return err
	}
	act, why := Decide(s)
	if act != Leave {
		o.log.InfoContext(ctx, "build runner pod", "act", act, "why", why, "runner_id", s.RunnerID)
	}
	switch act {
	case Make:
		return o.make(ctx, s.RunnerID)
	case Tidy:
		if err := o.deleteSecret(ctx); err != nil {
			return err
		}
		o.fleet.mu.Lock()
		o.fleet.tidied[o.pod.UID] = true
		o.fleet.mu.Unlock()
	case Replace:
		return errors.Join(o.deletePod(ctx, nil), o.deleteSecret(ctx))
	case Force:
		return o.deletePod(ctx, new(int64))
	case End:
		return errors.Join(o.deletePod(ctx, nil), o.deleteSecret(ctx), o.deleteAccount(ctx))
	case Leave:
		o.done = s.Pod == nil
	}
	return nil
}

// state reads what Decide needs.
func (o *office) state(ctx context.Context) (State, error) {
	f := o.fleet
	s := State{Now: time.Now(), MaxAge: f.config.MaxAge, MaxIdle: f.config.MaxIdle}
	err := f.roster.Store.Tx(ctx, o.orgID, func(ctx context.Context, tx *database.Tx) error {
		row, err := tx.BuilderRunnerOfOrg(ctx)
		if errors.Is(err, fault.ErrNotFound) {
			return nil // revoked, and no other one yet
		}
		if err != nil {
			return err
		}
		work, err := tx.BuilderWork(ctx)
		s.RunnerID, s.Open, s.Busy, s.LastEnd = row.ID, work.Open, work.Busy, work.LastEnd
		return err
	})
	if err != nil {
		return s, fmt.Errorf("read work: %w", err)
	}
	if o.pod == nil {
		return s, nil
	}
	s.Pod = seen(o.pod)
	if _, s.Trust, err = f.trust(o.orgID); err != nil {
		return s, err
	}
	s.Form = f.pod(o.orgID, s.RunnerID, o.aliases).Annotations[annotationForm]
	f.mu.Lock()
	s.Untidy = !f.tidied[o.pod.UID]
	f.mu.Unlock()
	s.Secret, err = f.roster.Look(ctx, o.orgID, s.Pod.RunnerID, enrolment(o.pod))
	return s, err
}

// make makes the pod, and then what it enrols with. The pod is first: there can be
// one of its name, so of two builders one goes on. Killed on the way it leaves a pod
// that cannot enrol, which is replaced after deadAfter.
func (o *office) make(ctx context.Context, runnerID string) error {
	f := o.fleet
	enrolled, err := f.roster.Enrolled(ctx, o.orgID, runnerID)
	if err != nil {
		return err
	}
	files, digest, err := f.trust(o.orgID)
	if err != nil {
		return err
	}
	pod := f.pod(o.orgID, runnerID, o.aliases)
	pod.Annotations[annotationTrust] = digest
	hash := newEnrolment(pod, files)

	_, err = f.cluster.ServiceAccounts(f.config.Namespace).Create(ctx, f.account(o.orgID, runnerID), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make service account: %w", err)
	}
	made, err := f.cluster.Pods(f.config.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil // another builder was faster, or the one before is not gone yet
	}
	if err != nil {
		return fmt.Errorf("make pod: %w", err)
	}
	if err := o.deleteSecret(ctx); err != nil { // of a pod before
		return err
	}
	if _, err := f.cluster.Secrets(f.config.Namespace).Create(ctx, f.secret(o.orgID, runnerID, files), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("make secret: %w", err)
	}
	if err := f.roster.Admit(ctx, o.orgID, runnerID, roster.Admission{Hash: hash, Replaces: enrolled}); err != nil {
		return err
	}
	f.mu.Lock()
	f.pods[o.orgID] = made
	f.mu.Unlock()
	return nil
}

// deletePod ends this pod, and no other of its name. seconds is what it gets; nil:
// what its spec says.
func (o *office) deletePod(ctx context.Context, seconds *int64) error {
	err := o.fleet.cluster.Pods(o.fleet.config.Namespace).Delete(ctx, o.pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: seconds, Preconditions: metav1.NewUIDPreconditions(string(o.pod.UID)),
	})
	return unlessGone("pod", err)
}

func (o *office) deleteSecret(ctx context.Context) error {
	return unlessGone("secret", o.fleet.cluster.Secrets(o.fleet.config.Namespace).Delete(ctx, nameOf(o.orgID), metav1.DeleteOptions{}))
}

func (o *office) deleteAccount(ctx context.Context) error {
	return unlessGone("service account", o.fleet.cluster.ServiceAccounts(o.fleet.config.Namespace).Delete(ctx, nameOf(o.orgID), metav1.DeleteOptions{}))
}

// unlessGone: what is gone, or has another one in its place, is deleted.
func unlessGone(what string, err error) error {
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("delete %s: %w", what, err)
}
