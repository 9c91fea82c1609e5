package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/services/internal/store"
)

// componentBudget is what Berth may cost on top of the tool, per component of a
// deploy and without policies.
const componentBudget = 150 * time.Millisecond

// toolsAtOnce is how many calls of a tool go side by side in the second
// comparison: Berth, too, does not work on one component at a time.
const toolsAtOnce = 2

// deploysPerRow bounds the rounds of many components.
const deploysPerRow = 50

// cluster measures deploys of components against the tools that customers
// would use for them, on the cluster of KUBECONFIG.
type cluster struct {
	system   *system
	store    *store.Store
	api      *ctlapi.ClientWithResponses
	org      string
	tools    map[string]string // program by its name
	kinds    []kind            // that are measured
	name     string            // of all that it makes in the cluster
	progress io.Writer
	turns    int
	results  []*comparison
}

// comparison is one line of the table: the same done by Berth and by the tool.
type comparison struct {
	kind              kind
	n                 int
	changed           bool
	berth, tool, side measured // side: toolsAtOnce calls of the tool side by side
	spent             *spent
}

// measured is one way of a comparison: from its start to its end, and on a
// processor meanwhile.
type measured struct{ wall, cpu figures }

// runComponents starts a system, measures, prints the tables to out and removes
// what was made.
func runComponents(ctx context.Context, opts options, out, progress io.Writer) (err error) {
	kinds, programs := clusterKinds, []string{"helm", "kubectl"}
	if opts.modules {
		kinds, programs = moduleKinds, []string{"terraform"}
	} else if os.Getenv("KUBECONFIG") == "" {
		return errors.New("KUBECONFIG names no cluster to measure on: set it, or start one with make kube")
	}
	tools := map[string]string{}
	for _, name := range programs {
		if tools[name], err = tool(name); err != nil {
			return err
		}
	}
	fmt.Fprintln(progress, "starting Berth")
	s, err := startSystem(ctx, opts.bin)
	if s != nil {
		defer func() { err = errors.Join(err, s.stop()) }()
	}
	if err != nil {
		return err
	}
	c := &cluster{system: s, tools: tools, kinds: kinds, name: "berth-bench-" + strconv.Itoa(os.Getpid()), progress: progress}
	if err := c.open(ctx); err != nil {
		return err
	}
	defer c.store.Close()
	defer func() { err = errors.Join(err, c.clean(context.WithoutCancel(ctx))) }()
	before := load()
	err = c.measureAll(ctx, opts)
	if len(c.results) > 0 { // what was measured is worth knowing also after an interrupt
		err = errors.Join(err, c.print(context.WithoutCancel(ctx), out, before))
	}
	return err
}

func (c *cluster) measureAll(ctx context.Context, opts options) error {
	for _, n := range opts.components {
		for _, k := range c.kinds {
			if err := c.measure(ctx, k, n, min(opts.rounds, max(1, deploysPerRow/n))); err != nil {
				return fmt.Errorf("%d × %s: %w", n, k.name, err)
			}
		}
	}
	return nil
}

// open is what tells where Berth's time went.
func (c *cluster) open(ctx context.Context) error {
	token, err := os.ReadFile(filepath.Join(c.system.data(), "token"))
	if err != nil {
		return err
	}
	c.api, err = ctlapi.NewClientWithResponses(c.system.ctlAPIURL(), ctlapi.WithRequestEditorFn(func(_ context.Context, req *http.Request) error {
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
		return nil
	}))
	if err != nil {
		return err
	}
	me, err := c.api.GetMeWithResponse(ctx)
	if err != nil {
		return err
	}
	if me.JSON200 == nil {
		return fmt.Errorf("ask who we are: %s", me.Status())
	}
	c.org = me.JSON200.Org.ID
	c.store, err = c.system.open(ctx)
	return err
}

// tool is the program of a name: of the variable, such as HELM, or on the PATH.
func tool(name string) (string, error) {
	variable := strings.ToUpper(name)
	path := os.Getenv(variable)
	if path == "" {
		path = name
	}
	found, err := exec.LookPath(path)
	if err != nil {
		return "", fmt.Errorf("%s, to compare with: %w; set %s", name, err, variable)
	}
	return filepath.Abs(found)
}

