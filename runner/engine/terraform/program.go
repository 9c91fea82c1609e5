package terraform

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/berth-dev/berth/pkg/tfprogram"
)

// program runs one Terraform in one directory. Package terraform-exec does as much,
// but asks the executable for its version once per job, which is a start of it that the
// agent has paid for already.
type program struct {
	path, dir string
	env       []string
	// grace is how long it may take to end after an interrupt; 0 waits for ever.
	grace time.Duration
	// stdout and stderr get what people may see; nil for nobody.
	stdout, stderr io.Writer
}

// name says which of the two the executable is, by how it is called: they tell their
// versions in one form. OpenTofu is used as Terraform is, and says the same things.
func (p *program) name() string {
	return tfprogram.Of(p.path).Tool
}

// jsonIn is the JSON document in what a command wrote: OpenTofu warns about its
// configuration on stdout, before it.
func jsonIn(out []byte) []byte {
	if bytes.HasPrefix(out, []byte("{")) {
		return out
	}
	if i := bytes.Index(out, []byte("\n{")); i >= 0 {
		return out[i+1:]
	}
	return out
}

// interrupted is the error of a run whose context ended before it did.
type interrupted struct{ err, cause error }

func (i interrupted) Error() string   { return i.err.Error() }
func (i interrupted) Unwrap() []error { return []error{i.err, i.cause} }

// run runs a command of Terraform and also writes its output to stdout, unless that is
// nil. The error has what it wrote to stderr.
func (p *program) run(ctx context.Context, stdout io.Writer, args ...string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, p.path, args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = p.dir, p.env, p.grace
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	// An interrupt for the engine is not one for Terraform: the engine passes it on when
	// the time has come.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	diesWithParent(cmd.SysProcAttr)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = both(stdout, p.stdout), both(&said, p.stderr)
	err := cmd.Run()
	if err == nil {
		return nil
	}
	if cause := ctx.Err(); cause != nil {
		return interrupted{err, cause}
	}
	return fmt.Errorf("%w\n%s", err, said.String())
}

// both writes to all that are there.
func both(writers ...io.Writer) io.Writer {
	writers = slices.DeleteFunc(writers, func(w io.Writer) bool { return w == nil })
	switch len(writers) {
	case 0:
		return nil // the machine's /dev/null
	case 1:
		return writers[0]
	}
	return io.MultiWriter(writers...)
}

// version asks the executable which version it is.
func (p *program) version(ctx context.Context) (string, error) {
	var out bytes.Buffer
	if err := p.run(ctx, &out, "version", "-json"); err != nil {
		return "", err
	}
	var said struct {
		Version string `json:"terraform_version"`
	}
	if err := json.Unmarshal(jsonIn(out.Bytes()), &said); err != nil {
		return "", fmt.Errorf("it does not tell its version: %w", err)
	}
	if said.Version == "" {
		return "", errors.New("it does not tell its version")
	}
	return said.Version, nil
}

// valid tells whether Terraform finds nothing wrong in the module itself.
func (p *program) valid(ctx context.Context) (bool, error) {
	var out bytes.Buffer
	runErr := p.run(ctx, &out, "validate", "-no-color", "-json")
	var said struct {
		Valid bool `json:"valid"`
	}
	if err := json.Unmarshal(jsonIn(out.Bytes()), &said); err != nil {
		return false, errors.Join(runErr, err)
	}
	return said.Valid, nil
}

// environment is what Terraform gets, as a list: what it needs to be told wherever it is
// run by a program, too.
func environment(env map[string]string) []string {
	list := []string{"TF_IN_AUTOMATION=1", "TF_LOG=", "TF_LOG_CORE=", "TF_LOG_PROVIDER=", "TF_LOG_PATH=", "CHECKPOINT_DISABLE=1"}
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	return list
}

// steersTerraform tells whether a variable changes how Terraform is run, so that no
// component may set it.
func steersTerraform(name string) bool {
	return slices.Contains(steering, name) || strings.HasPrefix(name, "TF_HTTP_") ||
		strings.HasPrefix(name, "TF_VAR_") || strings.HasPrefix(name, "TF_CLI_ARGS_") || strings.HasPrefix(name, "TF_PLUGIN_CACHE_")
}

var steering = []string{
	"TF_DATA_DIR", "TF_CLI_CONFIG_FILE", "TF_CLI_ARGS", "TF_INPUT", "TF_IN_AUTOMATION", "TF_LOG", "TF_LOG_CORE", "TF_LOG_PATH", "TF_LOG_PROVIDER",
	"TF_REATTACH_PROVIDERS", "TF_APPEND_USER_AGENT", "TF_WORKSPACE", "TF_DISABLE_PLUGIN_TLS", "TF_SKIP_PROVIDER_VERIFY",
	"TF_ENCRYPTION", // of OpenTofu
}
