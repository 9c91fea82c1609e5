package helm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/berth-dev/berth/pkg/helmstate"
	"github.com/berth-dev/berth/runner/engine/heldreleases"
	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/kube"
)

// Where releases are kept: in the cluster, or with the control plane.
const (
	driverConfigMap = "configmap"
	driverSecret    = "secret"
	driverHeld      = heldreleases.Name
)

// keeping reaches the places where the release of a component may be.
type keeping struct {
	cluster *kube.Cluster
	in      inputs
	// held is what the control plane keeps, nil when the job was given none.
	held *heldreleases.Store
	// inventory tells whether the component was deployed before.
	inventory *kube.Inventory
}

// readHeld reads what the control plane keeps of a job's release, for one that
// changes nothing.
func readHeld(ctx context.Context, j *job.Job) (*heldreleases.Store, error) {
	if !j.Spec.KeepsState() {
		return nil, nil
	}
	held, err := heldreleases.Read(ctx, j.Env)
	return orNone(j, held, err)
}

// openHeld is the same for a job that changes it.
func openHeld(ctx context.Context, j *job.Job) (*heldreleases.Store, error) {
	if !j.Spec.KeepsState() {
		return nil, nil
	}
	held, err := heldreleases.Open(ctx, j.Env, j.Spec.JobID)
	return orNone(j, held, err)
}

// orNone is nothing where the state is another tool's, for a release that is in the
// cluster and never was in it.
func orNone(j *job.Job, held *heldreleases.Store, err error) (*heldreleases.Store, error) {
	if j.Spec.HelmChart.StorageDriver != driverHeld && errors.Is(err, helmstate.ErrOther) {
		return nil, nil
	}
	return held, err
}

// driver is Helm's storage under a name.
func (k keeping) driver(name string) (driver.Driver, error) {
	switch {
	case name == driverConfigMap:
		return driver.NewConfigMaps(k.cluster.Client.CoreV1().ConfigMaps(k.in.Namespace)), nil
	case name == driverSecret:
		return driver.NewSecrets(k.cluster.Client.CoreV1().Secrets(k.in.Namespace)), nil
	case name == driverHeld && k.held != nil:
		return k.held.Driver(k.in.Namespace), nil
	case name == driverHeld:
		return nil, job.Refusef("run a newer runner", "this job was given no place where the control plane keeps releases")
	}
	return nil, job.Refusef(`write "configmap", "secret" or "nuon"`, "storage_driver %q is not known", name)
}

// revisions are those that one place has of the release, oldest first. The error of a
// place that may not be read is errForbidden.
func (k keeping) revisions(name string) ([]*release.Release, error) {
	d, err := k.driver(name)
	if err != nil {
		return nil, err
	}
	found, err := storage.Init(d).History(k.in.ReleaseName)
	if err != nil && !errors.Is(err, driver.ErrReleaseNotFound) {
		if name != k.in.StorageDriver && apierrors.IsForbidden(err) {
			return nil, errForbidden
		}
		return nil, kube.Explain(err, "read the history of release "+k.in.ReleaseName)
	}
	sortRevisions(found)
	return found, nil
}

// find reads all places and decides which of them counts.
func (k keeping) find(ctx context.Context) (located, error) {
	names := []string{k.in.StorageDriver}
	for _, other := range []string{driverSecret, driverConfigMap, driverHeld} {
		if other != k.in.StorageDriver && (other != driverHeld || k.held != nil) {
			names = append(names, other)
		}
	}
	var places []place
	var closed []string
	for _, name := range names {
		found, err := k.revisions(name)
		if errors.Is(err, errForbidden) {
			closed = append(closed, name)
			continue
		}
		if err != nil {
			return located{}, err
		}
		if name == driverHeld && len(found) > 0 {
			there, err := k.namespaceStands(ctx)
			if err != nil {
				return located{}, err
			}
			if !there {
				return located{from: k.in.StorageDriver, gone: len(found)}, nil // nothing can be kept in the cluster either
			}
		}
		places = append(places, place{name, found})
	}
	at, err := locate(k.in.ReleaseName, k.in.StorageDriver, places)
	if err == nil && len(at.history) == 0 && len(closed) > 0 {
		err = k.neverDeployed(ctx, closed)
	}
	return at, err
}

