// Package policies keeps the NetworkPolicies of a cluster of one node: it turns
// them into rules of nftables, and replaces them as a whole whenever a policy, a
// pod or a namespace changes.
//
//	policies, pods, namespaces ─▶ state.walls ─▶ state.ruleset ─▶ nft -f -
//	                               (who, what)    (as text)        (one step)
//
// What it does not do: IPv6, which the cluster does not have. A connection that
// was let in stays open when a policy changes. A pod whose address the API server
// does not know yet, for about a second after it begins, has no wall of its own;
// others that let in only certain pods do not let it in.
package policies

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os/exec"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/berth-dev/berth/dev/kube/k8s/watch"
)

// Main keeps policies until it is asked to stop. It leaves the rules in place:
// `nft delete table ip berth-policies` removes them. args are a program's, name
// first.
func Main(args []string) int {
	flags := flag.NewFlagSet(args[0], flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "how to reach the API `file`")
	nft := flags.String("nft", "nft", "`command` of nftables")
	_ = flags.Parse(args[1:]) // ExitOnError

	return watch.Main("policies", func(ctx context.Context) error { return run(ctx, *kubeconfig, *nft) })
}

func run(ctx context.Context, kubeconfig, nft string) error {
	_, factory, err := watch.Connect(kubeconfig)
	if err != nil {
		return err
	}
	policies, pods, namespaces := factory.Networking().V1().NetworkPolicies(),
		factory.Core().V1().Pods(), factory.Core().V1().Namespaces()
	changes, err := watch.Of(policies.Informer(), pods.Informer(), namespaces.Informer())
	if err != nil {
		return err
	}
	if err := watch.Start(ctx, factory); err != nil {
		return err
	}
	applied := ""
	changes.Each(ctx, "policies not kept", func(ctx context.Context) error {
		seen := state{}
		seen.policies, _ = policies.Lister().List(labels.Everything()) // from memory: cannot fail
		seen.pods, _ = pods.Lister().List(labels.Everything())
		seen.namespaces, _ = namespaces.Lister().List(labels.Everything())
		wanted := seen.ruleset()
		if wanted == applied {
			return nil
		}
		if err := apply(ctx, nft, wanted); err != nil {
			return err
		}
		if applied == "" {
			slog.Info("policies are kept")
		}
		applied = wanted
		return nil
	})
	return nil
}

// apply replaces the rules, all or none.
func apply(ctx context.Context, nft, ruleset string) error {
	cmd := exec.CommandContext(ctx, nft, "-f", "-")
	cmd.Stdin = strings.NewReader(ruleset)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}
