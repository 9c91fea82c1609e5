package table

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// Bulk shows bulk operations.
func Bulk(now time.Time) output.View[ctlapi.Bulk] {
	return output.View[ctlapi.Bulk]{
		Name: func(b ctlapi.Bulk) string { return b.ID },
		None: "no bulk operations yet: start one with berth bulk deploy",
		Columns: []output.Column[ctlapi.Bulk]{
			{Head: "ID", Cell: func(b ctlapi.Bulk) string { return b.ID }},
			{Head: "OPERATION", Cell: func(b ctlapi.Bulk) string { return string(b.Operation) }},
			{Head: "STATE", Cell: func(b ctlapi.Bulk) string { return string(b.State) }},
			{Head: "PENDING", Cell: func(b ctlapi.Bulk) string { return strconv.Itoa(b.Counts.Pending) }},
			{Head: "STARTED", Cell: func(b ctlapi.Bulk) string { return strconv.Itoa(b.Counts.Started) }},
			{Head: "DONE", Cell: func(b ctlapi.Bulk) string { return strconv.Itoa(b.Counts.Done) }},
			{Head: "REFUSED", Cell: func(b ctlapi.Bulk) string { return strconv.Itoa(b.Counts.Refused) }},
			{Head: "BY", Shrinks: true, Cell: func(b ctlapi.Bulk) string { return b.CreatedBy }},
			{Head: "AGE", Cell: func(b ctlapi.Bulk) string { return age(now, b.CreatedAt) }},
			{Head: "VERSION", Wide: true, Cell: func(b ctlapi.Bulk) string { return b.Version }},
		},
	}
}

// BulkItem shows what became of each install of a bulk operation.
func BulkItem() output.View[ctlapi.BulkItem] {
	return output.View[ctlapi.BulkItem]{
		Name: func(i ctlapi.BulkItem) string { return i.Install.Name },
		Columns: []output.Column[ctlapi.BulkItem]{
			{Head: "INSTALL", Shrinks: true, Cell: func(i ctlapi.BulkItem) string { return i.Install.Name }},
			{Head: "OUTCOME", Cell: func(i ctlapi.BulkItem) string { return strings.ReplaceAll(string(i.Outcome), "_", " ") }},
			{Head: "WORKFLOW", Yields: true, Cell: func(i ctlapi.BulkItem) string { return i.WorkflowID }},
			{Head: "STATE", Cell: func(i ctlapi.BulkItem) string { return string(api.Value(i.WorkflowState)) }},
			{Head: "WHY", Shrinks: true, Cell: func(i ctlapi.BulkItem) string { return i.Detail }},
			{Head: "REMEDY", Wide: true, Cell: func(i ctlapi.BulkItem) string { return i.Remedy }},
		},
	}
}

// ResourceOfInstall shows resources of several installs.
func ResourceOfInstall(now time.Time) output.View[ctlapi.ResourceOfInstall] {
	return output.View[ctlapi.ResourceOfInstall]{
		Name: func(r ctlapi.ResourceOfInstall) string { return r.ID },
		None: "no resource matches",
		Columns: []output.Column[ctlapi.ResourceOfInstall]{
			{Head: "INSTALL", Shrinks: true, Cell: func(r ctlapi.ResourceOfInstall) string { return r.Install.Name }},
			{Head: "RESOURCE", Shrinks: true, Cell: func(r ctlapi.ResourceOfInstall) string { return r.Name }},
			{Head: "TYPE", Shrinks: true, Cell: func(r ctlapi.ResourceOfInstall) string {
				if r.Type == "" {
					return string(r.Kind)
				}
				return r.Type
			}},
			{Head: "STATE", Shrinks: true, Cell: func(r ctlapi.ResourceOfInstall) string { return rehearsed(string(r.State)) }},
			{Head: "HEALTH", Shrinks: true, Cell: func(r ctlapi.ResourceOfInstall) string { return string(r.Health) }},
			{Head: "RELEASE", Cell: func(r ctlapi.ResourceOfInstall) string { return api.Number(r.LiveRelease) }},
			{Head: "AGE", Cell: func(r ctlapi.ResourceOfInstall) string { return age(now, r.UpdatedAt) }},
			{Head: "APP", Wide: true, Cell: func(r ctlapi.ResourceOfInstall) string { return r.App.Name }},
			{Head: "CUSTOMER", Wide: true, Cell: func(r ctlapi.ResourceOfInstall) string { return r.Customer.Name }},
			{Head: "DRIFT", Wide: true, Cell: func(r ctlapi.ResourceOfInstall) string { return string(r.Drift) }},
			{Head: "ID", Wide: true, Cell: func(r ctlapi.ResourceOfInstall) string { return r.ID }},
			{Head: "CHANGED BY", Wide: true, Cell: func(r ctlapi.ResourceOfInstall) string { return api.Value(r.LiveChangeID) }},
		},
	}
}

