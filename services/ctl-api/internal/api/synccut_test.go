package api_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// Many sync the same folder at once, of an app that none of them finds: one
// config, one build of each component, and an answer for everyone.
func TestFirstSyncsAtOnce(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	req := c.upload(hello())
	const callers = 6
	configs, created := map[string]bool{}, 0
	var mu sync.Mutex
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			got, err := c.SyncAppWithResponse(t.Context(), "hello", nil, req)
			if err != nil || got.StatusCode()/100 != 2 {
				t.Errorf("sync: %v %s", err, got.GetBody())
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if got.JSON201 != nil {
				created++
				configs[got.JSON201.Config.ID] = true
			} else {
				configs[got.JSON200.Config.ID] = true
			}
		})
	}
	group.Wait()
	if len(configs) != 1 || created != 1 {
		t.Errorf("%d syncs of one folder answered %d configs, %d of them made: %v", callers, len(configs), created, configs)
	}
	for table, want := range map[string]int{"apps": 1, "configs": 1, "config_items": 3, "components": 3, "component_revisions": 3, "builds": 3} {
		if n := d.count(`select count(*) from ` + table); n != want {
			t.Errorf("%d rows in %s, want %d", n, table, want)
		}
	}
	d.noOrphanBuilds()
}

// Different folders at once: each config is one folder whole, and every build
// is of some config.
func TestDifferentSyncsAtOnce(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	var group sync.WaitGroup
	texts := []string{"one", "two", "three", "four"}
	for _, text := range texts {
		// Both components say the same word: a mix of two folders would show.
		folder := with(with(hello(), "src/api/main.tf", "# "+text+"\n"), "src/web/main.tf", "# "+text+" web\n")
		folder = with(folder, "metadata.toml", "version = \"v2\"\ndisplay_name = \""+text+"\"\n")
		req := c.upload(folder)
		for range 2 {
			group.Go(func() {
				got, err := c.SyncAppWithResponse(t.Context(), "hello", nil, req)
				if err != nil || got.StatusCode()/100 != 2 {
					t.Errorf("sync: %v %s", err, got.GetBody())
				}
			})
		}
	}
	group.Wait()
	// A later sync of each makes no build, and its config has those of its own folder.
	for _, text := range texts {
		folder := with(with(hello(), "src/api/main.tf", "# "+text+"\n"), "src/web/main.tf", "# "+text+" web\n")
		folder = with(folder, "metadata.toml", "version = \"v2\"\ndisplay_name = \""+text+"\"\n")
		req := c.upload(folder)
		got := c.sync("hello", folder)
		config, err := c.GetConfigWithResponse(t.Context(), got.Config.ID, nil)
		must(t, config, err, http.StatusOK)
		for _, it := range config.JSON200.Items {
			for _, src := range req.Sources {
				if src.Component == it.Component && src.Digest != *it.Source.Digest {
					t.Errorf("config of %s builds %s from %s, want %s", text, it.Component, *it.Source.Digest, src.Digest)
				}
			}
		}
	}
	if n := d.count(`select count(distinct digest) from configs`); n != len(texts) {
		t.Errorf("%d different configs, want one of each folder", n)
	}
	if n := d.count(`select count(*) from builds`); n != 1+2*len(texts) {
		t.Errorf("%d builds, want one of the sandbox and two of each folder", n)
	}
	d.noOrphanBuilds()
}

// noOrphanBuilds fails the test when a build is of no config, or a wake-up of no
// build.
func (d *door) noOrphanBuilds() {
	d.t.Helper()
	if n := d.count(`select count(*) from builds b where not exists (select from config_items i where i.build_id = b.id)`); n != 0 {
		d.t.Errorf("%d builds are of no config", n)
	}
	if n := d.count(`select count(*) from river_builder.river_job j where j.kind = 'build_advance' and not exists (select from builds b where b.id = j.args->>'build_id')`); n != 0 {
		d.t.Errorf("%d wake-ups are of no build", n)
	}
}

