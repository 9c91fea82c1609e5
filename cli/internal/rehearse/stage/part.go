package stage

import (
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig"
)

// Part names the sandbox, a component or an action: "sandbox", "component/NAME",
// "action/NAME".
type Part string

// Kind is what a part is: "component".
func (p Part) Kind() string {
	kind, _, _ := strings.Cut(string(p), "/")
	return kind
}

// Name is the name of a part; "" for one of which an app has only one.
func (p Part) Name() string {
	_, name, _ := strings.Cut(string(p), "/")
	return name
}

// Sandbox is the sandbox.
const Sandbox Part = appconfig.BlockSandbox

// Component is the component of that name.
func Component(name string) Part { return Part(appconfig.BlockComponent + "/" + name) }

// Action is the action of that name.
func Action(name string) Part { return Part(appconfig.BlockAction + "/" + name) }
