package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/riverqueue/river"
	"golang.org/x/sync/errgroup"

	"github.com/berth-dev/berth/pkg/version"
	"github.com/berth-dev/berth/services/ctl-api/internal/access"
	"github.com/berth-dev/berth/services/ctl-api/internal/alertwatch"
	"github.com/berth-dev/berth/services/ctl-api/internal/api"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/browser"
	"github.com/berth-dev/berth/services/ctl-api/internal/bulk"
	"github.com/berth-dev/berth/services/ctl-api/internal/census"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/installs"
	"github.com/berth-dev/berth/services/ctl-api/internal/keys"
	"github.com/berth-dev/berth/services/ctl-api/internal/logproxy"
	"github.com/berth-dev/berth/services/ctl-api/internal/metricexport"
	"github.com/berth-dev/berth/services/ctl-api/internal/oidclogin"
	"github.com/berth-dev/berth/services/ctl-api/internal/remedyask"
	"github.com/berth-dev/berth/services/ctl-api/internal/roleswitch"
	"github.com/berth-dev/berth/services/ctl-api/internal/rollback"
	"github.com/berth-dev/berth/services/ctl-api/internal/settings"
	"github.com/berth-dev/berth/services/ctl-api/internal/stacks"
	"github.com/berth-dev/berth/services/ctl-api/internal/stream"
	"github.com/berth-dev/berth/services/ctl-api/internal/sweep"
	"github.com/berth-dev/berth/services/ctl-api/internal/tend"
	"github.com/berth-dev/berth/services/ctl-api/internal/tracelink"
	"github.com/berth-dev/berth/services/ctl-api/internal/web"
	"github.com/berth-dev/berth/services/ctl-api/internal/webhooks"
	"github.com/berth-dev/berth/services/ctl-api/internal/workflow"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/httpserver"
	"github.com/berth-dev/berth/services/internal/jobs"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/reference"
	"github.com/berth-dev/berth/services/internal/store"
)

