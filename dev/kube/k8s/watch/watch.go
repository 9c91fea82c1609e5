// Package watch is what the small programs of the development cluster share: they
// keep what the API server has in memory, and look at all of it when a part changed.
package watch

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// retry is how long after a failure everything is looked at again.
const retry = 2 * time.Second

// Main runs a program until it is asked to stop, and returns its exit code.
func Main(name string, run func(context.Context) error) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		slog.Error(name+" stopped", "err", err)
		return 1
	}
	return 0
}

// Connect makes the client and the informers of a cluster.
func Connect(kubeconfig string) (kubernetes.Interface, informers.SharedInformerFactory, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	return client, informers.NewSharedInformerFactory(client, 0), nil
}

// Start starts informers, and returns when they know what there is.
func Start(ctx context.Context, factory informers.SharedInformerFactory) error {
	factory.Start(ctx.Done())
	for kind, ok := range factory.WaitForCacheSync(ctx.Done()) {
		if !ok {
			return fmt.Errorf("list %s: %w", kind, ctx.Err())
		}
	}
	return nil
}

// Changes tells when one of the informers saw something change. Its first signal
// comes at once. Call it before Start.
type Changes struct{ signal chan struct{} }

// Of watches informers.
func Of(watched ...cache.SharedInformer) (Changes, error) {
	// One place is enough: whatever changed, everything is looked at.
	c := Changes{make(chan struct{}, 1)}
	c.note()
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { c.note() },
		UpdateFunc: func(any, any) { c.note() },
		DeleteFunc: func(any) { c.note() },
	}
	for _, informer := range watched {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return c, err
		}
	}
	return c, nil
}

func (c Changes) note() {
	select {
	case c.signal <- struct{}{}:
	default:
	}
}

// Each calls act after every change, until ctx ends. What fails is tried again a
// little later; failed says what that means.
func (c Changes) Each(ctx context.Context, failed string, act func(context.Context) error) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.signal:
		}
		if err := act(ctx); err != nil {
			slog.Warn(failed, "err", err)
			time.AfterFunc(retry, c.note)
		}
	}
}
