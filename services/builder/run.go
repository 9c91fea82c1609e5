package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/berth-dev/berth/pkg/intake"
	"github.com/berth-dev/berth/services/builder/internal/build"
	"github.com/berth-dev/berth/services/builder/internal/database"
	"github.com/berth-dev/berth/services/builder/internal/depot"
	"github.com/berth-dev/berth/services/builder/internal/fleet"
	"github.com/berth-dev/berth/services/builder/internal/keyring"
	"github.com/berth-dev/berth/services/builder/internal/orders"
	"github.com/berth-dev/berth/services/builder/internal/registry"
	"github.com/berth-dev/berth/services/builder/internal/source"
	"github.com/berth-dev/berth/services/builder/internal/turn"
	"github.com/berth-dev/berth/services/internal/jobs"
	"github.com/berth-dev/berth/services/internal/startup"
	"github.com/berth-dev/berth/services/internal/store"
)

const (
	// drainTimeout is how long a push may go on at a shutdown; it is resumed or
	// repeated by its client.
	drainTimeout = 10 * time.Second

	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeaders    = 64 << 10

	// Uploads that nobody finished are removed after a day: no push takes that
	// long.
	purgeInterval = time.Hour
	uploadsExpire = 24 * time.Hour
)

// Run builds and serves until ctx is done, then ends what it started and
// returns nil.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	log := slog.Default()
	st, err := startup.OpenStore(ctx, cfg.DSNFile, store.Options{Name: "berth-builder", MaxConns: int32(cfg.DatabaseConnections), Log: log})
	if err != nil {
		return err
	}
	defer st.Close()
	s := service{cfg: cfg, store: database.New(st), log: log}
	return s.run(ctx)
}

// service is a builder that has its database.
type service struct {
	cfg   Config
	store *database.Store
	log   *slog.Logger
}

func (s service) run(ctx context.Context) error {
	if err := s.makeFolders(); err != nil {
		return err
	}
	reg, err := s.openRegistry()
	if err != nil {
		return err
	}
	defer func() {
		if err := reg.Close(); err != nil {
			s.log.WarnContext(ctx, "registry not closed", "err", err)
		}
	}()
	listener, err := s.listen(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }() // for when nobody came to serve on it; else it is closed already
	keys, err := s.openKeys()
	if err != nil {
		return err
	}
	buildRunners, err := s.newRunners(keys)
	if err != nil {
		return err
	}
	worker, err := s.newWorker(listener.Addr(), buildRunners, keys)
	if err != nil {
		return err
	}
	river, err := jobs.New(s.store.Store, jobs.Config{Schema: store.RiverBuilder, Workers: workers(worker), MaxWorkers: s.cfg.Workers, Log: s.log})
	if err != nil {
		return err
	}

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.serve(ctx, listener, reg) })
	group.Go(func() error {
		return s.inTurn(ctx, "uploads", func(ctx context.Context) error { return s.purge(ctx, reg) })
	})
	group.Go(func() error { return s.keep(ctx, buildRunners) })
	group.Go(func() error { return river.Run(ctx) })
	group.Go(func() error { return wakeOpenBuilds(ctx, s.store) })
	return group.Wait()
}

// inTurn does what one replica at a time may do.
func (s service) inTurn(ctx context.Context, name string, work func(context.Context) error) error {
	if !s.cfg.replicas() {
		return work(ctx)
	}
	return turn.New(s.store.Store, name, s.log).Run(ctx, work)
}

// keep looks after the Build Runners. Pods have one name each, and every replica
// looks after all of them; processes are on one machine at a time.
func (s service) keep(ctx context.Context, buildRunners runners) error {
	if s.cfg.BuildRunners == runnersPods {
		return buildRunners.Run(ctx)
	}
	return s.inTurn(ctx, "build_runners", buildRunners.Run)
}

// makeFolders makes builder's own folder. Engines of Build Runners pass through
// it, and must not see what else is there.
func (s service) makeFolders() error {
	err := errors.Join(os.MkdirAll(s.cfg.own("tmp"), 0o700), os.Chmod(s.cfg.own(), 0o711))
	if err != nil {
		return fmt.Errorf("make data folder: %w", err)
	}
	return nil
}

func (s service) openRegistry() (*registry.Registry, error) {
	secret, err := s.uploadSecret()
	if err != nil {
		return nil, err
	}
	config := registry.Config{
		Secret: secret, Logger: s.log, Locks: &depot.Locks{Store: s.store},
		Auth:           registry.NewTokens(depot.NewTokens(s.store), time.Now),
		ManifestMemory: intake.NewMemory(s.cfg.Memory(), s.cfg.Memory()/4), Grace: s.cfg.Grace(),
	}
	if config.S3, err = s.cfg.bucket(os.Getenv); err != nil {
		return nil, err
	}
	if config.S3 == nil {
		config.Dir = s.cfg.registryDir()
	}
	return registry.New(config)
}

