package clusterneeds

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/appfolder"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/preview"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/interpolate"
	"github.com/berth-dev/berth/pkg/permissions"
)

// Run is one call of the command, with what it has from its program.
type Run struct {
	Out, Err io.Writer
	In       io.Reader
	Now      func() time.Time
	// OfInstall asks the control plane for the state of an install.
	OfInstall func(ctx context.Context, install string) (interpolate.State, error)
	JSON      bool // asked for by a flag of all commands

	asked          Asked
	set            []string
	state, install string
	format, runner string
}

// Command is berth apps permissions.
func Command(r *Run) *cobra.Command {
	r.format = "text"
	cmd := &cobra.Command{
		Use:   "permissions [DIR]",
		Short: "List what an app needs to be allowed in a cluster",
		Long: `Renders the charts and manifests of an app folder without a cluster, and lists which kinds of
objects an engine reads and writes for them, in which namespace or outside of all, and why.

The customer gives the list to berth-runner manifest --rights app --permissions FILE
(-o json); -o yaml prints the same as Roles and a ClusterRole for kubectl apply.

Without --install or --state, berth makes up what templates read; --set says single values,
such as the namespace that the sandbox has as its output. What cannot be found out is named:
charts from elsewhere, kinds that only the cluster knows (--kind), templates that read the
cluster, scripts and Terraform that call it (--grant).

Kubernetes lets nobody grant a right that they do not have. So if the app makes roles, engines
get what is in them. escalate, bind and impersonate would let engines get any right: they are
in the list only with --allow.`,
		Example: "  berth apps permissions . --set sandbox.outputs.namespace=shop-acme\n" +
			"  berth apps permissions . --install acme --grant get:services/proxy -o json > permissions.json",
		RunE: func(cmd *cobra.Command, args []string) error { return r.run(cmd.Context(), args) },
	}
	f := cmd.Flags()
	f.StringVar(&r.install, "install", "", "use the state of this install, from the control plane")
	f.StringVar(&r.state, "state", "", "the state tree of an install: a JSON file, or - for stdin")
	f.StringArrayVar(&r.set, "set", nil, "PATH=VALUE: what templates read at a path, such as sandbox.outputs.namespace; may be repeated")
	f.StringArrayVar(&r.asked.Grants, "grant", nil, "VERB,VERB:RESOURCE: a right that scripts need in the app's namespaces, such as get:services/proxy; may be repeated")
	f.StringArrayVar(&r.asked.Kinds, "kind", nil, "GROUP/KIND=RESOURCE: how a kind is served that neither Kubernetes nor the app defines; :cluster behind it for one outside of namespaces; may be repeated")
	f.StringSliceVar(&r.asked.Allow, "allow", nil, "bind, escalate or impersonate: include rules with it")
	f.StringVar(&r.runner, "runner-namespace", "", "with -o yaml: the namespace of the runner whose engines get the rights (default berth-INSTALL with --install)")
	f.VarP(usage.OneOf(&r.format, "text", "json", "yaml"), "output", "o", "text, json or yaml")
	cmd.MarkFlagsMutuallyExclusive("state", "install")
	return cmd
}

func (r *Run) run(ctx context.Context, args []string) error {
	if r.JSON {
		r.format = "json"
	}
	if r.runner == "" && r.install != "" {
		r.runner = "berth-" + r.install
	}
	if r.format == "yaml" && r.runner == "" {
		return usage.Errorf("-o yaml needs --runner-namespace: whose engines get the rights")
	}
	folder, err := appfolder.Open(args)
	if err != nil {
		return err
	}
	app, wrong, err := folder.Read(r.Err)
	if err != nil {
		return err
	}
	f := Folder{Folder: folder, App: app, State: check.MadeUpState(app), Now: r.Now()}
	switch {
	case r.install != "":
		f.State, err = r.OfInstall(ctx, r.install)
	case r.state != "":
		f.State, err = preview.ReadTree(r.state, r.In)
	}
	if err != nil {
		return err
	}
	values, err := usage.Pairs[map[string]string]("--set", r.set)
	if err != nil {
		return err
	}
	if values != nil {
		if err := Set(f.State, *values); err != nil {
			return usage.Error{Err: err}
		}
	}
	list, err := List(ctx, f, r.asked)
	if err != nil {
		return err
	}
	if err := r.print(list); err != nil {
		return err
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%s has mistakes, so rules may be missing", folder.Written)
	}
	return nil
}

// print shows the list; what a program does not read goes to people on stderr.
func (r *Run) print(list permissions.List) error {
	for _, verb := range r.asked.Allow {
		output.Println(r.Err, "warning: with "+verb+" engines can get rights that are not in this list")
	}
	if r.format == "text" {
		return Text(r.Out, list)
	}
	for title, notes := range notesOf(list) {
		for _, n := range notes {
			output.Println(r.Err, fmt.Sprintf("%s: %s: %s", title, n.From, n.Text))
		}
	}
	if r.format == "yaml" {
		_, err := io.WriteString(r.Out, list.Roles(permissions.Account{Namespace: r.runner, Name: "berth-engine"}))
		return err
	}
	e := json.NewEncoder(r.Out)
	e.SetIndent("", "  ")
	return e.Encode(list)
}
