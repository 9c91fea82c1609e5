// Package installsync turns the installs that an app folder declares into what
// the control plane is asked for, says which of their keys it cannot carry out,
// and shows what it decides. Asking, and deciding, are done elsewhere.
package installsync

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

const maxName = 63 // letters, as in the contract

var namePattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

// Declared is what the files under installs/ of a folder say.
type Declared struct {
	Request ctlapi.InstallsRequest
	// Findings are the keys that this version does not carry out, what stands
	// elsewhere, and names that no install may have, sorted.
	Findings []place.Diagnostic

	app *appconfig.App
}

// Declare reads the installs of a folder that was loaded without errors.
func Declare(app *appconfig.App) Declared {
	d := Declared{app: app, Request: ctlapi.InstallsRequest{Installs: []ctlapi.DeclaredInstall{}}}
	for _, in := range app.Installs {
		if len(in.Name) > maxName || !namePattern.MatchString(in.Name) {
			d.find(in.At, "name", place.Diagnostic{
				Severity: place.Error, Code: place.CodeValue, Message: fmt.Sprintf("%q is not a valid name for an install", in.Name),
				Remedy: fmt.Sprintf("use lower-case letters, digits and dashes, at most %d characters", maxName),
			})
		}
		d.Request.Installs = append(d.Request.Installs, request(app, in))
	}
	for _, f := range app.Includes {
		if strings.HasPrefix(f.At.File, "installs/") {
			d.find(f.At, "", place.Diagnostic{
				Severity: place.Error, Code: place.CodeUnsupported, Message: fmt.Sprintf("%s is not fetched, so the install it describes is unknown", f.Address),
				Remedy: "put the file into the folder",
			})
		}
	}
	d.Findings = place.Sort(append(d.Findings, check.UnsupportedOfInstalls(app)...))
	return d
}

func request(app *appconfig.App, in appconfig.InstallConfig) ctlapi.DeclaredInstall {
	out := ctlapi.DeclaredInstall{Name: in.Name, ApprovalOption: new(ctlapi.ApprovalOptionPrompt), Stack: stackOf(app)}
	if in.ApprovalOption == appconfig.ApproveAll {
		out.ApprovalOption = new(ctlapi.ApprovalOptionApproveAll)
	}
	if in.Berth != nil && in.Berth.Customer != "" {
		out.Customer = &in.Berth.Customer
	}
	if in.Labels != nil {
		labels := ctlapi.Labels(in.Labels)
		out.Labels = &labels
	}
	if len(in.Inputs) > 0 {
		values := ctlapi.InputValues{}
		for _, table := range in.Inputs { // later ones win
			maps.Copy(values, table)
		}
		out.Inputs = &values
	}
	if in.ComponentToggles != nil {
		toggles := ctlapi.ComponentToggles(in.ComponentToggles)
		out.ComponentToggles = &toggles
	}
	// Nothing else can set them, so what is not in the file is to go.
	components := ctlapi.ComponentOverrides{}
	for name, o := range in.Components {
		components[name] = ctlapi.ComponentOverride{HelmValues: o.HelmValues, TfVars: o.TFVars}
	}
	out.Components = &components
	return out
}

// stackOf is how the runners of new installs get in. The control plane refuses
// what it does not have.
func stackOf(app *appconfig.App) *ctlapi.StackKind {
	if app.Stack == nil {
		return nil
	}
	switch app.Stack.Type {
	case appconfig.StackLocal:
		return new(ctlapi.StackKindLocal)
	case appconfig.StackKubernetes:
		return new(ctlapi.StackKindKubernetes)
	case appconfig.StackAWSCloudFormation:
		return new(ctlapi.StackKindAws)
	case appconfig.StackAzureBicep:
		return new(ctlapi.StackKindAzure)
	case appconfig.StackGCPTerraform:
		return new(ctlapi.StackKindGcp)
	}
	return nil
}

// find adds a finding about a key of an object, "" for the object itself.
func (d *Declared) find(at place.Place, key string, about place.Diagnostic) {
	file, pos := d.position(at.File, below(at, key))
	about.File, about.Line, about.Column = file, pos.Line, pos.Column
	d.Findings = append(d.Findings, about)
}

// below is the key path of a key of an object.
func below(at place.Place, key string) string {
	if key == "" || at.Key == "" {
		return at.Key + key
	}
	return at.Key + "." + key
}

// position is where a key stands, or the nearest key around it.
func (d *Declared) position(file, key string) (string, place.Position) {
	for {
		if pos, ok := d.app.Origin.Positions[file+"#"+key]; ok {
			if pos.File != "" {
				file = pos.File
			}
			return file, pos
		}
		i := strings.LastIndexAny(key, ".[")
		if i < 0 {
			return file, place.Position{}
		}
		key = key[:i]
	}
}

// Locate gives faults of the request the place in the files where it was said.
// Faults of nothing in the files stay as they are.
func (d *Declared) Locate(faults []ctlapi.ProblemItem) []ctlapi.ProblemItem {
	out := slices.Clone(faults)
	for i := range out {
		if out[i].Pointer == nil {
			continue
		}
		rest, ok := strings.CutPrefix(*out[i].Pointer, "/installs/")
		index, rest, _ := strings.Cut(rest, "/")
		n, err := strconv.Atoi(index)
		if !ok || err != nil || n < 0 || n >= len(d.app.Installs) {
			continue
		}
		in := d.app.Installs[n]
		file, pos := d.position(in.At.File, below(in.At, d.keyOf(in, rest)))
		out[i].File = &file
		if pos.Line > 0 {
			out[i].Line, out[i].Column = &pos.Line, &pos.Column
		}
	}
	return out
}

// keyOf turns the rest of a pointer into a key of the file: inputs/port into
// inputs[1].port, the table that won. What is missing stands nowhere, and so at
// the install's name.
func (d *Declared) keyOf(in appconfig.InstallConfig, pointer string) string {
	field, name, _ := strings.Cut(pointer, "/")
	if field == "inputs" {
		for i, table := range slices.Backward(in.Inputs) {
			if _, ok := table[name]; ok {
				return fmt.Sprintf("inputs[%d].%s", i, name)
			}
		}
		return "name"
	}
	if field == "customer" && in.Berth != nil {
		return "berth.customer"
	}
	if _, ok := d.app.Origin.Positions[in.At.File+"#"+below(in.At, field)]; !ok {
		return "name"
	}
	return strings.ReplaceAll(pointer, "/", ".")
}
