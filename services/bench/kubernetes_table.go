package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"
)

// own is what Berth costs per component on top of what the same took another
// way; less than nothing where Berth was faster.
func (c *comparison) own(other *measured) time.Duration {
	return (c.berth.wall.percentile(50) - other.wall.percentile(50)) / time.Duration(c.n)
}

// each is how long one component was on a processor.
func (c *comparison) each(of *measured) time.Duration {
	return of.cpu.percentile(50) / time.Duration(c.n)
}

// within tells whether the budget is kept, against the faster use of the tool.
func (c *comparison) within() bool {
	worst := c.own(&c.tool)
	if len(c.side.wall.took) > 0 {
		worst = max(worst, c.own(&c.side))
	}
	return worst < componentBudget
}

// what names the deploy.
func (c *comparison) what() string {
	if c.changed {
		return c.kind.name + ", one line"
	}
	return c.kind.name + ", the same again"
}

func (c *cluster) print(ctx context.Context, out io.Writer, before string) error {
	versions, err := c.versions(ctx)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "\nComponents. %d CPUs, load %s before and %s after; %s, %s/%s.\n\n",
		runtime.NumCPU(), before, load(), versions, runtime.GOOS, runtime.GOARCH)
	if err != nil {
		return err
	}
	if err := componentTable(out, c.results); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "\nBudget: own cost < %d ms per component, against the faster use of the tool.\n\n"+
		"Where Berth's time goes, per component; components go side by side, so these do not add up to the above:\n\n", componentBudget.Milliseconds())
	if err != nil {
		return err
	}
	return spentTable(out, c.results)
}

// versions are those of the tools that Berth is compared with.
func (c *cluster) versions(ctx context.Context) (string, error) {
	if c.tools["kubectl"] == "" {
		out, err := c.system.command(ctx, c.tools["terraform"], "version")
		first, _, _ := strings.Cut(string(out), "\n")
		return first, err
	}
	server, err := c.system.command(ctx, c.tools["kubectl"], "version", "--output", "json")
	if err != nil {
		return "", err
	}
	var versions struct {
		ServerVersion, ClientVersion struct {
			GitVersion string `json:"gitVersion"`
		}
	}
	if err := json.Unmarshal(server, &versions); err != nil {
		return "", fmt.Errorf("what kubectl version prints: %w", err)
	}
	helm, err := c.system.command(ctx, c.tools["helm"], "version", "--template", "{{.Version}}")
	return fmt.Sprintf("Kubernetes %s, kubectl %s, Helm %s", versions.ServerVersion.GitVersion, versions.ClientVersion.GitVersion, helm), err
}

// componentTable compares; all times are medians.
func componentTable(w io.Writer, all []*comparison) error {
	rows := [][]string{{
		"components", "what", "rounds", "Berth ms", "tool ms", fmt.Sprintf("%d at once ms", toolsAtOnce),
		"own ms each", fmt.Sprintf("over %d at once", toolsAtOnce), "to tool", fmt.Sprintf("to %d at once", toolsAtOnce), "CPU ms each", "tool's CPU", "budget",
	}}
	for _, c := range all {
		row := []string{
			fmt.Sprint(c.n), c.what(), fmt.Sprint(len(c.berth.wall.took)), milliseconds(c.berth.wall.percentile(50)), milliseconds(c.tool.wall.percentile(50)), "",
			milliseconds(c.own(&c.tool)), "", ratio(c.berth.wall.percentile(50), c.tool.wall.percentile(50)), "",
			milliseconds(c.each(&c.berth)), milliseconds(c.each(&c.tool)), "missed",
		}
		if len(c.side.wall.took) > 0 {
			row[5] = milliseconds(c.side.wall.percentile(50))
			row[7] = milliseconds(c.own(&c.side))
			row[9] = ratio(c.berth.wall.percentile(50), c.side.wall.percentile(50))
		}
		if c.within() {
			row[12] = "kept"
		}
		rows = append(rows, row)
	}
	return markdown(w, rows, 1, 12)
}

// spentTable shows where the time of a component went; all times are medians.
func spentTable(w io.Writer, all []*comparison) error {
	rows := [][]string{{"components", "what", "job", "waits ms", "starts ms", "works ms", "reported ms", "between jobs ms"}}
	for _, c := range all {
		for _, operation := range operations {
			job := c.spent.jobs[operation]
			if job == nil {
				continue
			}
			row := []string{fmt.Sprint(c.n), c.what(), operation}
			for _, f := range []figures{job.waits, job.starts, job.works, job.reported} {
				row = append(row, milliseconds(f.percentile(50)))
			}
			between := ""
			if operation == operations[0] {
				between = milliseconds(c.spent.between.percentile(50))
			}
			rows = append(rows, append(row, between))
		}
	}
	return markdown(w, rows, 1, 2)
}
