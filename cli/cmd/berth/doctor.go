package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/toolchain"
	"github.com/berth-dev/berth/cli/internal/up"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/version"
)

const (
	doctorTimeout = 20 * time.Second

	// examinePatience is short: that nobody answers is a finding.
	examinePatience = 2 * time.Second

	// maxClockSkew is what signatures with a time in them can bear.
	maxClockSkew = 30 * time.Second
)

// finding is what one examination found.
type finding struct {
	What   string `json:"what"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitempty"`
}

func good(what, format string, args ...any) finding {
	return finding{What: what, OK: true, Detail: fmt.Sprintf(format, args...)}
}

func bad(what string, err error) finding {
	f := finding{What: what, Detail: err.Error()}
	if advised, ok := err.(interface{ Remedy() string }); ok {
		f.Remedy = advised.Remedy()
	}
	return f
}

func (c *cli) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: "Examine this machine and the Berth that commands talk to", Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), doctorTimeout)
			defer cancel()
			findings := append(c.examineMachine(ctx), c.examineBerth(ctx)...)
			if err := printList(c, findings, findingView()); err != nil {
				return err
			}
			healthy := true
			for _, f := range findings {
				healthy = healthy && f.OK
				if f.Remedy != "" && !c.forPrograms() {
					output.Printf(c.err, "%s: try: %s\n", f.What, f.Remedy)
				}
			}
			if !healthy {
				return outcome(exitFailed)
			}
			return nil
		},
	}
}

func findingView() output.View[finding] {
	return output.View[finding]{
		Name: func(f finding) string { return f.What },
		Columns: []output.Column[finding]{
			{Head: "", Cell: func(f finding) string {
				if f.OK {
					return "✓"
				}
				return "✗"
			}},
			{Head: "WHAT", Cell: func(f finding) string { return f.What }},
			{Head: "DETAIL", Cell: func(f finding) string { return f.Detail }},
		},
	}
}

// examineMachine looks at what berth up needs.
func (c *cli) examineMachine(ctx context.Context) []finding {
	var found []finding
	if c.getenv("DATABASE_URL") != "" {
		found = append(found, good("postgres", "the one of DATABASE_URL"))
	} else if bin, err := up.FindPostgres(c.getenv); err != nil {
		found = append(found, bad("postgres", err))
	} else {
		found = append(found, good("postgres", "%s", bin))
	}
	if path, err := exec.LookPath(cmp.Or(c.getenv("BERTH_TERRAFORM"), "terraform")); err == nil {
		found = append(found, good("terraform", "%s", path))
	} else if c.getenv("BERTH_TERRAFORM") != "" {
		found = append(found, finding{What: "terraform", Detail: "BERTH_TERRAFORM is not an executable: " + c.getenv("BERTH_TERRAFORM"), Remedy: "point it at a Terraform, or unset it"})
	} else {
		found = append(found, good("terraform", "not on PATH; berth up fetches %s", toolchain.TerraformVersion))
	}
	layout, err := localLayout()
	if err != nil {
		return append(found, bad("data folder", err))
	}
	if err := up.EnoughSpace(layout.Dir); err != nil {
		found = append(found, bad("disk", err))
	} else {
		found = append(found, good("disk", "enough space for %s", layout.Dir))
	}
	status, err := up.AskStatus(ctx, layout)
	switch {
	case err != nil:
		found = append(found, bad("berth up", err))
	case status.Running:
		for _, part := range status.Parts {
			if part.Ready {
				found = append(found, good(part.Name, "pid %d, ready", part.PID))
			} else {
				found = append(found, finding{What: part.Name, Detail: part.Why, Remedy: "read " + part.Log})
			}
		}
	default:
		found = append(found, c.examinePorts(ctx)...)
	}
	return found
}

func (c *cli) examinePorts(ctx context.Context) []finding {
	base, err := up.ParsePort(c.getenv("BERTH_PORT"))
	if err != nil {
		return []finding{bad("ports", err)}
	}
	for port := base; port < base+4; port++ {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return []finding{{What: "ports", Detail: fmt.Sprintf("%d is taken by another program", port),
				Remedy: "stop it, or set BERTH_PORT to the first of four free ports"}}
		}
		_ = listener.Close()
	}
	return []finding{good("ports", "%d to %d are free", base, base+3)}
}

// examineBerth looks at the control plane of the context.
func (c *cli) examineBerth(ctx context.Context) []finding {
	client, err := c.clientWith(examinePatience)
	if err != nil {
		return []finding{bad("context", err)}
	}
	resp, err := client.GetMeWithResponse(ctx)
	if err != nil {
		return []finding{bad("control plane", err)}
	}
	if resp.JSON200 == nil {
		return []finding{{What: "control plane", Detail: "gave an answer that this version does not understand", Remedy: "compare berth version on both sides"}}
	}
	me := resp.JSON200
	found := []finding{good("control plane", "version %s, as %s in org %s", me.Version, me.Account.Name, me.Org.Name)}
	if own := version.Get().Version; own != me.Version {
		found = append(found, good("version", "this program is %s, the control plane %s", own, me.Version))
	}
	if clock, ok := examineClock(resp.HTTPResponse, c.now()); ok {
		found = append(found, clock)
	}
	runners, err := client.Runners(ctx, 0, "")
	if err != nil {
		return append(found, bad("runners", err))
	}
	for _, r := range runners {
		what := "runner " + r.Name
		switch {
		case r.State == ctlapi.RunnerStateRevoked:
		case r.DisputedSince != nil:
			found = append(found, finding{What: what, Detail: value(r.Problem),
				Remedy: "find out who has a copy of its data directory; the way back is in docs/guides/lost-machine.md"})
		case r.Online:
			found = append(found, good(what, "online, switch %s, trust %s", r.Switch, r.Trust))
		default:
			found = append(found, finding{What: what, Detail: fmt.Sprintf("%s, last seen %s ago", r.State, cmp.Or(c.ageOf(r.LastSeenAt), "never")),
				Remedy: "start it on its machine (here: berth up), then berth why " + cmp.Or(value(r.Install).Name, r.Name)})
		}
	}
	return found
}

// examineClock compares this machine's clock with the service's.
func examineClock(resp *http.Response, now time.Time) (finding, bool) {
	theirs, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return finding{}, false
	}
	if off := now.Sub(theirs).Abs(); off > maxClockSkew {
		return finding{What: "clock", Detail: fmt.Sprintf("differs by %s from the control plane's", off.Round(time.Second)),
			Remedy: "synchronise the clock of this machine (timedatectl set-ntp true)"}, true
	}
	return good("clock", "agrees with the control plane's"), true
}