// RunnerJob shows the jobs of a runner.
func RunnerJob(now time.Time) output.View[ctlapi.RunnerJob] {
	return output.View[ctlapi.RunnerJob]{
		Name: func(j ctlapi.RunnerJob) string { return j.ID },
		None: "this runner has had no job yet",
		Columns: []output.Column[ctlapi.RunnerJob]{
			{Head: "JOB", Cell: func(j ctlapi.RunnerJob) string { return j.ID }},
			{Head: "FOR", Shrinks: true, Cell: func(j ctlapi.RunnerJob) string {
				name := api.Value(j.Install).Name
				if resource := api.Value(j.Resource).Name; resource != "" {
					name += "/" + resource
				}
				return name
			}},
			{Head: "OPERATION", Cell: func(j ctlapi.RunnerJob) string { return j.Operation }},
			{Head: "STATE", Cell: func(j ctlapi.RunnerJob) string { return string(j.State) }},
			{Head: "QUEUED", Cell: func(j ctlapi.RunnerJob) string { return age(now, j.QueuedAt) }},
			{Head: "ERROR", Shrinks: true, Cell: func(j ctlapi.RunnerJob) string { return api.Value(j.Error) }},
			{Head: "TYPE", Wide: true, Cell: func(j ctlapi.RunnerJob) string { return j.Kind }},
			{Head: "ATTEMPT", Wide: true, Cell: func(j ctlapi.RunnerJob) string { return strconv.Itoa(j.Attempt) }},
			{Head: "WORKFLOW", Wide: true, Cell: func(j ctlapi.RunnerJob) string { return api.Value(j.WorkflowID) }},
			{Head: "CHANGE", Wide: true, Cell: func(j ctlapi.RunnerJob) string { return api.Value(j.ChangeID) }},
			{Head: "LOG", Wide: true, Cell: func(j ctlapi.RunnerJob) string { return api.Value(j.StreamID) }},
		},
	}
}

// InOrder are the nodes of a graph as a deploy takes them; those that wait for
// themselves come last.
func InOrder(g ctlapi.Graph) []ctlapi.GraphNode {
	rank := map[string]int{}
	for i, layer := range g.Layers {
		for _, name := range layer {
			rank[name] = i + 1
		}
	}
	of := func(n ctlapi.GraphNode) int {
		if r := rank[n.Name]; r > 0 {
			return r
		}
		return len(g.Layers) + 1
	}
	nodes := slices.Clone(g.Nodes)
	slices.SortStableFunc(nodes, func(a, b ctlapi.GraphNode) int { return of(a) - of(b) })
	return nodes
}

// GraphNode shows the nodes of a graph with what each needs.
func GraphNode(g ctlapi.Graph) output.View[ctlapi.GraphNode] {
	return output.View[ctlapi.GraphNode]{
		Name: func(n ctlapi.GraphNode) string { return n.Name },
		Columns: []output.Column[ctlapi.GraphNode]{
			{Head: "RESOURCE", Shrinks: true, Cell: func(n ctlapi.GraphNode) string { return n.Name }},
			{Head: "TYPE", Shrinks: true, Cell: func(n ctlapi.GraphNode) string { return n.Type }},
			{Head: "STATE", Shrinks: true, Cell: func(n ctlapi.GraphNode) string {
				if n.SwitchedOff {
					return "off"
				}
				return rehearsed(string(api.Value(n.State)))
			}},
			{Head: "HEALTH", Shrinks: true, Cell: func(n ctlapi.GraphNode) string { return string(api.Value(n.Health)) }},
			{Head: "NEEDS", Shrinks: true, Cell: func(n ctlapi.GraphNode) string {
				var needs []string
				for _, e := range g.Edges {
					if e.From == n.Name && n.Kind == ctlapi.GraphNodeKindComponent && !slices.Contains(needs, e.To) {
						needs = append(needs, e.To)
					}
				}
				return strings.Join(needs, ", ")
			}},
		},
	}
}
