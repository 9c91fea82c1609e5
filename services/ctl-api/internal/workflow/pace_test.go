package workflow_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/workflow"
)

// chained makes the app a chain: n components, each on the one before.
func chained(n int) func(*appconfig.App) {
	return func(app *appconfig.App) {
		one := *app.Component("greeting")
		one.Dependencies = nil
		app.Components, app.Actions = nil, nil
		for i := range n {
			c := one
			c.Name = fmt.Sprintf("c%02d", i)
			if i > 0 {
				c.Dependencies = []string{fmt.Sprintf("c%02d", i-1)}
			}
			app.Components = append(app.Components, c)
		}
	}
}

// BenchmarkChain is the time of the control plane between the jobs of a chain of 50
// components: what a deploy of it takes longer than its jobs.
func BenchmarkChain(b *testing.B) {
	const n = 50
	r := newRig(b, chained(n))
	r.arrive()
	var spent time.Duration
	deploy := func(round int) {
		w := r.start(workflow.Request{Kind: flow.KindProvision, ApproveAll: true})
		r.planned(w, "sandbox", "")
		for i := range n {
			step := fmt.Sprintf("component/c%02d", i)
			before := r.advancing
			r.planned(w, step, fmt.Sprintf("%s %d", step, round))
			r.applied(w, step, jobspec.OutcomeSucceeded, r.output("text", "Ahoy"))
			spent += r.advancing - before
		}
	}
	rounds := 0
	for b.Loop() {
		rounds++
		deploy(rounds)
	}
	b.ReportMetric(float64(spent.Microseconds())/1000/float64(rounds*n), "ms/component")
}
