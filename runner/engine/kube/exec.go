package kube

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
)

// workloads are the kinds whose pods PodsAt finds, by their names in a target such as
// deployment/web.
var workloads = map[string]Ref{
	"deployment":  {Group: "apps", Version: "v1", Kind: "Deployment"},
	"statefulset": {Group: "apps", Version: "v1", Kind: "StatefulSet"},
	"daemonset":   {Group: "apps", Version: "v1", Kind: "DaemonSet"},
	"pod":         {Version: "v1", Kind: "Pod"},
}

// PodsAt lists the pods of a workload, such as deployment/web: none when it is not there.
func (c *Cluster) PodsAt(ctx context.Context, namespace, target string) ([]corev1.Pod, error) {
	kind, name, _ := strings.Cut(target, "/")
	ref, known := workloads[strings.ToLower(kind)]
	if !known || name == "" {
		return nil, fmt.Errorf("%q is none of deployment/NAME, statefulset/NAME, daemonset/NAME and pod/NAME", target)
	}
	ref.Namespace, ref.Name = namespace, name
	obj, err := c.Get(ctx, ref)
	if err != nil || obj == nil {
		return nil, err
	}
	return c.podsOf(ctx, obj)
}

// PodsBy lists the pods of a namespace by their labels.
func (c *Cluster) PodsBy(ctx context.Context, namespace, selector string) ([]corev1.Pod, error) {
	list, err := c.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// Place is a container of a pod.
type Place struct{ Namespace, Pod, Container string }

// Exec runs a command in a container until it ends: a utilexec.CodeExitError when that is not
// with exit code 0. When ctx ends, the command itself goes on. Both writers may still be used
// for a moment then.
func (c *Cluster) Exec(ctx context.Context, at Place, argv []string, stdout, stderr io.Writer) error {
	address := c.Client.CoreV1().RESTClient().Post().Resource("pods").Namespace(at.Namespace).Name(at.Pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: at.Container, Command: argv, Stdout: true, Stderr: true}, scheme.ParameterCodec).URL()
	socket, err := remotecommand.NewWebSocketExecutor(c.Config, http.MethodGet, address.String())
	if err != nil {
		return err
	}
	older, err := remotecommand.NewSPDYExecutor(c.Config, http.MethodPost, address) // proxies and API servers without web sockets
	if err != nil {
		return err
	}
	both, err := remotecommand.NewFallbackExecutor(socket, older, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	if err != nil {
		return err
	}
	return both.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: stdout, Stderr: stderr})
}
