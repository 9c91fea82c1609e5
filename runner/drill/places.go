package drill

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// evilHost is a server of the attacker's at which nothing of the runner's should arrive.
type evilHost struct {
	address  string
	requests atomic.Int64
	close    func()
}

func listenEvil(ctx context.Context) (*evilHost, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	e := &evilHost{address: listener.Addr().String()}
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		e.requests.Add(1)
		w.WriteHeader(http.StatusNotFound)
	})}
	go func() { _ = server.Serve(listener) }() // ends with the listener
	e.close = func() { _ = server.Close() }
	return e, nil
}

// hostGroup: sessions that name other places.
func hostGroup() group {
	good := check("placed")
	elsewhere := func(name, try string, point func(p *plane, at string)) Attack {
		return Attack{Name: name, Adversary: Plane, Try: try, World: "requests at the attacker's address", run: func(ctx context.Context, s *scene) (finding, error) {
			evil, err := listenEvil(ctx)
			if err != nil {
				return finding{}, err
			}
			defer evil.close()
			p := s.plane
			var registry, logs string
			p.change(func() {
				registry, logs = p.registry, p.logs
				point(p, evil.address)
			})
			s.stop()
			if err := s.start(ctx); err != nil {
				return finding{}, err
			}
			back := func() {
				p.change(func() { p.registry, p.logs, p.redirect = registry, logs, "" })
			}
			defer func() {
				back()
				_ = s.restart(ctx) // the next attack sees whether it came back
			}()
			job, err := s.give(run(good))
			if err != nil {
				return finding{}, err
			}
			_ = job // it may never be worked on
			select {
			case <-ctx.Done():
				return finding{}, ctx.Err()
			case <-time.After(quiet):
			}
			f := finding{effect: evil.requests.Load() > 0}
			if log := s.log.String(); strings.Contains(log, evil.address) || strings.Contains(log, "redirect") {
				f.rule = "the addresses of trust.json"
			} else if strings.Contains(log, "answered 307") {
				f.rule = "a signed request follows no redirect"
			}
			p.change(func() { p.queue = nil })
			if f.rule == "" {
				return f, fmt.Errorf("the runner's log does not say why: %s", lastLine(s.log.String()))
			}
			return f, nil
		}}
	}
	return group{
		name: "hosts", shape: func() shape { return shape{scripts: []jobspec.Script{good}} },
		allowed: Attack{Name: "hosts", Adversary: Plane, Try: "a session that names the pinned addresses", World: inFile("placed"), run: func(ctx context.Context, s *scene) (finding, error) {
			return ran(s, "placed", func() (jobspec.Result, error) { return s.do(ctx, run(good)) })
		}},
		attacks: []Attack{
			elsewhere("host-of-the-registry", "a session that names another registry", func(p *plane, at string) { p.registry = at }),
			elsewhere("host-of-the-logs", "a session that names another place for logs", func(p *plane, at string) { p.logs = "http://" + at }),
			elsewhere("host-by-redirect", "an answer that sends the runner and its credential elsewhere", func(p *plane, at string) { p.redirect = "http://" + at }),
		},
	}
}

// damaged stops the runner, lets somebody change its disk, starts it again, and tries to
// bring a change about.
func damaged(name, try string, harm func(*scene) error) Attack {
	mark := "damaged-" + name
	return Attack{Name: name, Adversary: Thief, Try: try, World: inFile(mark), run: func(ctx context.Context, s *scene) (f finding, err error) {
		spec := adHoc(mark)
		plan, err := s.plan(ctx, spec)
		if err != nil {
			return finding{}, err
		}
		s.stop()
		saved, err := os.ReadFile(s.dir.Chain())
		if err != nil {
			return finding{}, err
		}
		// As it was, for the next one.
		defer func() {
			s.stop()
			s.plane.change(func() { s.plane.queue = nil })
			back := os.WriteFile(s.dir.Chain(), saved, 0o600)
			for _, file := range []string{s.dir.ChainProblem(), s.dir.ChainHeld()} {
				if err := os.Remove(file); err != nil && !os.IsNotExist(err) {
					back = errors.Join(back, err)
				}
			}
			err = errors.Join(err, back, s.begin(ctx))
		}()
		if err := harm(s); err != nil {
			return finding{}, err
		}
		if err := s.start(ctx); err != nil {
			return finding{}, err
		}
		apply, granted := applyOf(spec, plan)
		job, err := s.give(apply, granted)
		if err != nil {
			return finding{}, err
		}
		return s.stands(ctx, job, mark)
	}}
}