// A sync that ends half way, after it has written most of its rows, leaves
// nothing; what was uploaded for it stays, is shown nowhere, and is used by the
// next one.
func TestSyncCutHalfWay(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		// cut ends the sync that waits at the backend pid.
		cut func(d *door, cancel context.CancelFunc, pid int)
	}{
		{name: "the caller goes away", cut: func(_ *door, cancel context.CancelFunc, _ int) { cancel() }},
		{name: "the connection to the database is lost", cut: func(d *door, _ context.CancelFunc, pid int) {
			if n := d.count(`select count(pg_terminate_backend($1))`, pid); n != 1 {
				d.t.Errorf("backend %d was not ended", pid)
			}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			d := newDoor(t)
			c := d.org("initech")
			c.sync("hello", hello())
			zoo := strings.ReplaceAll(string(hello()["components/api.toml"].Data), "api", "zoo")
			bigger := with(with(with(hello(), "components/zoo.toml", zoo), "src/zoo/main.tf", "# zoo\n"), "src/api/main.tf", "# another api\n")
			req := c.upload(bigger)
			var before rowCounts
			before.read(d)

			// Somebody holds the place of the last component, so that the sync stops
			// there, with everything else written.
			hold, err := d.db.Admin().Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = hold.Rollback(context.WithoutCancel(t.Context())) }()
			if _, err := hold.Exec(t.Context(), `insert into components (id, org_id, app_id, kind, name) select 'cmp_held', org_id, id, 'component', 'zoo' from apps`); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() {
				got, err := c.SyncAppWithResponse(ctx, "hello", nil, req)
				if err == nil && got.StatusCode()/100 == 2 {
					t.Errorf("a sync that was cut answered %d: %s", got.StatusCode(), got.Body)
				}
				ended <- err
			}()
			pid := d.waitsForLock()
			tc.cut(d, cancel, pid)
			<-ended
			d.ends(pid)
			if err := hold.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}

			var after rowCounts
			after.read(d)
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("a sync that was cut left rows (-before +after):\n%s", diff)
			}
			d.noOrphanBuilds()
			list, err := c.ListConfigsWithResponse(t.Context(), "hello", nil)
			must(t, list, err, http.StatusOK)
			if len(list.JSON200.Items) != 1 || strings.Contains(string(list.Body), req.BundleDigest) {
				t.Errorf("the config that was not made is listed: %s", list.Body)
			}
			missing, err := c.FindMissingBlobsWithResponse(t.Context(), nil, ctlapi.BlobDigests{Digests: []string{req.BundleDigest}})
			must(t, missing, err, http.StatusOK)
			if len(missing.JSON200.Missing) != 0 {
				t.Errorf("the bundle has to be uploaded again")
			}
			again, err := c.SyncAppWithResponse(t.Context(), "hello", nil, req)
			must(t, again, err, http.StatusCreated)
			if diff := cmp.Diff("api build*, sandbox reuse, web reuse, zoo build*", actions(again.JSON201)); diff != "" || again.JSON201.Config.Number != 2 {
				t.Errorf("the next sync makes config %d (-want +got):\n%s", again.JSON201.Config.Number, diff)
			}
		})
	}
}

// rowCounts are the rows that a sync writes, by table.
type rowCounts map[string]int

func (r *rowCounts) read(d *door) {
	*r = rowCounts{}
	for _, table := range []string{"apps", "configs", "config_items", "components", "component_revisions", "builds", "releases", "chain_records", "river_builder.river_job"} {
		(*r)[table] = d.count(`select count(*) from ` + table)
	}
}

// waitsForLock returns the backend that waits for a lock of another, once there
// is one.
func (d *door) waitsForLock() (pid int) {
	d.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if pid = d.count(`select coalesce(max(pid), 0) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`); pid != 0 {
			return pid
		}
	}
	d.t.Fatal("the sync never came to where it is held up")
	return 0
}

// ends waits until a backend has no transaction any more.
func (d *door) ends(pid int) {
	d.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if d.count(`select count(*) from pg_stat_activity where pid = $1 and xact_start is not null`, pid) == 0 {
			return
		}
	}
	d.t.Fatalf("backend %d still has a transaction", pid)
}

// An app that is deleted while a sync of it waits gets no config.
func TestSyncOfAnAppThatGoes(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	c.sync("hello", hello())
	req := c.upload(with(hello(), "src/api/main.tf", "# another api\n"))
	hold, err := d.db.Admin().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = hold.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := hold.Exec(t.Context(), `update apps set deleted_at = now()`); err != nil {
		t.Fatal(err)
	}
	ended := make(chan *ctlapi.SyncAppResponse, 1)
	go func() {
		got, err := c.SyncAppWithResponse(t.Context(), "hello", nil, req)
		if err != nil {
			t.Error(err)
		}
		ended <- got
	}()
	d.waitsForLock()
	if err := hold.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	problemOf(t, <-ended, nil, http.StatusConflict, "conflict")
	if n := d.count(`select count(*) from configs`); n != 1 {
		t.Errorf("%d configs, want the first one only", n)
	}
	// The name is free: the next sync makes an app of its own.
	if again := c.sync("hello", hello()); !again.Created || again.Config.Number != 1 {
		t.Errorf("a sync after that: %+v, want config 1 of a new app", again)
	}
}
