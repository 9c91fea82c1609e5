package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/appconfig/appconfigtest"
)

// BenchmarkSync changes one line of an app of 300 components, 500 actions and
// 2,000 files, and syncs it: how long the answer takes after the upload, and how
// much was uploaded.
func BenchmarkSync(b *testing.B) {
	d := newDoor(b)
	c := d.org("initech")
	folder := appconfigtest.Large()
	c.sync("large", folder)
	d.finishBuilds("succeeded")
	const file = "components/c7.toml"
	before := string(folder[file].Data)
	has := map[string]bool{}
	for _, pack := range bundleOf(b, folder).All() {
		has[pack.Digest] = true
	}
	var took time.Duration
	moved := 0
	for i := range b.N {
		changed := with(folder, file, strings.Replace(before, "y = \"", fmt.Sprintf("y = \"%d-", i), 1))
		req := c.upload(changed)
		for _, pack := range bundleOf(b, changed).All() {
			if !has[pack.Digest] {
				moved += len(pack.Bytes)
			}
		}
		began := time.Now()
		got, err := c.SyncAppWithResponse(b.Context(), "large", nil, req)
		took += time.Since(began)
		if err != nil || got.JSON201 == nil || got.JSON201.Release == nil {
			b.Fatalf("no new release: %v %s", err, got.GetBody())
		}
	}
	b.ReportMetric(float64(took.Microseconds())/1000/float64(b.N), "server-ms/sync")
	b.ReportMetric(float64(moved)/1024/float64(b.N), "moved-KiB/sync")
}