// uploadSecret is the one of the file that all replicas have, or this machine's.
func (s service) uploadSecret() (string, error) {
	if s.cfg.UploadSecretFile == "" {
		return registrySecret(s.cfg.own("registry.secret"))
	}
	secret, err := secretIn(s.cfg.UploadSecretFile)
	if err != nil {
		return "", fmt.Errorf("secret of the registry: %w", err)
	}
	return secret, nil
}

// openKeys does the same for the keys that sign builds.
func (s service) openKeys() (*orders.Keys, error) {
	if s.cfg.OrdersKeyFile == "" {
		return orders.Open(s.cfg.own("orders.key"))
	}
	return orders.OpenGiven(s.cfg.OrdersKeyFile)
}

func (s service) listen(ctx context.Context) (net.Listener, error) {
	if s.cfg.Listener != nil {
		return s.cfg.Listener, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.cfg.RegistryListen)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return listener, nil
}

// runners are kept alive by Run.
type runners interface {
	build.Runners
	Run(ctx context.Context) error
}

func (s service) newRunners(keys *orders.Keys) (runners, error) {
	if s.cfg.BuildRunners == runnersPods {
		return s.cfg.Pods.fleet(s.store, keys, os.Environ())
	}
	executable, err := s.cfg.runner()
	if err != nil {
		return nil, err
	}
	config := fleet.Config{
		Dir: s.cfg.own("runners"), Executable: executable, RunnerAPIURL: s.cfg.RunnerAPIURL,
		Keys: keys, Env: runnerEnv(os.Environ()), Replicas: s.cfg.replicas(), Log: s.log,
	}
	if os.Geteuid() == 0 {
		config.EngineUID = s.cfg.EngineUID
	}
	return fleet.New(s.store, config)
}

func (s service) newWorker(registryAddr net.Addr, buildRunners runners, keys *orders.Keys) (*build.Worker, error) {
	var mapped source.Map
	if s.cfg.SourceMap != "" {
		var err error
		if mapped, err = source.ReadMap(s.cfg.SourceMap); err != nil {
			return nil, err
		}
	}
	var credentials *keyring.Ring
	if s.cfg.SourceCredentials != "" {
		var err error
		if credentials, err = keyring.Read(s.cfg.SourceCredentials, keyring.Options{AzureAuthority: os.Getenv("AZURE_AUTHORITY_HOST")}); err != nil {
			return nil, err
		}
	}
	return &build.Worker{
		Store:    s.store,
		Resolver: source.NewResolver(source.Config{Map: mapped, AllowFile: s.cfg.AllowFileSources, Keys: credentials}),
		Registry: depot.New(s.store, loopback(registryAddr), s.cfg.own("tmp")),
		Runners:  buildRunners,
		Keys:     keys,
		Caches:   s.cfg.BuildCacheGB > 0,
		Log:      s.log,
	}, nil
}

// loopback is how this process reaches its own registry, whatever it listens on.
func loopback(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return addr.String()
	}
	return net.JoinHostPort("127.0.0.1", fmt.Sprint(tcp.Port))
}

// serve is the one door: the registry, and whether builder is well.
func (s service) serve(ctx context.Context, listener net.Listener, reg *registry.Registry) error {
	mux := http.NewServeMux()
	mux.Handle("/v2/", reg)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, `{"status":"ok"}`) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := s.store.Ping(r.Context()); err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintln(w, `{"status":"the database is not available"}`)
			return
		}
		fmt.Fprintln(w, `{"status":"ready"}`)
	})
	limited := intake.Limit(listener, s.cfg.Connections())
	server := &http.Server{
		Handler: intake.Handler(mux), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaders,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	limited.Watch(server)
	go func() { ended <- server.Serve(limited) }()
	s.log.InfoContext(ctx, "registry serves", "address", listener.Addr().String())
	select {
	case err := <-ended:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("drain: %w", err), server.Close())
	}
	return nil
}

// purge removes uploads that nobody finished, and caches of builds that are past
// their limits, now and then.
func (s service) purge(ctx context.Context, reg *registry.Registry) error {
	tick := time.NewTicker(purgeInterval)
	defer tick.Stop()
	for {
		removed, err := reg.PurgeUploads(ctx, time.Now().Add(-uploadsExpire))
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			s.log.WarnContext(ctx, "unfinished uploads not removed", "err", err)
		case removed > 0:
			s.log.InfoContext(ctx, "unfinished uploads removed", "count", removed)
		}
		s.pruneCaches(ctx, reg)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (s service) pruneCaches(ctx context.Context, reg *registry.Registry) {
	removed, err := reg.PruneCaches(ctx, s.cfg.cacheLimits(), time.Now())
	if err != nil && ctx.Err() == nil {
		s.log.WarnContext(ctx, "caches of builds not pruned", "err", err)
	}
	if removed > 0 {
		s.log.InfoContext(ctx, "caches of builds removed", "count", removed)
	}
}
