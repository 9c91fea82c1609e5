package doctor

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os/exec"

	"github.com/berth-dev/berth/cli/internal/local"
	"github.com/berth-dev/berth/cli/internal/toolchain"
	"github.com/berth-dev/berth/cli/internal/up"
)

// Machine examines what berth up needs: its tools, its disk, its ports or, when
// it runs, its parts.
func Machine(ctx context.Context, getenv func(string) string) []Finding {
	found := []Finding{postgres(getenv), terraform(getenv("BERTH_TERRAFORM"))}
	layout, err := local.Layout()
	if err != nil {
		return append(found, Bad("data folder", err))
	}
	if err := up.EnoughSpace(layout.Dir); err != nil {
		found = append(found, Bad("disk", err))
	} else {
		found = append(found, good("disk", "enough space for %s", layout.Dir))
	}
	status, err := up.AskStatus(ctx, layout)
	switch {
	case err != nil:
		return append(found, Bad("berth up", err))
	case status.Running:
		return append(found, parts(status)...)
	}
	return append(found, ports(ctx, getenv("BERTH_PORT")))
}

func postgres(getenv func(string) string) Finding {
	if getenv("DATABASE_URL") != "" {
		return good("postgres", "uses DATABASE_URL")
	}
	bin, err := up.FindPostgres(getenv)
	if err != nil {
		return Bad("postgres", err)
	}
	return good("postgres", "%s", bin)
}

// terraform looks for the one that was chosen, else for any.
func terraform(chosen string) Finding {
	path, err := exec.LookPath(cmp.Or(chosen, "terraform"))
	switch {
	case err == nil:
		return good("terraform", "%s", path)
	case chosen != "":
		return Finding{What: "terraform", Detail: "BERTH_TERRAFORM is not an executable: " + chosen, Remedy: "set it to a Terraform executable, or unset it"}
	}
	return good("terraform", "not on PATH; berth up fetches %s", toolchain.TerraformVersion)
}

func parts(status up.Status) []Finding {
	var found []Finding
	for _, part := range status.Parts {
		if part.Ready {
			found = append(found, good(part.Name, "pid %d, ready", part.PID))
		} else {
			found = append(found, Finding{What: part.Name, Detail: part.Why, Remedy: "read " + part.Log})
		}
	}
	return found
}

// ports tells whether the four ports of berth up are free.
func ports(ctx context.Context, first string) Finding {
	base, err := up.ParsePort(first)
	if err != nil {
		return Bad("ports", err)
	}
	for port := base; port < base+4; port++ {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return Finding{What: "ports", Detail: fmt.Sprintf("another program uses port %d", port),
				Remedy: "stop it, or set BERTH_PORT to the first of four free ports"}
		}
		_ = listener.Close()
	}
	return good("ports", "%d to %d are free", base, base+3)
}
