// Command kube is a whole Kubernetes in one executable: the control plane with
// its etcd, the node's kubelet and kube-proxy, kubectl, a small cluster DNS, a
// provisioner of volumes, and a keeper of network policies. One link step and one file instead of nine, and
// the processes share their text pages.
//
// The program is chosen by the name that it is called by (dev/scripts/kube.sh
// makes the links), or by the first argument: `kube kubectl get pods`.
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // metrics of the API clients
	_ "k8s.io/component-base/metrics/prometheus/version"  // the build_info metric
	kubectl "k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"

	"github.com/berth-dev/berth/dev/kube/k8s/dns"
	"github.com/berth-dev/berth/dev/kube/k8s/policies"
	"github.com/berth-dev/berth/dev/kube/k8s/volumes"
)

// programs run until they are done and return the exit code. Each reads
// os.Args, whose first element is its name.
var programs = map[string]func() int{
	"etcd":                    func() int { etcdmain.Main(os.Args); return 0 },
	"kube-apiserver":          component(apiserver.NewAPIServerCommand),
	"kube-controller-manager": component(controllers.NewControllerManagerCommand),
	"kube-dns":                func() int { return dns.Main(os.Args) },
	"kube-policies":           func() int { return policies.Main(os.Args) },
	"kube-proxy":              component(proxy.NewProxyCommand),
	"kube-scheduler":          component(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
	"kube-volumes":            func() int { return volumes.Main(os.Args) },
	"kubectl":                 runKubectl,
	"kubelet":                 component(func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) }),
}

func main() {
	os.Args[0] = filepath.Base(os.Args[0])
	if programs[os.Args[0]] == nil && len(os.Args) > 1 {
		os.Args = os.Args[1:]
	}
	run := programs[os.Args[0]]
	if run == nil {
		names := strings.Join(slices.Sorted(maps.Keys(programs)), "|")
		fmt.Fprintf(os.Stderr, "usage: kube %s [ARGUMENT]...\n", names)
		os.Exit(2)
	}
	os.Exit(run())
}

// component runs a command in the way of Kubernetes' own main functions.
func component(command func() *cobra.Command) func() int {
	return func() int { return cli.Run(command()) }
}

func runKubectl() int {
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err) // prints in kubectl's way and exits
	}
	return 0
}
