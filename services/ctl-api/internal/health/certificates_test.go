package health_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/jobspec"
)

// What the newest look saw is kept, a look that did not come so far says nothing, and what a
// runner makes up does not stop the verdict.
func TestCertificatesOfLooks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	probe := jobspec.Probe{Kind: jobspec.KindHelmChart, Resource: jobspec.Resource{ID: w.chart, Kind: "component", Name: "web"}}
	app := &appconfig.App{Actions: []appconfig.Action{
		{Name: "answers", Labels: map[string]string{"type": "health-check"}}, {Name: "probe.web.http-1", Labels: map[string]string{"type": "health-check"}},
	}}
	looks := func(check, state, outputs string) {
		t.Helper()
		w.report(check, state)
		w.exec(`update action_runs set outputs = $1::jsonb where key = $2`, outputs, fmt.Sprint(w.runs))
		w.judge(app, probe)
	}
	kept := func(want ...string) {
		t.Helper()
		rows, err := w.pg.Admin().Query(t.Context(), `select check_name || ' ' || place || ' ' || subject || ' ' || left(fingerprint, 1) || ' ' || to_char(not_after, 'YYYY') from certificates order by 1`)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		var got []string
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				t.Fatal(err)
			}
			got = append(got, line)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("certificates (-want +got):\n%s", diff)
		}
	}
	cert := func(place, digit, ends string) string {
		return fmt.Sprintf(`{"place":%q,"subject":"shop.example.com","fingerprint":%q,"not_before":"2026-01-01T00:00:00Z","not_after":"%s-01-01T00:00:00Z"}`, place, strings.Repeat(digit, 64), ends)
	}
	looks("component/web", "succeeded", `{"certificates":[`+cert("Secret shop/a", "a", "2027")+`,`+cert("Secret shop/b", "b", "2027")+`]}`)
	kept("component/web Secret shop/a shop.example.com a 2027", "component/web Secret shop/b shop.example.com b 2027")
	looks("component/web", "failed", `{}`) // the cluster did not answer
	kept("component/web Secret shop/a shop.example.com a 2027", "component/web Secret shop/b shop.example.com b 2027")
	looks("component/web", "succeeded", `{"certificates":[`+cert("Secret shop/a", "c", "2028")+`]}`) // renewed, and one is gone
	kept("component/web Secret shop/a shop.example.com c 2028")
	looks("probe.web.http-1", "succeeded", `{"http-1":{"certificates":[`+cert("https://shop.example.com", "d", "2027")+`]}}`)
	kept("component/web Secret shop/a shop.example.com c 2028", "probe.web.http-1 https://shop.example.com shop.example.com d 2027")
	looks("answers", "succeeded", `{"step":{"certificates":[`+cert("a script of the vendor", "e", "2027")+`]}}`) // is no probe
	for _, hostile := range []string{
		`"x"`, `null`, `{"place":"x"}`, `[7]`, `[{"place":7}]`,
		`[{"place":"","fingerprint":"` + strings.Repeat("a", 64) + `"}]`, `[` + cert("x", "z", "2027") + `]`, `[` + cert("x", "a", "1999") + `]`,
	} {
		looks("component/web", "succeeded", `{"certificates":`+hostile+`}`)
	}
	looks("component/web", "succeeded", `{"certificates":[`+cert(strings.Repeat("é", 400), "a", "2027")+`]}`)
	kept("component/web "+jobspec.CutText(strings.Repeat("é", 400), 256)+" shop.example.com a 2027", "probe.web.http-1 https://shop.example.com shop.example.com d 2027")
	looks("component/web", "succeeded", `{"certificates":[]}`)
	kept("probe.web.http-1 https://shop.example.com shop.example.com d 2027")
	w.judge(&appconfig.App{}) // the checks are gone, and so is what they saw
	kept()
}
