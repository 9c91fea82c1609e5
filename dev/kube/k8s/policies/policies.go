// Package policies keeps the NetworkPolicies of a cluster of one node: it turns
// them into rules of nftables, and replaces them as a whole whenever a policy, a
// pod or a namespace changes.
//
//	policies, pods, namespaces ─▶ state.walls ─▶ state.ruleset ─▶ nft -f -
//	                               (who, what)    (as text)        (one step)
//
// What it does not do: IPv6, which the cluster does not have. A connection that
// was let in goes on when a policy changes. A pod whose address the API server
// does not know yet, for about a second after it begins, has no wall of its own;
// others that let in only certain pods do not let it in.
package policies

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// retry is how long after a failure the rules are applied again.
const retry = 2 * time.Second

// Main keeps policies until it is asked to stop. It leaves the rules in place:
// `nft delete table ip berth-policies` removes them. args are a program's, name
// first.
func Main(args []string) int {
	flags := flag.NewFlagSet(args[0], flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "how to reach the API `file`")
	nft := flags.String("nft", "nft", "`command` of nftables")
	_ = flags.Parse(args[1:]) // ExitOnError

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, *nft); err != nil {
		slog.Error("policies stopped", "err", err)
		return 1
	}
	return 0
}

func run(ctx context.Context, kubeconfig, nft string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	policies, pods, namespaces := factory.Networking().V1().NetworkPolicies(),
		factory.Core().V1().Pods(), factory.Core().V1().Namespaces()

	// One place in the channel is enough: whatever changed, we look at
	// everything.
	changed := make(chan struct{}, 1)
	changed <- struct{}{}
	note := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { note() },
		UpdateFunc: func(any, any) { note() },
		DeleteFunc: func(any) { note() },
	}
	for _, informer := range []cache.SharedInformer{policies.Informer(), pods.Informer(), namespaces.Informer()} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return err
		}
	}
	factory.Start(ctx.Done())
	for kind, ok := range factory.WaitForCacheSync(ctx.Done()) {
		if !ok {
			return fmt.Errorf("list %s: %w", kind, ctx.Err())
		}
	}

	applied := ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
		seen := state{}
		seen.policies, _ = policies.Lister().List(labels.Everything()) // from memory: cannot fail
		seen.pods, _ = pods.Lister().List(labels.Everything())
		seen.namespaces, _ = namespaces.Lister().List(labels.Everything())
		wanted := seen.ruleset()
		if wanted == applied {
			continue
		}
		if err := apply(ctx, nft, wanted); err != nil {
			slog.Warn("policies not kept", "err", err)
			time.AfterFunc(retry, note)
			continue
		}
		if applied == "" {
			slog.Info("policies are kept")
		}
		applied = wanted
	}
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
