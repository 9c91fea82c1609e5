package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilexec "k8s.io/client-go/util/exec"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/kube"
)

const (
	// findTimeout bounds the way to the pod; the timeout of the probe is for the command.
	findTimeout = 8 * time.Second
	// killTimeout bounds the end of a command that gave no answer.
	killTimeout = 3 * time.Second
	// defaultContainer is how a pod says which of its containers is the main one.
	defaultContainer = "kubectl.kubernetes.io/default-container"
	// lead says its process id, which is that of its group too, and becomes the command.
	lead = `echo "$$"; exec "$@"`
)

// cluster is what a probe needs of one.
type cluster interface {
	PodsAt(ctx context.Context, namespace, target string) ([]corev1.Pod, error)
	PodsBy(ctx context.Context, namespace, selector string) ([]corev1.Pod, error)
	Exec(ctx context.Context, at kube.Place, argv []string, stdout, stderr io.Writer) error
}

// lookExec runs PROBE_COMMAND in a container of a pod: of PROBE_TARGET, such as
// deployment/web, or one with the labels of PROBE_SELECTOR. Exit code 0 is good. What says
// nothing about the component is jobspec.ExitProbeUnknown: the pod cannot be reached.
func lookExec(ctx context.Context, env func(string) string, timeout time.Duration, say io.Writer) int {
	if strings.TrimSpace(env("PROBE_COMMAND")) == "" || (env("PROBE_TARGET") == "") == (env("PROBE_SELECTOR") == "") {
		fmt.Fprintln(say, "the probe needs a command, and either a target or a selector")
		return exitUsage
	}
	if env("KUBECONFIG") == "" {
		fmt.Fprintln(say, "nobody can tell: this runner has no cluster")
		return jobspec.ExitProbeUnknown
	}
	found, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	c, err := kube.Open(found, env("KUBECONFIG"))
	if err != nil {
		fmt.Fprintln(say, short(fmt.Sprintf("nobody can tell: %v", err)))
		return jobspec.ExitProbeUnknown
	}
	return within(ctx, c, env, timeout, say)
}

func within(ctx context.Context, c cluster, env func(string) string, timeout time.Duration, say io.Writer) int {
	namespace := kube.NamespaceOf(env("BERTH_INSTALL_ID"), env("PROBE_NAMESPACE"))
	at, code, says := locate(ctx, c, namespace, env)
	if code == exitGood {
		code, says = judge(run(ctx, c, at, argvOf(env("PROBE_COMMAND")), timeout))
	}
	fmt.Fprintln(say, says)
	return code
}

// locate finds the container. Without one it says why, with an exit code.
func locate(ctx context.Context, c cluster, namespace string, env func(string) string) (at kube.Place, code int, says string) {
	ctx, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	of := cmp.Or(env("PROBE_TARGET"), "selector "+env("PROBE_SELECTOR")) + " in namespace " + namespace
	var pods []corev1.Pod
	var err error
	if target := env("PROBE_TARGET"); target != "" {
		pods, err = c.PodsAt(ctx, namespace, target)
	} else {
		pods, err = c.PodsBy(ctx, namespace, env("PROBE_SELECTOR"))
	}
	if err != nil {
		return at, jobspec.ExitProbeUnknown, short(fmt.Sprintf("nobody can tell: look for pods of %s: %v", of, err))
	}
	pod, container := choose(pods, env("PROBE_CONTAINER"))
	switch {
	case pod != "":
		return kube.Place{Namespace: namespace, Pod: pod, Container: container}, exitGood, ""
	case len(pods) == 0:
		return at, exitBad, fmt.Sprintf("%s has no pod", of)
	case container == "":
		return at, jobspec.ExitProbeUnknown, fmt.Sprintf("nobody can tell: no pod of %s has a container %s", of, env("PROBE_CONTAINER"))
	}
	return at, exitBad, fmt.Sprintf("container %s runs in none of %d pods of %s", container, len(pods), of)
}

