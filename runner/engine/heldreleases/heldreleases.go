// Package heldreleases is Helm's storage of releases with the control plane
// (storage_driver = "nuon"): a driver.Driver over the state backend that the agent
// keeps for a job.
//
//	Helm's action ─▶ Driver ─▶ one document, serial + 1 ─▶ the job's state proxy ─▶ sealed ─▶ runner-api
//
// All revisions of a component are one document (package helmstate), so a move into it
// is one write that happens or does not. Each write is made under the lock that the
// job holds, and is there when the call returns: what a killed engine leaves is what it
// would leave in the cluster.
package heldreleases

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"

	"github.com/berth-dev/berth/pkg/helmstate"
	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/stateclient"
)

// Name is what storage_driver calls this storage.
const Name = "nuon"

// errReadOnly is what a job gets that took no lock.
var errReadOnly = errors.New("a plan writes no release")

// Store is the document of a component during one job. Its methods may be called
// concurrently.
type Store struct {
	ctx     context.Context //nolint:containedctx // of the job: Helm's storage passes none
	backend stateclient.Backend
	lock    *stateclient.Lock // nil: nothing is written

	mu      sync.Mutex
	doc     helmstate.Document
	unsaved error
}

// Read reads the document for a job that changes nothing.
func Read(ctx context.Context, env map[string]string) (*Store, error) {
	s := &Store{ctx: ctx, backend: env}
	return s, s.load()
}

// Open locks the document for a job that changes it, and reads it. The lock is given
// back by Close.
func Open(ctx context.Context, env map[string]string, jobID string) (*Store, error) {
	// Writes go on when the job is to stop: how it ended is recorded too.
	s := &Store{ctx: context.WithoutCancel(ctx), backend: env}
	lock, err := s.backend.Lock(ctx, rand.Text(), jobID)
	if err != nil {
		return nil, job.Failf("try again when it has ended; a lock that nobody holds any more is freed by the next attempt", "the records of the release: %v", err)
	}
	s.lock = lock
	if err := s.load(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Store) load() error {
	if s.backend["TF_HTTP_ADDRESS"] == "" {
		return job.Refusef("run a newer runner", "this job was given no place where the control plane keeps releases")
	}
	body, err := s.backend.Read(s.ctx)
	if err != nil {
		return fmt.Errorf("read the records of the release: %w", err)
	}
	if s.doc, err = helmstate.Parse(body); err != nil {
		f := job.Refusef("look at it with `berth-runner state show`, and tear down what a component of this name had in it before", "the records of the release: %v", err)
		if errors.Is(err, helmstate.ErrOther) {
			return &otherState{f}
		}
		return f
	}
	return nil
}

// otherState is the refusal of a state that is of another tool. It is also
// [helmstate.ErrOther].
type otherState struct{ refused *job.Failure }

func (e *otherState) Error() string { return e.refused.Error() }

func (e *otherState) Unwrap() []error { return []error{e.refused, helmstate.ErrOther} }

// Close gives the lock back. The agent frees one that stays.
func (s *Store) Close() error {
	if s == nil || s.lock == nil {
		return nil
	}
	return s.lock.Free(s.ctx)
}

// Unsaved is the first write that failed, nil when all are kept: Helm continues when it
// cannot write how an action ended.
func (s *Store) Unsaved() error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unsaved
}

// Position is the lineage and serial of the document, zero before the first one.
func (s *Store) Position() (lineage string, serial int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.doc.Lineage, s.doc.Serial
}

