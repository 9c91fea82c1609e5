package helm

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/release"
	helmtime "helm.sh/helm/v3/pkg/time"
)

// The place that counts, what is left of a move, and what is not a copy.
func TestLocate(t *testing.T) {
	t.Parallel()
	at := func(driver string, versions ...int) place {
		p := place{driver: driver}
		for _, v := range versions {
			then := helmtime.Time{Time: time.Unix(int64(v), 0)}
			p.found = append(p.found, &release.Release{Version: v, Manifest: "a: b", Info: &release.Info{FirstDeployed: then, LastDeployed: then}})
		}
		return p
	}
	other := at("secret", 1, 2)
	other.found[1].Manifest = "a: c"
	later := at("secret", 1)
	later.found[0].Info.LastDeployed = helmtime.Time{Time: time.Unix(99, 0)}
	for _, tc := range []struct {
		name   string
		wanted string
		places []place
		from   string
		last   int
		moves  string
		copies []string
		error  string
	}{
		{name: "nowhere", wanted: "nuon", places: []place{at("nuon"), at("secret")}, from: "nuon"},
		{name: "where it is wanted", wanted: "nuon", places: []place{at("nuon", 1, 2), at("secret")}, from: "nuon", last: 2},
		{name: "elsewhere: it moves", wanted: "nuon", places: []place{at("nuon"), at("secret", 1, 2)}, from: "secret", last: 2, moves: "secret"},
		{name: "copied, the source not yet removed", wanted: "nuon", places: []place{at("nuon", 1, 2), at("secret", 1, 2)}, from: "nuon", last: 2, copies: []string{"secret"}},
		{name: "copied, the source removed in part", wanted: "nuon", places: []place{at("nuon", 1, 2), at("secret", 2)}, from: "nuon", last: 2, copies: []string{"secret"}},
		{name: "copied in part: it moves again", wanted: "secret", places: []place{at("secret", 1), at("nuon", 1, 2)}, from: "nuon", last: 2, moves: "nuon"},
		{name: "back to a source removed in part", wanted: "secret", places: []place{at("secret", 2), at("nuon", 1, 2)}, from: "nuon", last: 2, moves: "nuon"},
		{name: "a third place with a copy", wanted: "nuon", places: []place{at("nuon"), at("secret", 1, 2), at("configmap", 1)}, from: "secret", last: 2, moves: "secret", copies: []string{"configmap"}},
		{name: "another release of the same revision", wanted: "nuon", places: []place{at("nuon", 1, 2), other}, error: "which differ"},
		{name: "another release with fewer revisions", wanted: "nuon", places: []place{at("nuon", 1, 2), later}, error: "which differ"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := locate("web", tc.wanted, tc.places)
			if tc.error != "" {
				if err == nil || !strings.Contains(err.Error(), tc.error) {
					t.Fatalf("error %v, want %q", err, tc.error)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.from != tc.from || (place{found: got.history}).last() != tc.last || got.moves(tc.wanted) != tc.moves {
				t.Errorf("from %s with revision %d, moves %q", got.from, (place{found: got.history}).last(), got.moves(tc.wanted))
			}
			if diff := cmp.Diff(tc.copies, got.copies); diff != "" {
				t.Errorf("copies (-want +got):\n%s", diff)
			}
		})
	}
}
