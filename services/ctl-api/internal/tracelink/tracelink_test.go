package tracelink_test

import (
	"testing"

	"github.com/berth-dev/berth/services/ctl-api/internal/tracelink"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		link tracelink.Link
		good bool
	}{
		{"", true},
		{"https://traces.example.com/trace/{trace_id}", true},
		{"http://jaeger.internal:16686/trace/{trace_id}?uiEmbed=v0", true},
		{"https://grafana.example.com/explore?left=%7B%22query%22:%22{trace_id}%22%7D#{trace_id}", true},
		{"https://traces.example.com/", false},
		{"traces.example.com/{trace_id}", false},
		{"javascript:alert('{trace_id}')", false},
		{"data:text/html,{trace_id}", false},
		{"https:///{trace_id}", false},
		{"https://ada:secret@traces.example.com/{trace_id}", false},
		{"https://traces.example.com/{trace_id}\x00", false},
	} {
		if err := tc.link.Check(); (err == nil) != tc.good {
			t.Errorf("%q: %v, good %t", tc.link, err, tc.good)
		}
	}
}

func TestOf(t *testing.T) {
	t.Parallel()
	const (
		id   = "0af7651916cd43dd8448eb211c80319c"
		link = tracelink.Link("https://traces.example.com/{trace_id}#{trace_id}")
		seen = "https://traces.example.com/" + id + "#" + id
	)
	for _, tc := range []struct {
		name      string
		link      tracelink.Link
		parent    string
		id, where string
	}{
		{"kept", link, "00-" + id + "-b7ad6b7169203331-01", id, seen},
		{"not kept", link, "00-" + id + "-b7ad6b7169203331-00", id, ""},
		{"nowhere to look", "", "00-" + id + "-b7ad6b7169203331-01", id, ""},
		{"none", link, "", "", ""},
		{"broken", link, "00-javascript:x-b7ad6b7169203331-01", "", ""},
	} {
		gotID, where := tc.link.Of(map[string]string{"traceparent": tc.parent})
		if gotID != tc.id || where != tc.where {
			t.Errorf("%s: %q %q, want %q %q", tc.name, gotID, where, tc.id, tc.where)
		}
	}
}