// errForbidden says that the runner may not read a place.
var errForbidden = errors.New("it may not be read")

// neverDeployed fails when the release may be in a place that cannot be read: the
// component was deployed before, and it is in none of the others.
func (k keeping) neverDeployed(ctx context.Context, closed []string) error {
	record, err := k.inventory.Load(ctx)
	if err != nil || !record.Exists {
		return err
	}
	return job.Failf("let the runner list, get and delete these objects in the namespace, for as long as the move takes",
		"release %s was deployed before and is not kept by the driver %q; it may be kept by %s, which the runner may not read", k.in.ReleaseName, k.in.StorageDriver, quotedList(closed))
}

// forgetGone drops what the control plane keeps of a release whose namespace is gone.
// It is called before an apply makes the namespace.
func (k keeping) forgetGone(ctx context.Context, log func(string, ...any)) error {
	if k.held == nil {
		return nil
	}
	found, err := k.revisions(driverHeld)
	if err != nil || len(found) == 0 {
		return err
	}
	if there, err := k.namespaceStands(ctx); err != nil || there {
		return err
	}
	log("namespace %s is gone, and all of release %s with it: dropping its %d records", k.in.Namespace, k.in.ReleaseName, len(found))
	return k.held.Drop(k.in.Namespace, k.in.ReleaseName)
}

// namespaceStands tells whether the namespace is there, and not just being removed.
func (k keeping) namespaceStands(ctx context.Context) (bool, error) {
	found, err := k.cluster.Get(ctx, kube.Ref{Version: "v1", Kind: "Namespace", Name: k.in.Namespace})
	if err != nil {
		return false, kube.Explain(err, "read namespace "+k.in.Namespace)
	}
	return found != nil && found.GetDeletionTimestamp() == nil, nil
}

// place is what one storage has of a release, oldest first.
type place struct {
	driver string
	found  []*release.Release
}

func (p place) last() int {
	if len(p.found) == 0 {
		return 0
	}
	return p.found[len(p.found)-1].Version
}

// located is where a release is.
type located struct {
	history []*release.Release
	// from is the place of the history, the wanted one when there is no history.
	from string
	// copies are other places that still have revisions of the same history: a move
	// from there was cut short.
	copies []string
	// gone is how many revisions the control plane keeps of a release whose namespace
	// is no more: with the cluster's own storage they would be gone too.
	gone int
}

// locate decides which place counts: the one with the newest revision, then the one
// with the most, and among equals the wanted one. Others may only have what it has too, left by a move that was
// cut short. It is pure.
func locate(name, wanted string, places []place) (located, error) {
	at := located{from: wanted}
	var lead place
	for _, p := range places {
		newer := cmp.Or(cmp.Compare(p.last(), lead.last()), cmp.Compare(len(p.found), len(lead.found)))
		if newer > 0 || newer == 0 && p.driver == wanted {
			lead = p
		}
	}
	if lead.last() == 0 {
		return at, nil
	}
	at.history, at.from = lead.found, lead.driver
	for _, p := range places {
		if p.driver == lead.driver || p.last() == 0 {
			continue
		}
		if !copyOf(p, lead) {
			return located{}, job.Failf("find out which of them is deployed, and remove the records of the other",
				"there are two releases %s, which differ: the driver %q has revision %d, the driver %q has revision %d", name, lead.driver, lead.last(), p.driver, p.last())
		}
		if p.driver != wanted {
			at.copies = append(at.copies, p.driver)
		}
	}
	return at, nil
}

// copyOf tells whether all revisions of p are in lead too.
func copyOf(p, lead place) bool {
	return !slices.ContainsFunc(p.found, func(r *release.Release) bool {
		return !slices.ContainsFunc(lead.found, func(other *release.Release) bool {
			return r.Version == other.Version && r.Manifest == other.Manifest &&
				r.Info != nil && other.Info != nil && r.Info.FirstDeployed.Equal(other.Info.FirstDeployed) && r.Info.LastDeployed.Equal(other.Info.LastDeployed)
		})
	})
}