// choose takes the newest pod in which the container runs, the main one when none is named.
// Without a pod, the container is one that does not run; without both, no pod has it.
func choose(pods []corev1.Pod, wanted string) (pod, container string) {
	pods = slices.Clone(pods)
	slices.SortStableFunc(pods, func(a, b corev1.Pod) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for _, p := range pods {
		if len(p.Spec.Containers) == 0 {
			continue
		}
		name := cmp.Or(wanted, p.Annotations[defaultContainer], p.Spec.Containers[0].Name)
		if !slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool { return c.Name == name }) {
			continue
		}
		container = name
		runs := slices.ContainsFunc(p.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == name && s.State.Running != nil })
		if runs && p.DeletionTimestamp == nil {
			return p.Name, name
		}
	}
	return "", container
}

// plainWord is a word in which no shell sees anything else.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:@%+,=-]+$`)

// argvOf is a command as a container starts it: plain words as they are, all else by the
// shell of the container.
func argvOf(command string) []string {
	words := strings.Fields(command)
	if slices.ContainsFunc(words, func(word string) bool { return !plainWord.MatchString(word) }) || strings.Contains(words[0], "=") {
		return []string{"sh", "-c", command}
	}
	return words
}

// ended is how a command ended.
type ended struct {
	at      kube.Place
	timeout time.Duration
	late    bool   // it gave no answer in time
	err     error  // nil after exit code 0
	output  string // the last line of stderr, else of stdout
}

// run runs a command until it ends or its time is over; then it is killed, with what it
// started. An image without a shell runs the command itself, and there it cannot be killed.
func run(ctx context.Context, c cluster, at kube.Place, argv []string, timeout time.Duration) ended {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	stdout, stderr := &tail{}, &tail{}
	id := &idLine{rest: stdout}
	err := c.Exec(limited, at, slices.Concat([]string{"sh", "-c", lead, "sh"}, argv), id, stderr)
	if id.get() == "" && noProgram(err) {
		err = c.Exec(limited, at, argv, stdout, stderr)
	}
	late := err != nil && ctx.Err() == nil && limited.Err() != nil
	if process := id.get(); process != "" && limited.Err() != nil {
		kill, cancel := context.WithTimeout(context.WithoutCancel(ctx), killTimeout)
		defer cancel()
		_ = c.Exec(kill, at, []string{"sh", "-c", "kill -9 -" + process + " || kill -9 " + process}, io.Discard, io.Discard)
	}
	return ended{at: at, timeout: timeout, late: late, err: err, output: cmp.Or(stderr.last(), stdout.last())}
}

// noProgram tells whether a runtime says that there is no such program in the container.
func noProgram(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "executable file not found") || strings.Contains(err.Error(), "no such file or directory"))
}

// isForbidden tells whether the API server refused for a missing right. Where it refuses a
// stream, it says so in words only.
func isForbidden(err error) bool {
	return apierrors.IsForbidden(err) || strings.Contains(err.Error(), " is forbidden: ")
}

// judge says what the end of a command says about the component.
func judge(e ended) (code int, says string) {
	where := fmt.Sprintf("pod %s, container %s: ", e.at.Pod, e.at.Container)
	output := ""
	if e.output != "" {
		output = ": " + e.output
	}
	var exit utilexec.CodeExitError
	switch {
	case e.err == nil:
		return exitGood, where + "exit code 0"
	case e.late:
		return exitBad, fmt.Sprintf("%sno answer within %s%s", where, e.timeout, output)
	case errors.As(e.err, &exit):
		return exitBad, fmt.Sprintf("%sexit code %d%s", where, exit.Code, output)
	case noProgram(e.err):
		return exitBad, where + "there is no such program"
	case isForbidden(e.err):
		return jobspec.ExitProbeUnknown, fmt.Sprintf("nobody can tell: the runner may not run commands in pods: it needs create and get of pods/exec in namespace %s", e.at.Namespace)
	}
	return jobspec.ExitProbeUnknown, short(fmt.Sprintf("nobody can tell: %s%v", where, e.err))
}
