package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/berth-dev/berth/cli/internal/hosts"
	"github.com/berth-dev/berth/pkg/appconfig/fetch"
)

// atOnce is how many addresses are fetched side by side.
const atOnce = 4

// Fetcher fetches addresses, each repository once. Close it when done.
type Fetcher struct {
	// Hosts, when given, is asked first whether the host of an address answers at all.
	Hosts *hosts.Hosts

	say    func(line string)
	client *http.Client

	mu     sync.Mutex
	dir    string // of the repositories; "" before the first
	clones map[cloneKey]*clone
}

// New makes a fetcher. It tells say of each address, in order, as soon as it is
// fetched.
func New(say func(line string)) *Fetcher {
	return &Fetcher{say: say, client: newClient(newTransport()), clones: map[cloneKey]*clone{}}
}

// Close removes what was cloned.
func (f *Fetcher) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dir == "" {
		return nil
	}
	return os.RemoveAll(f.dir)
}

// Fetch fetches addresses, a few at once. Each has a result: its contents, or
// what went wrong and what to do.
func (f *Fetcher) Fetch(ctx context.Context, addresses []string) map[string]fetch.Result {
	addresses = slices.Compact(slices.Sorted(slices.Values(addresses)))
	done := make([]chan fetch.Result, len(addresses))
	for i := range done {
		done[i] = make(chan fetch.Result, 1)
	}
	places := make(chan struct{}, atOnce)
	var workers sync.WaitGroup
	defer workers.Wait()
	workers.Go(func() {
		for i, address := range addresses {
			places <- struct{}{}
			workers.Go(func() {
				defer func() { <-places }()
				done[i] <- resultOf(f.one(ctx, address))
			})
		}
	})
	said := time.Now()
	results := map[string]fetch.Result{}
	for i, address := range addresses {
		result := f.await(address, done[i], &said)
		if results[address] = result; result.Problem == "" { // else the caller reports it with its place
			f.say(fmt.Sprintf("fetched %s, %s", address, sizeOf(len(result.Contents))))
		}
	}
	return results
}

// patience is how long nothing is printed before we say what we wait for.
const patience = 3 * time.Second

// await waits for a result, and says so when nothing was said for long: each address
// has its own limit.
func (f *Fetcher) await(address string, done <-chan fetch.Result, said *time.Time) fetch.Result {
	patient := time.NewTimer(patience - time.Since(*said))
	defer patient.Stop()
	select {
	case result := <-done:
		return result
	case <-patient.C:
		f.say(fmt.Sprintf("still waiting for %s, which has up to %s", withoutUsers(address), gitTimeout))
		*said = time.Now()
	}
	return <-done
}

func (f *Fetcher) one(ctx context.Context, address string) ([]byte, error) {
	parsed, err := fetch.ParseAddress(address)
	switch {
	case err != nil:
		return nil, err
	case f.silent(ctx, parsed):
		return nil, failf("check the address, and that this machine can reach it", "is on a host that does not answer within %s", hosts.Deadline)
	case parsed.Git:
		return f.fromGit(ctx, parsed)
	}
	return f.get(ctx, parsed.URL)
}

func (f *Fetcher) silent(ctx context.Context, a fetch.Address) bool {
	if f.Hosts == nil {
		return false
	}
	_, silent := f.Hosts.Silent(ctx, a.URL)
	return silent
}

// failure is an error with what to do about it.
type failure struct{ problem, remedy string }

func (f *failure) Error() string { return f.problem }

func failf(remedy, format string, args ...any) error {
	return &failure{problem: fmt.Sprintf(format, args...), remedy: remedy}
}

var errTooLarge = failf("put the file into the folder", "is larger than %d MiB", fetch.MaxBytes>>20)

func resultOf(contents []byte, err error) fetch.Result {
	if err == nil {
		return fetch.Result{Contents: contents}
	}
	result := fetch.Result{Problem: withoutUsers(err.Error())}
	if f, ok := errors.AsType[*failure](err); ok {
		result.Remedy = f.remedy
	}
	return result
}

func sizeOf(n int) string {
	if n < 1024 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%.1f KiB", float64(n)/1024)
}