// stands looks whether a job had its effect with a runner that may have ended, or changes
// nothing any more.
func (s *scene) stands(ctx context.Context, job, mark string) (f finding, err error) {
	deadline := time.After(3 * quiet)
	ended := s.ended
	for f.rule == "" {
		select {
		case <-ctx.Done():
			return f, ctx.Err()
		case <-ended:
			f.rule = "the runner does not start: " + lastLine(s.log.String())
		case <-deadline:
			return f, nil
		case <-time.After(100 * time.Millisecond):
		}
		s.plane.mu.Lock()
		report, told := s.plane.results[job]
		s.plane.mu.Unlock()
		if told {
			f.rule = ruleOf(report.Result)
			break
		}
		if problem, _ := os.ReadFile(s.dir.ChainProblem()); len(problem) > 0 {
			f.rule = "a chain that does not lead to its kept head: changes stop"
		}
	}
	time.Sleep(quiet / 4)
	n, err := s.lines(mark)
	f.effect = n > 0
	return f, err
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// chainGroup: the record of what was done, changed while the runner was stopped.
func chainGroup() group {
	edit := func(do func(lines []string) []string) func(*scene) error {
		return func(s *scene) error {
			raw, err := os.ReadFile(s.dir.Chain())
			if err != nil {
				return err
			}
			lines := strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n")
			if len(lines) < 4 {
				return fmt.Errorf("the chain has only %d records", len(lines))
			}
			return os.WriteFile(s.dir.Chain(), []byte(strings.Join(do(lines), "\n")+"\n"), 0o600)
		}
	}
	return group{
		name: "chain", shape: func() shape { return shape{} },
		allowed: Attack{Name: "chain", Adversary: Thief, Try: "three changes, whose records are whole", World: inFile("change-chain"), run: func(ctx context.Context, s *scene) (f finding, err error) {
			for i := 0; i < 3 && err == nil; i++ {
				f, err = change(Thief, "chain", "").run(ctx, s)
			}
			return f, err
		}},
		attacks: []Attack{
			damaged("chain-edited", "one word of a record changed", edit(func(lines []string) []string {
				lines[1] = strings.Replace(lines[1], `"actor":"`, `"actor":"not `, 1)
				return lines
			})),
			damaged("chain-cut", "the last records removed", edit(func(lines []string) []string { return lines[:len(lines)-2] })),
			damaged("chain-with-a-gap", "a record in the middle removed", edit(func(lines []string) []string { return append(lines[:1:1], lines[2:]...) })),
			damaged("chain-reordered", "two records swapped", edit(func(lines []string) []string {
				lines[1], lines[2] = lines[2], lines[1]
				return lines
			})),
		},
	}
}

// diskGroup: what the runner remembers of orders, removed so that they count again.
func diskGroup() group {
	replay := func(name, try string, forget func(*scene) error) Attack {
		mark := "replay-" + name
		return Attack{Name: name, Adversary: Thief, Try: try, World: fmt.Sprintf("a second line in the install's file %q", mark), run: func(ctx context.Context, s *scene) (finding, error) {
			spec := adHoc(mark)
			plan, err := s.plan(ctx, spec)
			if err != nil {
				return finding{}, err
			}
			apply, granted := applyOf(spec, plan)
			var same draft
			keep := func(d *draft) { same = *d }
			if result, err := s.do(ctx, apply, granted, keep); err != nil || result.Outcome != jobspec.OutcomeSucceeded {
				return finding{}, fmt.Errorf("the first apply: %s %s: %w", result.Outcome, result.Error, err)
			}
			s.stop()
			if err := forget(s); err != nil {
				return finding{}, err
			}
			if err := s.start(ctx); err != nil {
				return finding{}, err
			}
			job, err := s.give(apply, func(d *draft) { d.order, d.fence, d.attempt = same.order, same.fence, 2 })
			if err != nil {
				return finding{}, err
			}
			f := finding{}
			deadline := time.After(5 * quiet)
			for f.rule == "" {
				select {
				case <-ctx.Done():
					return f, ctx.Err()
				case <-s.ended:
					f.rule = "the runner does not start: " + lastLine(s.log.String())
				case <-deadline:
					return f, fmt.Errorf("the runner says nothing: %s", s.log)
				case <-time.After(100 * time.Millisecond):
				}
				s.plane.mu.Lock()
				if report, told := s.plane.results[job]; told {
					f.rule = ruleOf(report.Result)
					if f.rule == "" {
						f.rule = "none"
					}
				}
				s.plane.mu.Unlock()
			}
			n, err := s.lines(mark)
			f.effect = n > 1
			return f, err
		}}
	}
	remove := func(path func(*scene) string) func(*scene) error {
		return func(s *scene) error { return os.RemoveAll(path(s)) }
	}
	return group{
		name: "disk", shape: func() shape { return shape{} },
		allowed: change(Thief, "disk", "a change with the disk as it is"),
		attacks: []Attack{
			replay("replay", "an order that was carried out, given again after a restart", func(*scene) error { return nil }),
			replay("replay-without-orders", "the same, after the list of orders was removed", remove(func(s *scene) string { return s.dir.Orders() })),
		},
	}
}
