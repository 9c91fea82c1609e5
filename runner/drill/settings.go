package drill

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
)

// scheduled is a check that the runner may start by itself, each minute.
func scheduled(name string) jobspec.Script {
	s := check(name)
	s.Cron, s.HealthCheck = "* * * * *", true
	return s
}

func asScheduled(s jobspec.Script) jobspec.Scheduled {
	return jobspec.Scheduled{Action: s.Action, Inputs: s.Inputs, Role: s.Role, Cron: s.Cron, TimeoutSeconds: s.TimeoutSeconds, HealthCheck: s.HealthCheck}
}

// A settingsAttack publishes settings that would start a script of its own name.
type settingsAttack struct {
	name, try string
	who       Adversary
	version   int64
	issued    time.Duration // from now
	edit      func(*jobspec.Settings, *signer)
	// inForce: the script stands, after this change, in the settings that are in force.
	inForce func(*jobspec.Scheduled)
}

// settingsAttacks come after good settings of version 6. Those of them that are taken stay
// in force, so that their scripts run with the next minute.
var settingsAttacks = []settingsAttack{
	{name: "settings-by-a-stranger", try: "settings that another key signed", who: Database, version: 7, edit: func(_ *jobspec.Settings, by *signer) { *by = stranger() }},
	{name: "settings-under-a-false-name", try: "another key under the name of the pinned one", who: Database, version: 7, edit: func(_ *jobspec.Settings, by *signer) {
		name := by.id
		*by = stranger()
		by.id = name
	}},
	{name: "settings-of-before", try: "settings of a lower version", who: Database, version: 4},
	{name: "settings-of-another-install", try: "settings of another install", who: Database, version: 7, edit: func(s *jobspec.Settings, _ *signer) { s.InstallID = id.New(id.Install) }},
	{name: "settings-with-the-last-version", try: "a version after which there is none", who: Plane, version: 1<<53 - 1},
	{name: "settings-of-the-future", try: "settings that were issued tomorrow", who: Plane, version: 7, issued: 24 * time.Hour},
	{name: "settings-that-expired", try: "settings of last month", who: Database, version: 7, issued: -30 * 24 * time.Hour},
	{name: "settings-with-a-new-script", try: "a schedule of a script that was never accepted", who: Plane, inForce: asItIsScheduled},
	{name: "settings-with-another-text", try: "a schedule of an accepted script with a line more", who: Plane, inForce: func(s *jobspec.Scheduled) {
		s.Action.Steps[0].InlineContents += "echo more\n"
	}},
	{name: "settings-more-often", try: "a schedule of an accepted script at other times", who: Plane, inForce: func(s *jobspec.Scheduled) { s.Cron = "*/1 * * * *" }},
}

const newScript = "settings-with-a-new-script"

func asItIsScheduled(*jobspec.Scheduled) {}

// settingsGroup publishes all of them before one minute ends, and looks when it is over
// which scripts ran.
func settingsGroup() group {
	good := scheduled("settings")
	g := group{name: "settings", shape: func() shape {
		sh := shape{scripts: []jobspec.Script{good}}
		for _, a := range settingsAttacks {
			if a.name != newScript {
				sh.scripts = append(sh.scripts, scheduled(a.name))
			}
		}
		return sh
	}}
	said := &saidOfSettings{}
	g.allowed = Attack{Name: "settings", Adversary: Plane, Try: "a check that was accepted, on its schedule", World: inFile("settings"), run: func(ctx context.Context, s *scene) (finding, error) {
		if err := said.publishAll(ctx, s, good); err != nil {
			return finding{}, err
		}
		n, err := s.lines("settings")
		return finding{effect: n > 0}, err
	}}
	for _, a := range settingsAttacks {
		g.attacks = append(g.attacks, Attack{Name: a.name, Adversary: a.who, Try: a.try, World: inFile(a.name), run: func(_ context.Context, s *scene) (finding, error) {
			n, err := s.lines(a.name)
			return finding{effect: n > 0, rule: said.of(a.name)}, err
		}})
	}
	return g
}

// saidOfSettings is what the chain said after each publication.
type saidOfSettings struct {
	mu   sync.Mutex
	told map[string]string
}

func (t *saidOfSettings) of(name string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.told[name]
}

// publishAll publishes the good settings and then the others, and waits for the next run of
// the good one. Settings that are taken are in force until the next ones.
func (t *saidOfSettings) publishAll(ctx context.Context, s *scene, good jobspec.Script) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.told = map[string]string{}
	now := time.Now()
	if left := 60 - now.Second(); left < 20 { // all in one minute
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(left+1) * time.Second):
		}
	}
	if err := s.publish(ctx, 5, time.Now(), []jobspec.Scheduled{asScheduled(good)}); err != nil {
		return err
	}
	inForce := []jobspec.Scheduled{asScheduled(good)}
	for _, a := range settingsAttacks {
		if a.inForce != nil {
			evil := asScheduled(scheduled(a.name))
			a.inForce(&evil)
			inForce = append(inForce, evil)
		}
	}
	if err := s.publish(ctx, 6, time.Now(), inForce); err != nil {
		return err
	}
	for _, a := range settingsAttacks {
		if a.inForce != nil {
			continue
		}
		s.plane.mu.Lock()
		before := len(s.plane.chain)
		s.plane.mu.Unlock()
		schedule := []jobspec.Scheduled{asScheduled(scheduled(a.name)), asScheduled(good)}
		edit := a.edit
		if edit == nil {
			edit = func(*jobspec.Settings, *signer) {}
		}
		if err := s.publish(ctx, a.version, time.Now().Add(a.issued), schedule, edit); err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		for range 30 { // the record comes a moment later
			if texts := s.recordsAfter(before); len(texts) > 0 {
				t.told[a.name] = texts[len(texts)-1]
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	before, err := s.lines("settings")
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(90 * time.Second); time.Now().Before(deadline); {
		if n, err := s.lines("settings"); err != nil || n > before {
			time.Sleep(quiet / 2) // those of the same minute
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	// What the runner would not start by itself, it reports as missed.
	s.plane.mu.Lock()
	defer s.plane.mu.Unlock()
	for _, run := range s.plane.runs {
		if run.State == "missed" && t.told[run.Action] == "" {
			t.told[run.Action] = strings.TrimSpace("missed: " + run.Error)
		}
	}
	return nil
}
