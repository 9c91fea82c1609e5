package action

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/steptool"
	"github.com/berth-dev/berth/runner/engine/job"
)

// askWait is how long a program may take to say its version.
const askWait = 10 * time.Second

// needed is a tool that was found.
type needed struct {
	steptool.Tool
	program string // its path
}

// placeOf is where the scripts run, for people.
func placeOf(p pinned) string {
	if p.Image != "" {
		return "in image " + p.Image
	}
	return "on the runner's machine"
}

// findTools looks for the tools that the action says it needs, where its steps will
// look for them. It runs none of them.
func findTools(j *job.Job, p pinned) (found []needed, err error) {
	paths := searchPaths(p)
	for _, text := range p.Tools {
		tool, err := steptool.Parse(text)
		if err != nil {
			return nil, job.Refusef(steptool.Remedy, "%s: tools: %v", j.Subject(), err)
		}
		program := lookIn(paths, tool.Name)
		if program == "" {
			return nil, job.Refusef(fmt.Sprintf("install %s %s, then retry", tool.Name, placeOf(p)),
				"%s needs %s, and there is none %s (looked in %s); no step was run", j.Subject(), tool.Name, placeOf(p), strings.Join(paths, ", "))
		}
		found = append(found, needed{tool, program})
	}
	return found, nil
}

// checkTools is findTools, and asks those for their versions of which a lowest one is
// named. One that does not tell is no reason to refuse: the log says so. It is for
// runs that were decided on: programs may do more than answer.
func checkTools(ctx context.Context, j *job.Job, p pinned) error {
	found, err := findTools(j, p)
	if err != nil {
		return err
	}
	for _, tool := range found {
		if tool.AtLeast == "" {
			continue
		}
		switch version := versionOf(ctx, tool.program); {
		case version == "":
			j.Logf("%s does not tell its version; %s asks for %s or later", tool.program, j.Subject(), tool.AtLeast)
		case !tool.Enough(version):
			return job.Refusef(fmt.Sprintf("install %s %s or later %s, then retry", tool.Name, tool.AtLeast, placeOf(p)),
				"%s needs %s %s or later, and %s is %s; no step was run", j.Subject(), tool.Name, tool.AtLeast, tool.program, version)
		}
	}
	return nil
}

// searchPaths are the directories in which steps find programs: those of the engine,
// and those that steps add.
func searchPaths(p pinned) (dirs []string) {
	known := map[string]bool{}
	add := func(path string) {
		for _, dir := range filepath.SplitList(path) {
			if filepath.IsAbs(dir) && !known[dir] {
				known[dir] = true
				dirs = append(dirs, dir)
			}
		}
	}
	add(os.Getenv("PATH"))
	for _, sc := range p.Scripts {
		add(sc.EnvVars["PATH"])
	}
	return dirs
}

func lookIn(dirs []string, name string) string {
	for _, dir := range dirs {
		path, err := exec.LookPath(filepath.Join(dir, name))
		if err == nil {
			return path
		}
	}
	return ""
}

// versionOf asks a program for its version in the ways that programs answer.
func versionOf(ctx context.Context, program string) string {
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	for _, args := range [][]string{{"--version"}, {"version", "--client"}, {"version"}} {
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.WaitDelay = time.Second
		out, err := cmd.CombinedOutput()
		if version := steptool.VersionIn(string(out)); err == nil && version != "" {
			return version
		}
	}
	return ""
}
