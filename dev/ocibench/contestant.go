package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// contestant does tasks, and says how long it took.
type contestant struct {
	name string
	do   func(context.Context, task) (took, cpu time.Duration, err error)
	// command does the tasks of a command line tool; nil for a library.
	command func(task) []string
	close   func()
}

// contestants are ours, the libraries, and those commands that are there.
func contestants(ctx context.Context, o options, dir string, hosts ...string) ([]contestant, error) {
	var all []contestant
	for _, library := range []string{"berth", "oras-go", "ggcr"} {
		if !among(o.who, library) {
			continue
		}
		c, err := startWorker(ctx, library)
		if err != nil {
			return all, err
		}
		all = append(all, c)
	}
	home := filepath.Join(dir, "home")
	auths := map[string]any{}
	for _, host := range hosts {
		auths[host] = map[string]string{"auth": base64.StdEncoding.EncodeToString([]byte("any:" + anyToken))}
	}
	raw, err := json.Marshal(map[string]any{"auths": auths})
	if err != nil {
		return all, err
	}
	if err := os.MkdirAll(home, 0o700); err != nil {
		return all, err
	}
	if err := os.WriteFile(filepath.Join(home, "config.json"), raw, 0o600); err != nil {
		return all, err
	}
	env := append(os.Environ(), "DOCKER_CONFIG="+home, "REGISTRY_AUTH_FILE="+filepath.Join(home, "config.json"), "HOME="+home)
	for name, command := range commands {
		if !among(o.who, name) {
			continue
		}
		path := filepath.Join(o.tools, name)
		if _, err := os.Stat(path); o.tools == "" || err != nil {
			if path, err = exec.LookPath(name); err != nil {
				fmt.Printf("%s is not on this machine, and not compared\n", name)
				continue
			}
		}
		all = append(all, contestant{name: name, command: command, close: func() {}, do: func(ctx context.Context, t task) (took, cpu time.Duration, err error) {
			cmd := exec.CommandContext(ctx, path, command(t)...)
			cmd.Env = env
			began := time.Now()
			out, err := cmd.CombinedOutput()
			took = time.Since(began)
			if cmd.ProcessState != nil {
				cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
			}
			if err != nil {
				err = fmt.Errorf("%s: %w: %s", name, err, out)
			}
			return took, cpu, err
		}})
	}
	return all, nil
}

// commands are how each tool says it. Their start counts, some 10 ms.
var commands = map[string]func(task) []string{
	"crane": func(t task) []string {
		from, to := t.From+"/"+t.Repository+"@"+t.Digest.String(), t.To+"/"+t.Repository+":"+imageTag
		switch t.Op {
		case opPush:
			return []string{"push", "--insecure", t.Dir, to}
		case opPull:
			return []string{"pull", "--insecure", "--format=oci", from, t.Dir}
		}
		return []string{"copy", "--insecure", from, to}
	},
	"oras": func(t task) []string {
		from, to := t.From+"/"+t.Repository+"@"+t.Digest.String(), t.To+"/"+t.Repository+":"+imageTag
		switch t.Op {
		case opPush:
			return []string{"copy", "--from-oci-layout", t.Dir + ":" + imageTag, "--to-plain-http", to}
		case opPull:
			return []string{"copy", "--from-plain-http", from, "--to-oci-layout", t.Dir + ":" + imageTag}
		}
		return []string{"copy", "--from-plain-http", "--to-plain-http", from, to}
	},
	"skopeo": func(t task) []string {
		from, to := "docker://"+t.From+"/"+t.Repository+"@"+t.Digest.String(), "docker://"+t.To+"/"+t.Repository+":"+imageTag
		switch t.Op {
		case opPush:
			from = "oci:" + t.Dir + ":" + imageTag
		case opPull:
			to = "oci:" + t.Dir + ":" + imageTag
		}
		return []string{"copy", "--insecure-policy", "--src-tls-verify=false", "--dest-tls-verify=false", from, to}
	},
}

// startWorker starts this program again as the worker of a library.
func startWorker(ctx context.Context, library string) (contestant, error) {
	c := contestant{name: library}
	self, err := os.Executable()
	if err != nil {
		return c, err
	}
	cmd := exec.CommandContext(ctx, self, "worker", library)
	cmd.Stderr = os.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		return c, err
	}
	if err := cmd.Start(); err != nil {
		return c, err
	}
	tasks, answers := json.NewEncoder(in), json.NewDecoder(out)
	c.close = func() {
		_ = in.Close()
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
	}
	c.do = func(_ context.Context, t task) (took, cpu time.Duration, err error) {
		if err := tasks.Encode(t); err != nil {
			return 0, 0, err
		}
		var answer done
		if err := answers.Decode(&answer); err != nil {
			return 0, 0, err
		}
		if answer.Problem != "" {
			return 0, 0, fmt.Errorf("%s: %s", library, answer.Problem)
		}
		return answer.Took, answer.CPU, nil
	}
	return c, nil
}
