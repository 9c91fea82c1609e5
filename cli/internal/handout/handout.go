// Package handout writes what a vendor hands to a customer.
package handout

import (
	"io"

	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/enrolcode"
)

// Print writes what the customer runs. It says what IMAGE stands for where
// the control plane knows no image of the runner.
func Print(out io.Writer, code enrolcode.Code, made ctlapi.StackCode) error {
	_, err := output.Printf(out, `# For the customer: the runner of %s, valid until %s. The code is a secret
# and works once. Behind a proxy, add --proxy URL to both commands; with a private
# certificate authority, add --ca FILE. See also berth-runner manifest --help.
`, code.Install, made.ExpiresAt.Local().Format("2006-01-02 15:04"))
	image := ""
	if code.RunnerImage == "" && err == nil {
		image = " --image IMAGE"
		_, err = output.Printf(out, "# IMAGE is the berth-runner image in your registry.\n")
	}
	if err != nil {
		return err
	}
	_, err = output.Printf(out, `(umask 077; cat > %[1]s.code) <<'CODE'
%[2]s
CODE
berth-runner preflight --code @%[1]s.code
berth-runner manifest --code @%[1]s.code%[3]s | kubectl apply -f -
`, code.Install, made.Code, image)
	return err
}
