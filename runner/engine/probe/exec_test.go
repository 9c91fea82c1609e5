package probe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilexec "k8s.io/client-go/util/exec"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/kube"
)

func exitWith(code int) error {
	return utilexec.CodeExitError{Err: errors.New("command terminated"), Code: code}
}

var forbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "web-1", errors.New("no"))

func TestJudge(t *testing.T) {
	t.Parallel()
	at := kube.Place{Namespace: "shop", Pod: "web-1", Container: "web"}
	for _, tt := range []struct {
		name string
		ended
		want int
		says string
	}{
		{"exit code 0", ended{output: "ready"}, 0, "pod web-1, container web: exit code 0"},
		{"another exit code", ended{err: exitWith(2), output: "no database"}, 1, "pod web-1, container web: exit code 2: no database"},
		{"nothing said", ended{err: exitWith(137)}, 1, "pod web-1, container web: exit code 137"},
		{"too slow", ended{err: context.DeadlineExceeded, late: true}, 1, "pod web-1, container web: no answer within 5s"},
		{"no such program", ended{err: errors.New(`exec: "ready": executable file not found in $PATH`)}, 1, "there is no such program"},
		{"not allowed", ended{err: fmt.Errorf("dial: %w", forbidden)}, jobspec.ExitProbeUnknown, "needs create and get of pods/exec in namespace shop"},
		{"not allowed, in words", ended{err: errors.New(`unable to upgrade connection: pods "web-1" is forbidden: User "u" cannot create resource "pods/exec"`)}, jobspec.ExitProbeUnknown, "needs create and get of pods/exec in namespace shop"},
		{"the kubelet is away", ended{err: errors.New("error dialing backend:\nno route")}, jobspec.ExitProbeUnknown, "nobody can tell: pod web-1, container web: error dialing backend: no route"},
	} {
		tt.at, tt.timeout = at, 5*time.Second
		if code, says := judge(tt.ended); code != tt.want || !strings.Contains(says, tt.says) || strings.Contains(says, "\n") {
			t.Errorf("%s: %d, %q; want %d, %q", tt.name, code, says, tt.want, tt.says)
		}
	}
}

func pod(name string, age time.Duration, containers ...string) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC).Add(-age))}}
	for _, c := range containers {
		c, stopped := strings.CutPrefix(c, "-")
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: c})
		status := corev1.ContainerStatus{Name: c}
		if !stopped {
			status.State.Running = &corev1.ContainerStateRunning{}
		}
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, status)
	}
	return p
}

func TestChoose(t *testing.T) {
	t.Parallel()
	gone := pod("new", 0, "web")
	gone.DeletionTimestamp = &metav1.Time{}
	marked := pod("marked", time.Hour, "proxy", "web")
	marked.Annotations = map[string]string{defaultContainer: "web"}
	for _, tt := range []struct {
		name      string
		pods      []corev1.Pod
		container string
		wantPod   string
		want      string
	}{
		{"none", nil, "", "", ""},
		{"the newest", []corev1.Pod{pod("old", time.Hour, "web"), pod("new", time.Minute, "web")}, "", "new", "web"},
		{"of the same age by name", []corev1.Pod{pod("b", 0, "web"), pod("a", 0, "web")}, "", "a", "web"},
		{"not one that goes", []corev1.Pod{pod("old", time.Hour, "web"), gone}, "", "old", "web"},
		{"one in which it runs", []corev1.Pod{pod("old", time.Hour, "web"), pod("new", 0, "-web")}, "", "old", "web"},
		{"the main container", []corev1.Pod{marked}, "", "marked", "web"},
		{"a named container", []corev1.Pod{pod("a", 0, "web", "db")}, "db", "a", "db"},
		{"it does not run", []corev1.Pod{pod("a", 0, "web", "-db")}, "db", "", "db"},
		{"it is not there", []corev1.Pod{pod("a", 0, "web")}, "db", "", ""},
	} {
		if pod, container := choose(tt.pods, tt.container); pod != tt.wantPod || container != tt.want {
			t.Errorf("%s: %q %q, want %q %q", tt.name, pod, container, tt.wantPod, tt.want)
		}
	}
}

func TestArgv(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"pg_isready -U shop":     "[pg_isready -U shop]",
		"  /probe  --port=8080 ": "[/probe --port=8080]",
		"test -f /a && true":     "[sh -c test -f /a && true]",
		"A=1 env":                "[sh -c A=1 env]",
		"echo 'a b'":             "[sh -c echo 'a b']",
	} {
		if got := fmt.Sprint(argvOf(command)); got != want {
			t.Errorf("%q is %s, want %s", command, got, want)
		}
	}
}

// fake is a cluster whose container does what a test says.
type fake struct {
	pods []corev1.Pod
	err  error
	exec func(ctx context.Context, argv []string, stdout, stderr io.Writer) error
}

func (f fake) PodsAt(context.Context, string, string) ([]corev1.Pod, error) { return f.pods, f.err }
func (f fake) PodsBy(context.Context, string, string) ([]corev1.Pod, error) { return f.pods, f.err }
func (f fake) Exec(ctx context.Context, _ kube.Place, argv []string, stdout, stderr io.Writer) error {
	return f.exec(ctx, argv, stdout, stderr)
}

func looked(t *testing.T, f fake, more map[string]string) (int, string) {
	t.Helper()
	env := map[string]string{"PROBE_COMMAND": "ready", "PROBE_TARGET": "deployment/web", "PROBE_NAMESPACE": "shop"}
	for k, v := range more {
		env[k] = v
	}
	var said bytes.Buffer
	code := within(t.Context(), f, func(name string) string { return env[name] }, 5*time.Second, &said)
	if strings.Count(said.String(), "\n") != 1 || said.Len() > 300 {
		t.Errorf("it says %d bytes: %.600q", said.Len(), said.String())
	}
	return code, said.String()
}

