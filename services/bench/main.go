package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/berth-dev/berth/services/internal/store"
)

// The budget of job dispatch, with budgetWaiting runners waiting.
const (
	budgetP50     = 5 * time.Millisecond
	budgetP99     = 50 * time.Millisecond
	budgetWaiting = 1000
)

const (
	// warmUp samples are not counted: plans get cached and connections opened.
	warmUp = 20

	// rest comes after each turn. Without it River's figures would be those of
	// its cool-down of 10 ms, within which it misses what is inserted.
	rest = 25 * time.Millisecond
)

type options struct {
	bin     string
	waiting []int
	samples int // per number of waiting runners
	engines int // the same, of the real agent

	// components are how many components to measure instead of job dispatch.
	components []int
	rounds     int  // of each number of components
	modules    bool // they are Terraform modules, which need no cluster
	shapes     bool // the same, which stand on each other in different shapes
	rules      bool // the same, held against policies
	reports    bool // installs that report a check each minute, instead
	idle       bool // what a runner costs that only looks at them, instead
}

// How long a run may take.
const (
	dispatchLimit   = 10 * time.Minute
	componentsLimit = 30 * time.Minute
)

func main() {
	opts := options{bin: os.Getenv("BERTH_LIBEXEC")}
	waiting := flag.String("waiting", "1,100,1000", "how many runners wait, rising")
	flag.IntVar(&opts.samples, "samples", 1000, "jobs to waiters for each of these")
	flag.IntVar(&opts.engines, "engines", 100, "jobs to the real agent for each of these")
	components := flag.String("components", "", "measure deploys on the cluster of KUBECONFIG instead: of how many components, rising, such as 1,10,50")
	modules := flag.String("modules", "", "the same with Terraform modules, against terraform apply: of how many, rising; needs no cluster")
	shapes := flag.String("shapes", "", "measure how close the schedule of modules that stand on each other comes to what their jobs take: of how many, rising; needs no cluster")
	rules := flag.String("rules", "", "measure what 20 policies add to deploys of modules: of how many, rising; needs no cluster")
	reports := flag.String("reports", "", "measure how soon reports of checks count instead: of how many installs that report each minute, such as 1000, for -rounds minutes; needs no cluster")
	idleN := flag.String("idle", "", "measure what a runner costs that only looks at its components instead, on the cluster of KUBECONFIG: of how many, such as 50, for -rounds minutes")
	flag.IntVar(&opts.rounds, "rounds", 5, "rounds for each of these; fewer where there are more than 10")
	limit := flag.Duration("limit", 0, fmt.Sprintf("give up after this time (default %s, with -components %s)", dispatchLimit, componentsLimit))
	flag.Parse()
	if opts.modules = *modules != ""; opts.modules {
		*components = *modules
	}
	if opts.shapes = *shapes != ""; opts.shapes {
		*components = *shapes
	}
	if opts.rules = *rules != ""; opts.rules {
		*components = *rules
	}
	if opts.idle = *idleN != ""; opts.idle {
		*components = *idleN
	}
	if opts.reports = *reports != ""; opts.reports {
		*components = *reports
	}
	measure := run
	switch {
	case opts.idle:
		measure = runIdle
	case opts.reports:
		measure = runReports
	case opts.rules:
		measure = runRules
	case opts.shapes:
		measure = runShapes
	case *components != "":
		measure = runComponents
	}
	if *limit == 0 {
		*limit = dispatchLimit
		if *components != "" {
			*limit = componentsLimit
		}
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, *limit)
	defer cancel()
	err := opts.read(*waiting, *components)
	if err == nil {
		err = measure(ctx, opts, os.Stdout, os.Stderr)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// read completes the options from what was written, and checks them.
func (o *options) read(waiting, components string) error {
	if o.bin == "" {
		return errors.New("BERTH_LIBEXEC names no folder with the executables: run `make bench`, or `make build` and set it to .bin")
	}
	var err error
	if o.bin, err = filepath.Abs(o.bin); err != nil {
		return err
	}
	if o.waiting, err = rising("-waiting", waiting); err != nil {
		return err
	}
	if components != "" {
		if o.components, err = rising("-components", components); err != nil {
			return err
		}
	}
	if o.samples < 1 || o.engines < 1 || o.rounds < 1 {
		return errors.New("-samples, -engines and -rounds must be at least 1")
	}
	return nil
}

// rising reads the numbers of a flag.
func rising(name, list string) ([]int, error) {
	var numbers []int
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || (len(numbers) > 0 && n <= numbers[len(numbers)-1]) {
			return nil, fmt.Errorf("%s %q is not a list of rising numbers such as 1,10,50", name, list)
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

// run starts a system, measures, prints the table to out and stops the system.
func run(ctx context.Context, opts options, out, progress io.Writer) (err error) {
	fmt.Fprintln(progress, "starting Berth")
	s, err := startSystem(ctx, opts.bin)
	if s != nil {
		defer func() { err = errors.Join(err, s.stop()) }()
	}
	if err != nil {
		return err
	}
	st, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer st.Close()
	river, err := newBareRiver(st)
	if err != nil {
		return err
	}
	if err := river.client.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, river.client.Stop(context.WithoutCancel(ctx))) }()

	before := load()
	b := &bench{options: opts, system: s, store: st, river: river, progress: progress}
	group, ctx := errgroup.WithContext(ctx)
	measuring, done := context.WithCancel(ctx)
	b.waiters = func(w *waiter) {
		group.Go(func() error {
			if err := w.run(measuring); measuring.Err() == nil {
				return err
			}
			return nil
		})
	}
	group.Go(func() error {
		defer done()
		return b.measure(measuring)
	})
	if err := group.Wait(); err != nil {
		return err
	}
	return b.print(out, before)
}

// bench is one run.
type bench struct {
	options
	system   *system
	store    *store.Store
	river    *bareRiver
	waiters  func(*waiter) // lets it wait, in the background
	progress io.Writer

	results []*figures
	hands   *figures // of the last number of waiting runners
}

func (b *bench) measure(ctx context.Context) error {
	most := b.waiting[len(b.waiting)-1]
	runners, err := seed(ctx, b.store, most+2, "")
	if err != nil {
		return err
	}
	agent, runners := runners[0], runners[1:]
	if err := b.system.startAgent(ctx, agent); err != nil {
		return err
	}
	base := &http.Transport{MaxIdleConns: most + 1, MaxIdleConnsPerHost: most + 1}
	defer base.CloseIdleConnections()

	fmt.Fprintf(b.progress, "a runner that asks every %s\n", pollEvery)
	poller, err := newWaiter(ctx, base, b.system.runnerAPIURL(), runners[0])
	if err != nil {
		return err
	}
	poll := &figures{what: "commit → hands, asking every " + pollEvery.String(), waiting: 1}
	if err := polled(ctx, b.store, poller, poll); err != nil {
		return err
	}
	var waiters []*waiter
	for _, n := range b.waiting {
		fmt.Fprintf(b.progress, "enrolling %d runners\n", n-len(waiters))
		for len(waiters) < n {
			w, err := newWaiter(ctx, base, b.system.runnerAPIURL(), runners[1+len(waiters)])
			if err != nil {
				return err
			}
			waiters = append(waiters, w)
			b.waiters(w)
		}
		if err := b.measureWith(ctx, waiters, agent); err != nil {
			return err
		}
	}
	poll.against = b.results[0]
	b.results = append(b.results, poll)
	return nil
}

// measureWith measures while these wait. Each sample of a dispatch is followed
// by one of River alone.
func (b *bench) measureWith(ctx context.Context, waiters []*waiter, agent runner) error {
	n := len(waiters)
	bare := &figures{what: "River alone, commit → worker", waiting: n}
	hands := &figures{what: "commit → job in the runner's hands", waiting: n, against: bare}
	engine := &figures{what: "commit → engine's first instruction", waiting: n, against: bare}
	start := &figures{what: "engine alone, exec → exit", waiting: n, against: bare}
	for _, w := range waiters {
		if err := w.untilHeld(ctx); err != nil {
			return err
		}
	}
	fmt.Fprintf(b.progress, "%d waiting\n", n)
	err := sample(ctx, b.samples,
		measurement{hands, func() (time.Duration, error) {
			return toWaiter(ctx, b.store, waiters[rand.IntN(n)]) //nolint:gosec // any
		}},
		measurement{bare, func() (time.Duration, error) { return b.river.sample(ctx, b.store) }})
	if err != nil {
		return err
	}
	err = sample(ctx, b.engines,
		measurement{engine, func() (time.Duration, error) { return toEngine(ctx, b.store, agent) }},
		measurement{start, func() (time.Duration, error) { return engineStart(ctx, b.bin) }})
	if err != nil {
		return err
	}
	b.results = append(b.results, bare, hands, engine, start)
	b.hands = hands
	return nil
}

type measurement struct {
	into *figures
	once func() (time.Duration, error)
}

// sample takes turns between measurements, n times each.
func sample(ctx context.Context, n int, all ...measurement) error {
	for i := range warmUp + n {
		for _, m := range all {
			took, err := m.once()
			if err != nil {
				return fmt.Errorf("%s: %w", m.into.what, err)
			}
			if i >= warmUp {
				m.into.add(took)
			}
		}
		if err := pause(ctx, rest); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) print(out io.Writer, before string) error {
	conn, err := b.store.Pool().Acquire(context.Background())
	if err != nil {
		return err
	}
	version := conn.Conn().PgConn().ParameterStatus("server_version")
	conn.Release()
	fmt.Fprintf(out, "\nJob dispatch. %d CPUs, load %s before and %s after; Postgres %s, %s, %s/%s.\n\n",
		runtime.NumCPU(), before, load(), version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if err := table(out, b.results); err != nil {
		return err
	}
	verdict := "missed"
	if b.hands.within(budgetP50, budgetP99) {
		verdict = "kept"
	}
	if b.hands.waiting < budgetWaiting {
		verdict += fmt.Sprintf(", but with %d only", b.hands.waiting)
	}
	_, err = fmt.Fprintf(out, "\nBudget: p50 ≤ %d ms and p99 ≤ %d ms in the runner's hands with %d waiting: %s.\n",
		budgetP50.Milliseconds(), budgetP99.Milliseconds(), budgetWaiting, verdict)
	return err
}

// load is the machine's load average over one minute, where that is known.
func load() string {
	text, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(text), " ")
	if first == "" {
		return "unknown"
	}
	return first
}