// measure compares n components of a kind: rounds in which all take turns.
func (c *cluster) measure(ctx context.Context, k kind, n, rounds int) error {
	ours, theirs, side, err := c.setUp(ctx, k, n)
	if err != nil {
		return err
	}
	changed := &comparison{kind: k, n: n, changed: true, spent: ours.spent[true]}
	same := &comparison{kind: k, n: n, spent: ours.spent[false]}
	contest := []struct {
		way           way
		changed, same *measured
	}{
		{ours, &changed.berth, &same.berth},
		{theirs, &changed.tool, &same.tool},
		{side, &changed.side, &same.side},
	}
	if n == 1 {
		contest = contest[:2] // one at a time is all there is
	}
	for round := range rounds {
		fmt.Fprintf(c.progress, "%d × %s, round %d of %d\n", n, k.name, round+1, rounds)
		for turn := range contest {
			// Another one begins each round.
			who := contest[(round+turn)%len(contest)]
			if err := who.way.prepare(ctx, c.nextValue()); err != nil {
				return err
			}
			for _, into := range []*measured{who.changed, who.same} {
				wall, cpu, err := who.way.deploy(ctx)
				if err != nil {
					return err
				}
				into.wall.add(wall)
				into.cpu.add(cpu)
				if err := who.way.verify(ctx, into == who.changed); err != nil {
					return err
				}
			}
		}
	}
	c.results = append(c.results, same, changed)
	return nil
}

// nextValue is one that no component has had.
func (c *cluster) nextValue() string {
	c.turns++
	return "v" + strconv.Itoa(c.turns)
}

// setUp makes an install with n components, and the same with the tool.
func (c *cluster) setUp(ctx context.Context, k kind, n int) (*berthWay, *toolWay, *toolWay, error) {
	name := fmt.Sprintf("%s-%s-%d", c.name, strings.ReplaceAll(k.name, "_", "-"), n)
	ours := &berthWay{
		cluster: c, kind: k, install: name, n: n, namespace: name, spent: map[bool]*spent{true: newSpent(), false: newSpent()},
	}
	folder := filepath.Join(c.system.dir, name)
	theirs := &toolWay{cluster: c, kind: k, n: n, atOnce: 1, folder: folder, namespace: name + "-tool"}
	side := *theirs
	side.atOnce = toolsAtOnce
	for _, namespace := range []string{ours.namespace, theirs.namespace} {
		if !k.inCluster() {
			break
		}
		if err := c.kubectl(ctx, "create", "namespace", namespace); err != nil {
			return nil, nil, nil, err
		}
		if err := c.kubectl(ctx, "label", "namespace", namespace, "berth-bench="+c.name); err != nil {
			return nil, nil, nil, err
		}
	}
	if err := writeApp(folder, k, n, ours.namespace); err != nil {
		return nil, nil, nil, err
	}

	began := time.Now()
	if err := c.system.berth(ctx, "sync", folder, "--app", name, "--wait"); err != nil {
		return nil, nil, nil, err
	}
	synced := time.Now()
	if err := c.system.berth(ctx, "installs", "create", name, "--app", name, "--approve-all", "--watch"); err != nil {
		return nil, nil, nil, err
	}
	fmt.Fprintf(c.progress, "%d × %s: release made in %s, provisioned in %s\n",
		n, k.name, synced.Sub(began).Round(time.Millisecond), time.Since(synced).Round(time.Millisecond))
	if err := theirs.prepare(ctx, c.nextValue()); err != nil {
		return nil, nil, nil, err
	}
	if k.begin != nil {
		if err := k.begin(ctx, theirs); err != nil {
			return nil, nil, nil, err
		}
	}
	_, _, err := theirs.deploy(ctx)
	return ours, theirs, &side, err
}

func (c *cluster) kubectl(ctx context.Context, args ...string) error {
	_, err := c.system.command(ctx, c.tools["kubectl"], args...)
	return err
}

// verify fails unless n lines of a namespace have a value.
func (c *cluster) verify(ctx context.Context, namespace string, n int, value string) error {
	out, err := c.system.command(ctx, c.tools["kubectl"], "get", "configmaps", "--namespace", namespace,
		"--output", `jsonpath={range .items[*]}{.data.value}{"\n"}{end}`)
	if err != nil {
		return err
	}
	found := 0
	for live := range strings.Lines(string(out)) {
		if strings.TrimSpace(live) == value {
			found++
		}
	}
	if found != n {
		return fmt.Errorf("namespace %s has %s in %d of %d ConfigMaps", namespace, value, found, n)
	}
	return nil
}

// clean removes the namespaces, and what is in them.
func (c *cluster) clean(ctx context.Context) error {
	if c.tools["kubectl"] == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, downTimeout)
	defer cancel()
	return c.kubectl(ctx, "delete", "namespaces", "--selector", "berth-bench="+c.name, "--wait=false")
}