func TestExec(t *testing.T) {
	t.Parallel()
	one := []corev1.Pod{pod("web-1", 0, "web")}
	says := func(err error, lines string) func(context.Context, []string, io.Writer, io.Writer) error {
		return func(_ context.Context, argv []string, stdout, stderr io.Writer) error {
			if got := strings.Join(argv, " "); !strings.HasSuffix(got, `exec "$@" sh ready`) {
				return fmt.Errorf("it runs %s", got)
			}
			_, _ = io.WriteString(stdout, "17\n")
			_, _ = io.WriteString(stderr, lines)
			return err
		}
	}
	for _, tt := range []struct {
		name string
		fake
		env  map[string]string
		want int
		says string
	}{
		{"good", fake{pods: one, exec: says(nil, "all is well\n")}, nil, 0, "exit code 0"},
		{"bad", fake{pods: one, exec: says(exitWith(1), "first\nno \x1b[31mdatabase\n\n")}, nil, 1, "exit code 1: no [31mdatabase"},
		{"no pod", fake{}, nil, 1, "deployment/web in namespace shop has no pod"},
		{"none of its container", fake{pods: one}, map[string]string{"PROBE_CONTAINER": "db"}, jobspec.ExitProbeUnknown, "no pod of deployment/web in namespace shop has a container db"},
		{"it does not run", fake{pods: []corev1.Pod{pod("web-1", 0, "-web")}}, nil, 1, "container web runs in none of 1 pods"},
		{"pods may not be listed", fake{err: forbidden}, nil, jobspec.ExitProbeUnknown, "nobody can tell: look for pods of deployment/web"},
		{"a long refusal", fake{err: errors.New(strings.Repeat("the server is not ready, ", 50))}, nil, jobspec.ExitProbeUnknown, "the server is not ready"},
		{"a line that is too long, of long names", fake{pods: []corev1.Pod{pod(strings.Repeat("p", 63), 0, strings.Repeat("c", 63))}, exec: says(exitWith(255), strings.Repeat("x", maxShown)+"\n")}, nil, 1, "exit code 255: xxx"},
		{"commands may not be run", fake{pods: one, exec: says(forbidden, "")}, nil, jobspec.ExitProbeUnknown, "pods/exec"},
	} {
		if code, said := looked(t, tt.fake, tt.env); code != tt.want || !strings.Contains(said, tt.says) {
			t.Errorf("%s: exit %d, want %d; it says %q, want %q", tt.name, code, tt.want, said, tt.says)
		}
	}
}

// An image without a shell runs the command itself.
func TestExecWithoutShell(t *testing.T) {
	t.Parallel()
	f := fake{pods: []corev1.Pod{pod("web-1", 0, "web")}, exec: func(_ context.Context, argv []string, stdout, _ io.Writer) error {
		if argv[0] == "sh" {
			return errors.New(`exec: "sh": executable file not found in $PATH`)
		}
		_, _ = io.WriteString(stdout, "12 of 12\n")
		return exitWith(4)
	}}
	if code, said := looked(t, f, nil); code != 1 || !strings.Contains(said, "exit code 4: 12 of 12") {
		t.Errorf("exit %d: %q", code, said)
	}
}

// A command that never ends is killed with all that it started, and says so.
func TestAttackExecWithoutEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var killed []string
		f := fake{pods: []corev1.Pod{pod("web-1", 0, "web")}, exec: func(ctx context.Context, argv []string, stdout, _ io.Writer) error {
			if strings.Contains(argv[2], "kill") {
				killed = argv
				return ctx.Err()
			}
			_, _ = io.WriteString(stdout, "4")
			_, _ = io.WriteString(stdout, "2\nworking\n")
			<-ctx.Done()
			return ctx.Err()
		}}
		if code, said := looked(t, f, nil); code != 1 || !strings.Contains(said, "no answer within 5s: working") {
			t.Errorf("exit %d: %q", code, said)
		}
		if got := strings.Join(killed, " "); got != "sh -c kill -9 -42 || kill -9 42" {
			t.Errorf("it kills by %q", got)
		}
	})
}

// Of megabytes only the end is kept, and what the first line says besides a number reaches no
// shell.
func TestAttackExecOutput(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for name, first := range map[string]string{"much": "7\n", "no number": "1;reboot\n", "no line": "", "a long number": strings.Repeat("9", 30) + "\n"} {
			kills := 0
			f := fake{pods: []corev1.Pod{pod("web-1", 0, "web")}, exec: func(ctx context.Context, argv []string, stdout, stderr io.Writer) error {
				if len(argv) == 3 && strings.Contains(argv[2], "kill") {
					kills++
					if name != "much" {
						t.Errorf("%s: it runs %q", name, argv)
					}
					return nil
				}
				_, _ = io.WriteString(stdout, first)
				for range 200 {
					_, _ = stdout.Write(bytes.Repeat([]byte("x"), 64<<10))
					_, _ = stderr.Write(make([]byte, 1<<10))
				}
				_, _ = io.WriteString(stdout, strings.Repeat("canary", 100)+"\n")
				<-ctx.Done()
				return ctx.Err()
			}}
			code, said := looked(t, f, nil)
			if code != 1 || strings.Contains(said, "canary") || !strings.Contains(said, "not shown") {
				t.Errorf("%s: exit %d: %q", name, code, said)
			}
			if want := map[string]int{"much": 1}[name]; kills != want {
				t.Errorf("%s: %d kills, want %d", name, kills, want)
			}
		}
	})
}