// Names are the releases that have records, as namespace/name, in order.
func (s *Store) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for _, r := range s.doc.Helm.Records {
		names = append(names, r.Namespace+"/"+r.Release)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Size is how many bytes the records take that stay when one more is added and at most
// most are kept, in base64 as they are written. name is the release that is added to,
// in a namespace.
func (s *Store) Size(namespace, name string, most int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	size, newest := 0, 0
	for _, r := range slices.Backward(s.doc.Helm.Records) { // in the order of their revisions
		if r.Namespace == namespace && r.Release == name {
			if newest++; newest >= most {
				continue
			}
		}
		size += len(r.Packed)*4/3 + recordOverhead
	}
	return size
}

// recordOverhead is what a record takes outside of what is packed, in bytes, at most.
const recordOverhead = 4 << 10

// Drop removes all records of a release in one write.
func (s *Store) Drop(namespace, name string) error {
	if !slices.Contains(s.Names(), namespace+"/"+name) {
		return nil
	}
	return s.change(func(records []helmstate.Record) ([]helmstate.Record, error) {
		return slices.DeleteFunc(records, func(r helmstate.Record) bool { return r.Namespace == namespace && r.Release == name }), nil
	})
}

// Adopt puts releases that were kept elsewhere in the place of the records of a
// release, in one write.
func (s *Store) Adopt(namespace, name string, list []*release.Release) error {
	var added []helmstate.Record
	for _, r := range list {
		record, err := pack(keyOf(name, r.Version), namespace, r)
		if err != nil {
			return err
		}
		added = append(added, record)
	}
	return s.change(func(records []helmstate.Record) ([]helmstate.Record, error) {
		records = slices.DeleteFunc(records, func(r helmstate.Record) bool { return r.Namespace == namespace && r.Release == name })
		return append(records, added...), nil
	})
}

// keyOf is how Helm's storage calls a revision.
func keyOf(name string, revision int) string {
	return fmt.Sprintf("sh.helm.release.v1.%s.v%d", name, revision)
}

// change hands in what f makes of the records. When the backend does not take it, the
// records are as they were.
func (s *Store) change(f func([]helmstate.Record) ([]helmstate.Record, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lock == nil {
		return errReadOnly
	}
	records, err := f(slices.Clone(s.doc.Helm.Records))
	if err != nil {
		return err
	}
	next := s.doc.Next(rand.Text(), records)
	body, err := job.Marshal(next)
	if err == nil && len(body) > helmstate.MaxBytes {
		err = fmt.Errorf("they would take %d MiB, and at most %d MiB are kept: lower history_limit", len(body)>>20, helmstate.MaxBytes>>20)
	}
	if err == nil {
		err = s.lock.Write(s.ctx, body)
	}
	if err != nil {
		err = fmt.Errorf("the records of the release could not be saved: %w", err)
		if s.unsaved == nil {
			s.unsaved = err
		}
		return err
	}
	s.doc = next
	return nil
}

// Driver is the storage of one namespace, as Helm's actions use it.
func (s *Store) Driver(namespace string) driver.Driver { return releases{s, namespace} }

// releases implements [driver.Driver]. Each answer is a copy: actions change what they
// get.
type releases struct {
	store     *Store
	namespace string
}

// Name implements [driver.Driver].
func (d releases) Name() string { return Name }

// Get implements [driver.Queryor].
func (d releases) Get(key string) (*release.Release, error) {
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	for _, r := range d.store.doc.Helm.Records {
		if r.Namespace == d.namespace && r.Key == key {
			return unpack(r)
		}
	}
	return nil, driver.ErrReleaseNotFound
}

// List implements [driver.Queryor].
func (d releases) List(filter func(*release.Release) bool) ([]*release.Release, error) {
	return d.find(func(helmstate.Record) bool { return true }, filter)
}

// Query implements [driver.Queryor]. None that matches is an error, as with Helm's own
// drivers.
func (d releases) Query(labels map[string]string) ([]*release.Release, error) {
	list, err := d.find(func(r helmstate.Record) bool {
		own := map[string]string{"name": r.Release, "owner": "helm", "status": r.Status, "version": strconv.Itoa(r.Revision)}
		for name, want := range labels {
			if got, system := own[name]; system && got != want || !system && r.Labels[name] != want {
				return false
			}
		}
		return true
	}, func(*release.Release) bool { return true })
	if err == nil && len(list) == 0 {
		err = driver.ErrReleaseNotFound
	}
	return list, err
}

func (d releases) find(matches func(helmstate.Record) bool, filter func(*release.Release) bool) ([]*release.Release, error) {
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	var list []*release.Release
	for _, r := range d.store.doc.Helm.Records {
		if r.Namespace != d.namespace || !matches(r) {
			continue
		}
		found, err := unpack(r)
		if err != nil {
			return nil, err
		}
		if filter(found) {
			list = append(list, found)
		}
	}
	return list, nil
}

// Create implements [driver.Creator].
func (d releases) Create(key string, r *release.Release) error {
	return d.put(key, r, func(there bool) error {
		if there {
			return driver.ErrReleaseExists
		}
		return nil
	})
}

// Update implements [driver.Updator].
func (d releases) Update(key string, r *release.Release) error {
	return d.put(key, r, func(there bool) error {
		if !there {
			return driver.ErrReleaseNotFound
		}
		return nil
	})
}

func (d releases) put(key string, r *release.Release, allowed func(there bool) error) error {
	record, err := pack(key, d.namespace, r)
	if err != nil {
		return err
	}
	return d.store.change(func(records []helmstate.Record) ([]helmstate.Record, error) {
		at := slices.IndexFunc(records, d.is(key))
		if err := allowed(at >= 0); err != nil {
			return nil, err
		}
		if at < 0 {
			return append(records, record), nil
		}
		records[at] = record
		return records, nil
	})
}

// Delete implements [driver.Deletor]. It returns what was there.
func (d releases) Delete(key string) (*release.Release, error) {
	was, err := d.Get(key)
	if err != nil {
		return nil, err
	}
	return was, d.store.change(func(records []helmstate.Record) ([]helmstate.Record, error) {
		return slices.DeleteFunc(records, d.is(key)), nil
	})
}

func (d releases) is(key string) func(helmstate.Record) bool {
	return func(r helmstate.Record) bool { return r.Namespace == d.namespace && r.Key == key }
}

// pack makes a record of a release. Labels that Helm's drivers write themselves are not
// the release's.
func pack(key, namespace string, r *release.Release) (helmstate.Record, error) {
	raw, err := json.Marshal(r)
	if err != nil {
		return helmstate.Record{}, fmt.Errorf("record %s: %w", key, err)
	}
	packed, err := helmstate.Pack(raw)
	if err != nil {
		return helmstate.Record{}, fmt.Errorf("record %s: %w", key, err)
	}
	record := helmstate.Record{Key: key, Namespace: namespace, Release: r.Name, Revision: r.Version, Labels: maps.Clone(r.Labels), Packed: packed}
	for _, name := range []string{"name", "owner", "status", "version", "createdAt", "modifiedAt"} {
		delete(record.Labels, name)
	}
	if r.Info != nil {
		record.Status, record.DeployedAt = r.Info.Status.String(), r.Info.LastDeployed.Time
	}
	if r.Chart != nil && r.Chart.Metadata != nil {
		m := r.Chart.Metadata
		record.Chart, record.ChartVersion, record.AppVersion = m.Name, m.Version, m.AppVersion
	}
	return record, nil
}

// unpack reads a record. The release in it has to be the one that it is kept as.
func unpack(r helmstate.Record) (*release.Release, error) {
	raw, err := r.Unpack()
	if err != nil {
		return nil, err
	}
	found := &release.Release{}
	if err := json.Unmarshal(raw, found); err != nil {
		return nil, fmt.Errorf("record %s is damaged", r.Key) // the cause could quote it
	}
	if found.Info == nil || found.Name != r.Release || found.Version != r.Revision || !strings.HasSuffix(r.Key, ".v"+strconv.Itoa(r.Revision)) {
		return nil, fmt.Errorf("record %s holds something else", r.Key)
	}
	found.Labels = maps.Clone(r.Labels)
	return found, nil
}