// moves is the place that the history leaves for another, "" when it stays.
func (at located) moves(to string) string {
	if at.from == to || len(at.history) == 0 {
		return ""
	}
	return at.from
}

// settled tells whether everything is where it is to be.
func (at located) settled(wanted string) bool {
	return at.moves(wanted) == "" && len(at.copies) == 0 && at.gone == 0
}

// describe says what is out of the ordinary, nothing when all is well. done is the
// place that the history has left already, in the change before this one.
func (at located) describe(in inputs, done string) []string {
	var notes []string
	if from := cmp.Or(at.moves(in.StorageDriver), done); from != "" {
		notes = append(notes, fmt.Sprintf("release %s moves from the storage driver %q to %q, with all its revisions; nothing is installed twice", in.ReleaseName, from, in.StorageDriver))
	}
	if len(at.copies) > 0 {
		notes = append(notes, fmt.Sprintf("release %s: a move was cut short; what is left of it with the storage driver %s is removed", in.ReleaseName, quotedList(at.copies)))
	}
	if at.gone > 0 {
		notes = append(notes, fmt.Sprintf("namespace %s, where release %s was deployed, is gone: its %d records go too", in.Namespace, in.ReleaseName, at.gone))
	}
	return notes
}

func quotedList(names []string) string {
	var all []string
	for _, name := range names {
		all = append(all, quoted(name))
	}
	return strings.Join(all, " and ")
}

// move brings the history to the place that is wanted, and removes it from all others.
// guard makes a storage one that is written only under the claim. Whole copies come
// first: cut short, there are two equal histories, or a part of one, and the next
// apply continues.
func (k keeping) move(at located, log func(string, ...any), guard func(driver.Driver) driver.Driver) error {
	from, to := at.moves(k.in.StorageDriver), k.in.StorageDriver
	switch {
	case from == "":
	case to == driverHeld:
		if err := k.held.Adopt(k.in.Namespace, k.in.ReleaseName, at.history); err != nil {
			return err
		}
	default:
		if err := k.copyTo(to, at.history, guard); err != nil {
			return err
		}
	}
	for _, name := range append(at.copies, from) {
		if name == "" {
			continue
		}
		if err := k.clear(name, guard); err != nil {
			return err
		}
	}
	if from != "" {
		log("release %s is moved from the storage driver %q to %q: %d revisions", k.in.ReleaseName, from, to, len(at.history))
	}
	return nil
}

// copyTo writes a history into the cluster, oldest first: what is there of it always
// ends below the original.
func (k keeping) copyTo(name string, history []*release.Release, guard func(driver.Driver) driver.Driver) error {
	d, err := k.driver(name)
	if err != nil {
		return err
	}
	to := storage.Init(guard(d))
	for _, r := range history {
		err := to.Create(r)
		if errors.Is(err, driver.ErrReleaseExists) {
			err = to.Update(r)
		}
		if err != nil {
			return kube.Explain(err, fmt.Sprintf("move revision %d of release %s", r.Version, r.Name))
		}
	}
	return nil
}

// clear removes what a place has of the release, the oldest first: as long as the
// newest is there, the rest is a part of it.
func (k keeping) clear(name string, guard func(driver.Driver) driver.Driver) error {
	if name == driverHeld {
		return k.held.Drop(k.in.Namespace, k.in.ReleaseName)
	}
	d, err := k.driver(name)
	if err != nil {
		return err
	}
	found, err := k.revisions(name)
	if err != nil {
		return err
	}
	from := storage.Init(guard(d))
	for _, r := range found {
		if _, err := from.Delete(r.Name, r.Version); err != nil && !errors.Is(err, driver.ErrReleaseNotFound) {
			return kube.Explain(err, fmt.Sprintf("remove revision %d of release %s from the storage driver %q", r.Version, r.Name, name))
		}
	}
	return nil
}
