package handout_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/cli/internal/handout"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/enrolcode"
)

// The script runs as it is printed: what is no comment is a line of its own.
func TestPrint(t *testing.T) {
	t.Parallel()
	const common = "(umask 077; cat > acme.code) <<'CODE'\nberth1.x.y\nCODE\nberth-runner preflight --code @acme.code\n"
	tests := []struct{ name, image, want string }{
		{"the control plane names an image", "registry.example.com/runner:1", common + "berth-runner manifest --code @acme.code | kubectl apply -f -\n"},
		{"it names none", "", common + "berth-runner manifest --code @acme.code --image IMAGE | kubectl apply -f -\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			made := ctlapi.StackCode{Code: "berth1.x.y", ExpiresAt: time.Now()}
			if err := handout.Print(&out, enrolcode.Code{Install: "acme", RunnerImage: tt.image}, made); err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for line := range strings.Lines(out.String()) {
				if !strings.HasPrefix(line, "# ") {
					got.WriteString(line)
				}
			}
			if diff := cmp.Diff(tt.want, got.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
