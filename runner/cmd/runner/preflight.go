package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/pkg/version"
	"github.com/berth-dev/berth/pkg/visible"
	"github.com/berth-dev/berth/runner/agent"
	"github.com/berth-dev/berth/runner/agent/cluster"
	"github.com/berth-dev/berth/runner/deploy"
	"github.com/berth-dev/berth/runner/preflight"
)

// preflightTime bounds all checks together.
const preflightTime = 2 * time.Minute

func (s *settings) preflightCommand() *cobra.Command {
	var o deploy.Options
	var format string
	cmd := &cobra.Command{
		Use:   "preflight",
		Short: "Check what a runner needs, and say what to fix",
		Long: `With --code: checks before berth-runner manifest is applied: the code, the way to the control
plane, and in the cluster of --kubeconfig (default: kubectl's) your rights to apply it, what its
namespace admits, storage and versions. Give it the flags that manifest will get, also --engines.
Reach is checked from where this runs: run it in the cluster too, if that has another way out.

Without --code: checks whether the agent of --data could work. Nothing is changed. The exit
code is 0 when nothing failed.`,
		Example: "  berth-runner preflight --code - < code.txt\n" +
			"  berth-runner preflight --code @code.txt --proxy http://proxy.example.com:3128 --ca corporate.pem -o json",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if format != "" && format != "json" {
				return usageError{fmt.Errorf("-o is %q, not json", format)}
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), preflightTime)
			defer cancel()
			var findings []preflight.Finding
			if or(s.cfg.Code, os.Getenv("BERTH_CODE")) == "" {
				cfg, err := s.config()
				if err != nil {
					return err
				}
				findings = ofData(agent.Preflight(ctx, cfg))
			} else {
				cfg, err := s.preflightConfig(ctx, cmd.InOrStdin(), o)
				if err != nil {
					return err
				}
				findings = preflight.Run(ctx, cfg)
			}
			if err := printFindings(cmd.OutOrStdout(), findings, format); err != nil {
				return err
			}
			if bad := preflight.Failed(findings); bad > 0 {
				return fmt.Errorf("%d of %d checks failed", bad, len(findings))
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVarP(&format, "output", "o", "", "json for programs")
	choices(f, &o)
	f.StringVar(&o.Proxy, "proxy", "", "HTTP proxy for outgoing connections, http://host:port (default: from the environment)")
	return cmd
}

func (s *settings) preflightConfig(ctx context.Context, stdin io.Reader, o deploy.Options) (preflight.Config, error) {
	var err error
	if o.CodeText, o.Code, err = parseCode(or(s.cfg.Code, os.Getenv("BERTH_CODE")), stdin); err != nil {
		return preflight.Config{}, err
	}
	o = s.withEngines(o).WithDefaults()
	if o.Engines != deploy.EnginesProcess && o.Engines != deploy.EnginesJobs {
		return preflight.Config{}, usageError{fmt.Errorf("--engines is %q, not %s or %s", o.Engines, deploy.EnginesProcess, deploy.EnginesJobs)}
	}
	if (o.Rights == deploy.RightsApp) != (o.Permissions != nil) {
		return preflight.Config{}, usageError{errors.New("--rights app and --permissions FILE belong together")}
	}
	cfg := preflight.Config{
		Code: o.Code, Version: version.Get().Version, Proxy: o.Proxy, CAFile: or(s.cfg.CAFile, os.Getenv("BERTH_CA_FILE")),
		Rights: o.Rights, Namespace: o.Namespace, Namespaces: o.Namespaces, Engines: o.Engines, StorageClass: o.StorageClass, HostPath: o.HostPath,
		PodSecurity: o.PodSecurity, Relay: o.Relay(), Permissions: o.Permissions, Upgrade: o.Upgrade,
	}
	path := or(s.cfg.Kubeconfig, or(os.Getenv("BERTH_KUBECONFIG"), kubectlsConfig()))
	if path == "" {
		return cfg, nil
	}
	access, err := cluster.File(path)(ctx, 0)
	if err != nil {
		return cfg, err
	}
	cfg.Cluster, err = cluster.Connect(ctx, access)
	return cfg, err
}

// kubectlsConfig is the kubeconfig that kubectl would use, when it is one file.
func kubectlsConfig() string {
	if path := os.Getenv("KUBECONFIG"); path != "" {
		return path
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	path := filepath.Join(home, ".kube", "config")
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

// ofData are the findings of an agent's data directory, in the form of all.
func ofData(found []agent.Finding) []preflight.Finding {
	findings := make([]preflight.Finding, len(found))
	for i, f := range found {
		findings[i] = preflight.Finding{Check: f.What, Status: preflight.OK}
		if f.Err != nil {
			findings[i].Status, findings[i].Detail = preflight.Fail, f.Err.Error()
			if f.Warning {
				findings[i].Status = preflight.Warn
			}
		}
	}
	return findings
}

func printFindings(w io.Writer, findings []preflight.Finding, format string) error {
	if format == "json" {
		return printJSON(w, findings)
	}
	marks := map[preflight.Status]string{preflight.OK: "ok  ", preflight.Warn: "warn", preflight.Fail: "FAIL", preflight.Skip: "skip"}
	for _, f := range findings {
		line := marks[f.Status] + "  " + f.Check
		if f.Detail != "" {
			line += ": " + visible.Line(f.Detail)
		}
		if f.Fix != "" {
			line += "\n      → " + visible.Line(f.Fix)
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}