// Run serves until ctx ends; then it lets requests and jobs finish.
func Run(ctx context.Context, config Config, log *slog.Logger) error {
	listener, err := net.Listen("tcp", config.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	defer listener.Close()
	st, ring, err := open(ctx, config, log)
	if err != nil {
		return err
	}
	defer st.Close()
	return serve(ctx, config, listener, st, ring, log)
}

// serve wires the parts together and runs them as one group: whichever fails
// ends all.
func serve(ctx context.Context, config Config, listener net.Listener, st *database.Store, ring *keys.Ring, log *slog.Logger) error {
	stack := &stacks.Service{
		Keys: ring, RunnerAPIURL: config.RunnerAPIURL, LogURL: config.LogURL, PublicURL: config.PublicURL,
		MinRunnerVersion: config.MinRunnerVersion, RunnerImage: config.RunnerImage,
	}
	supervisor := stacks.NewSupervisor(config.SupervisorSocket)
	workers := river.NewWorkers()
	river.AddWorker(workers, &stacks.HandoverWorker{Store: st, Stacks: stack, Supervisor: supervisor})
	river.AddWorker(workers, &stacks.RemovalWorker{Supervisor: supervisor})
	wake := &waker{}
	engine := &workflow.Engine{
		Store: st, Waker: wake, Keys: ring, MinRunnerVersion: config.MinRunnerVersion, Log: log,
		Failed: rollback.Finder{Installs: &installs.Service{Keys: ring}, Log: log}.ByItself,
	}
	river.AddWorker(workers, &workflowWorker{engine: engine})
	tender := &tend.Tender{
		Store: st, Waker: wake, Publisher: &settings.Publisher{Keys: ring, MinRunnerVersion: config.MinRunnerVersion}, Log: log,
	}
	care := care{
		switches: &roleswitch.Starter{Store: st, Start: api.StartRoleSwitch, Log: log}, tender: tender,
		asks: &remedyask.Starter{Store: st, Start: api.StartRemedy, Log: log},
	}
	river.AddWorker(workers, &installWorker{care: care})
	river.AddWorker(workers, &dueWorker{care: care})
	guard, err := webhooks.NewGuard(config.WebhookAllow)
	if err != nil {
		return err
	}
	courier := &webhooks.Courier{Store: st, Jobs: wake, Keys: ring, Sender: webhooks.NewSender(guard), Log: log}
	courier.AddWorkers(workers)
	office := &bulk.Office{Store: st, Keys: ring, Start: api.StartBulk, InsertAt: wake.InsertAt}
	river.AddWorker(workers, &bulk.Worker{Office: office})
	river.AddWorker(workers, sweep.New(log, sweep.Workflows(st, engine), sweep.Bulks(st, office), sweep.Installs(st, tender), sweep.Alerts(st, tender)))
	river.AddWorker(workers, &alertwatch.DropWorker{Store: st, Log: log})
	client, err := jobs.New(st.Store, jobs.Config{
		Schema: store.RiverCtl, Workers: workers, Queues: map[string]int{webhooks.Queue: webhooks.Workers}, Log: log,
		Periodic: []*river.PeriodicJob{sweep.Every(time.Duration(config.SweepSeconds) * time.Second), alertwatch.Daily()},
	})
	if err != nil {
		return err
	}
	wake.client = client
	stack.Insert = func(ctx context.Context, tx *database.Tx, args river.JobArgs) error {
		return client.Insert(ctx, tx.Tx, args)
	}

	authenticator := access.NewAuthenticator(st, nil)
	wakeups := st.NewListener(api.Channels...)
	wakeups.Handle(model.ChannelRevoked, authenticator.Revoked)
	sequencer := stream.NewSequencer(stream.Sequencer{Store: st, Listener: wakeups, KeepDays: config.EventDays, Log: log})
	distributor := webhooks.NewDistributor(webhooks.Distributor{Store: st, Listener: wakeups, Jobs: wake, Log: log})
	var exporter *metricexport.Exporter
	if config.MetricsExportEndpoint != "" {
		sender, err := metricexport.NewSender(config.MetricsExportEndpoint, config.MetricsExportHeadersFile)
		if err != nil {
			return err
		}
		exporter = &metricexport.Exporter{Store: st, Sender: sender, Log: log}
	}
	sites := browser.NewSites(config.DashboardURL, listener.Addr().String())
	server := &api.Server{
		Sites: sites, Provider: config.Provider(),
		Store: st, Keys: ring, Auth: authenticator, Stacks: stack, Installs: &installs.Service{Keys: ring, Stacks: stack},
		Webhooks: &webhooks.Office{Keys: ring, Jobs: wake, Guard: guard}, Bulk: office,
		Listener: wakeups, Version: version.Get().Version, LogURL: config.LogURL, RegistryURL: config.RegistryURL, MinCLIVersion: config.MinCLIVersion,
		Traces: tracelink.Link(config.TraceURL), Log: log,
	}
	spec, err := apigen.GetSpec()
	if err != nil {
		return fmt.Errorf("read contract: %w", err)
	}
	door := httpserver.New(httpserver.Config{
		Name: "berth-ctl-api", Log: log, Spec: spec, Listener: listener, Middleware: server.Middleware(spec), Ready: st.Ping,
		Reference:  reference.Of("ctl-api"),
		BodyLimits: api.BodyLimits(), Limits: config.Limits, Rates: config.Rates,
	})
	server.Register(door.Router())
	logs, err := logproxy.New(config.LogURL)
	if err != nil {
		return err
	}
	logs.Credential, logs.Auth, logs.Listener = sites.Credential, authenticator, wakeups
	logs.Register(door.Admitted())
	if config.Issuer != "" {
		login := &oidclogin.Login{
			Config: config.Config, Store: st, Keys: ring, Sites: sites, Open: server.Logins.Open, Revoked: server.Logins.Revoked, Log: log,
		}
		if err := login.Register(door.Admitted()); err != nil {
			return err
		}
	}
	door.Engine().Use(auth.RefuseSecretInURL) // of the routes that follow: pages and files
	web.Register(door.Engine())
	serveSchemas(door.Engine())
	if err := wakeAll(ctx, st); err != nil {
		return fmt.Errorf("wake what is open: %w", err)
	}

	defer census.Observe(st)()
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return wakeups.Run(groupCtx) })
	group.Go(func() error { return sequencer.Run(groupCtx) })
	group.Go(func() error { return distributor.Run(groupCtx) })
	if exporter != nil {
		group.Go(func() error { return exporter.Run(groupCtx) })
	}
	group.Go(func() error { return client.Run(groupCtx) })
	group.Go(func() error { return door.Run(groupCtx) })
	return group.Wait()
}
