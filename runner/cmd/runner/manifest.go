package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/berth-dev/berth/runner/deploy"
)

// manifestCommand prints what a customer applies. It asks nobody.
func (s *settings) manifestCommand() *cobra.Command {
	var o deploy.Options
	cmd := &cobra.Command{
		Use:   "manifest",
		Short: "Print the manifest that runs this runner in a cluster, for kubectl apply -f -",
		Long: `Prints everything that the runner of one install needs: its namespace, service accounts with
the fewest possible rights, the code, the data volume, the runner itself. Read it, then apply it.

Vendor code runs in pods of its own (--engines jobs, the default). With --engines process it
runs in the agent's container as another user. That needs fewer rights in the namespace, but
isolates vendor code less from the runner's keys; such a runner is shown as trust: development.

The code holds secrets that work once. Everybody on a machine can see arguments, so pass it
in a file (--code @FILE) or on standard input (--code -).`,
		Example: "  berth-runner manifest --code @code.txt --image registry.example.com/berth/runner:1.0 | kubectl apply -f -\n" +
			"  berth-runner manifest --code - --proxy http://proxy.example.com:3128 --ca corporate.pem < code.txt",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if o.CodeText, o.Code, err = parseCode(or(s.cfg.Code, os.Getenv("BERTH_CODE")), cmd.InOrStdin()); err != nil {
				return err
			}
			if o.Code.Expired(time.Now()) && !o.Upgrade {
				return fmt.Errorf("the code expired at %s: ask for a new one, or say --upgrade for a runner that is there already", o.Code.ExpiresAt.Format("2006-01-02 15:04 MST"))
			}
			if path := or(s.cfg.CAFile, os.Getenv("BERTH_CA_FILE")); path != "" {
				text, err := os.ReadFile(path)
				if err != nil {
					return fmt.Errorf("--ca: %w", err)
				}
				o.CA = string(text)
			}
			o = s.withEngines(o)
			text, err := deploy.Manifest(o)
			if err != nil {
				return usageError{err}
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		},
	}
	f := cmd.Flags()
	choices(f, &o)
	f.StringVar(&o.Image, "image", "", "the berth-runner image by digest, NAME@sha256:… (default the one in the code)")
	f.StringVar(&o.PullPolicy, "image-pull-policy", "", "Always, IfNotPresent or Never (default IfNotPresent)")
	f.StringVar(&o.Size, "size", "", "size of the data volume (default 10Gi)")
	f.StringVar(&o.AppPodSecurity, "app-pod-security", "", "Pod Security level of the namespaces it makes for the app: privileged, baseline or restricted (default baseline)")
	f.StringVar(&o.AgentCPU, "agent-cpu", "", "processor limit of the agent, 500m or 2 (default 1; with --engines process 2)")
	f.StringVar(&o.AgentMemory, "agent-memory", "", "memory limit of the agent, 512Mi or 2Gi (default 1Gi; with --engines process 4Gi)")
	f.IntVar(&o.RegistryNodePort, "registry-node-port", 0, "port on every node's loopback from which kubelets pull the install's images (default 30500)")
	f.StringVar(&o.Contexts, "contexts-secret", "", "a Secret in the runner's namespace that holds your kubeconfigs for named contexts, each under its context's name")
	f.StringVar(&o.Proxy, "proxy", "", "HTTP proxy for outgoing connections, http://host:port")
	f.StringVar(&o.NoProxy, "no-proxy", "", "hosts to reach without the proxy, in addition to the cluster")
	return cmd
}

// choices are the flags of manifest that preflight has too.
func choices(f *pflag.FlagSet, o *deploy.Options) {
	f.BoolVar(&o.Upgrade, "upgrade", false, "the runner is there already: the code it has may have expired")
	f.StringVar(&o.Namespace, "namespace", "", "namespace of the runner (default berth-INSTALL)")
	f.StringVar(&o.Rights, "rights", "", "what engines may change: namespaces, app (what --permissions lists) or cluster (default namespaces)")
	f.StringSliceVar(&o.Namespaces, "namespaces", nil, "the namespaces that engines may change (default one named after the install's id, or those of --permissions)")
	f.Var((*permissionsFile)(o), "permissions", "what the app needs in the cluster: a file of berth apps permissions -o json, for --rights app")
	f.StringSliceVar(&o.Allow, "allow", nil, "bind, escalate or impersonate: agree that --permissions has it, which lets engines get further rights")
	f.StringVar(&o.PodSecurity, "pod-security", "", "Pod Security level of the runner's namespace (default restricted; baseline with --engines process, privileged with --volume)")
	f.Var((*relaySwitch)(o), "registry-relay", "run a relay on each node, from which kubelets pull the app's images; =false for an app without container_image components")
	f.Lookup("registry-relay").NoOptDefVal = "true"
	f.StringVar(&o.StorageClass, "storage-class", "", "storage class of the data volume (default the cluster's default)")
	f.StringVar(&o.HostPath, "volume", "", "a directory on the node to use instead of a volume, to try things out")
}

// withEngines adds what the flags of the agent say about engines.
func (s *settings) withEngines(o deploy.Options) deploy.Options {
	o.Engines, o.EngineCPU, o.EngineMemory = or(s.cfg.Engines, os.Getenv("BERTH_ENGINES")), s.cfg.EngineCPU, s.cfg.EngineMemory
	return o
}

// permissionsFile is the flag that reads a list of permissions.
type permissionsFile deploy.Options

func (p *permissionsFile) String() string { return "" }
func (p *permissionsFile) Type() string   { return "file" }
func (p *permissionsFile) Set(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&p.Permissions); err != nil {
		return fmt.Errorf("%s is not what `berth apps permissions -o json` prints: %w", path, err)
	}
	return nil
}

// relaySwitch is the flag that turns relays off.
type relaySwitch deploy.Options

func (r *relaySwitch) String() string { return strconv.FormatBool(!r.NoRelay) }
func (r *relaySwitch) Type() string   { return "bool" }
func (r *relaySwitch) Set(text string) error {
	on, err := strconv.ParseBool(text)
	r.NoRelay = !on
	return err
}
