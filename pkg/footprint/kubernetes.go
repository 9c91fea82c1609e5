package footprint

import (
	"fmt"
	"strconv"
	"strings"
)

// object is what an object of Kubernetes holds.
type object map[string]any

func readObject(raw []byte) object {
	o, _ := decode(raw).(map[string]any)
	return o
}

func (o object) group() string {
	group, _, found := strings.Cut(text(o, "apiVersion"), "/")
	if !found {
		return ""
	}
	return group
}

// shown names the object: "Service shop/web".
func (o object) shown() string {
	metadata := child(o, "metadata")
	name := text(metadata, "name")
	if namespace := text(metadata, "namespace"); namespace != "" {
		name = namespace + "/" + name
	}
	return text(o, "kind") + " " + name
}

// silent are kinds that say nothing of what interests here, and may be large or secret.
var silent = map[string]bool{"ConfigMap": true, "Secret": true, "CustomResourceDefinition": true}

// object takes in what is to be known of an object; nil is none.
func (f *facts) object(o object) {
	if o == nil {
		return
	}
	kind, group, by := text(o, "kind"), o.group(), o.shown()
	put(f.kinds, kindAt{group, kind, text(child(o, "metadata"), "namespace")}, true)
	if silent[kind] {
		return
	}
	spec := child(o, "spec")
	switch group + "/" + kind {
	case "/Service":
		f.service(spec, by)
	case "networking.k8s.io/Ingress", "extensions/Ingress":
		f.ingress(spec, by)
	case "gateway.networking.k8s.io/Gateway":
		f.listeners(spec, "listeners", "hostname", by)
	case "gateway.networking.k8s.io/HTTPRoute", "gateway.networking.k8s.io/GRPCRoute", "gateway.networking.k8s.io/TLSRoute":
		f.hostnames(Route, texts(spec, "hostnames"), by)
	case "gateway.networking.k8s.io/TCPRoute", "gateway.networking.k8s.io/UDPRoute":
		f.expose(Route, by, "whatever its gateway listens on")
	case "route.openshift.io/Route":
		f.hostnames(Route, []string{text(spec, "host")}, by)
	case "networking.istio.io/Gateway":
		f.istioGateway(spec, by)
	case "networking.istio.io/VirtualService":
		if len(texts(spec, "gateways")) > 0 {
			f.hostnames(Route, texts(spec, "hosts"), by)
		}
	case "networking.istio.io/ServiceEntry":
		for _, host := range texts(spec, "hosts") {
			f.host(host, by)
		}
	case "admissionregistration.k8s.io/ValidatingWebhookConfiguration", "admissionregistration.k8s.io/MutatingWebhookConfiguration":
		for _, w := range children(o, "webhooks") {
			f.url(text(child(w, "clientConfig"), "url"), by)
		}
	case groupRBAC + "/Role", groupRBAC + "/ClusterRole":
		f.role(o, by)
	case groupRBAC + "/RoleBinding", groupRBAC + "/ClusterRoleBinding":
		f.binding(o, by)
	}
	if image := text(spec, "image"); image != "" && strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io") {
		f.image(image, by) // the custom resource of an operator
	}
	f.pods(map[string]any(o), by, 0)
}

func (f *facts) service(spec map[string]any, by string) {
	ports := children(spec, "ports")
	port := func(p map[string]any) string {
		protocol := text(p, "protocol")
		if protocol == "" {
			protocol = "TCP"
		}
		return word(p["port"]) + "/" + protocol
	}
	for _, ip := range texts(spec, "externalIPs") {
		f.expose(ExternalIP, by, ip)
	}
	switch text(spec, "type") {
	case "LoadBalancer":
		ranges := ""
		if from := texts(spec, "loadBalancerSourceRanges"); len(from) > 0 {
			ranges = " from " + strings.Join(from, ", ")
		}
		for _, p := range ports {
			f.expose(LoadBalancer, by, port(p)+ranges)
		}
	case "NodePort":
		for _, p := range ports {
			// Which port it is, a dry run makes up.
			f.expose(NodePort, by, "for "+port(p))
		}
	case "ExternalName":
		f.host(text(spec, "externalName"), by)
	}
}

func (f *facts) ingress(spec map[string]any, by string) {
	hosts := []string{}
	for _, rule := range children(spec, "rules") {
		hosts = append(hosts, text(rule, "host"))
	}
	if len(hosts) == 0 {
		hosts = append(hosts, "")
	}
	f.hostnames(IngressHost, hosts, by)
}

// hostnames exposes hosts; "" is any.
func (f *facts) hostnames(kind ExposureKind, hosts []string, by string) {
	if len(hosts) == 0 {
		hosts = []string{""}
	}
	for _, host := range hosts {
		if host == "" {
			host = "any host"
		}
		f.expose(kind, by, host)
	}
}

func (f *facts) listeners(spec map[string]any, list, hostname, by string) {
	for _, l := range children(spec, list) {
		host := text(l, hostname)
		if host == "" {
			host = "any host"
		}
		f.expose(Gateway, by, fmt.Sprintf("%s port %s/%s", host, word(l["port"]), text(l, "protocol")))
	}
}

func (f *facts) istioGateway(spec map[string]any, by string) {
	for _, s := range children(spec, "servers") {
		port := child(s, "port")
		f.expose(Gateway, by, fmt.Sprintf("%s port %s/%s", strings.Join(texts(s, "hosts"), ", "), word(port["number"]), text(port, "protocol")))
	}
}

// maxDepth bounds how deep pods are looked for.
const maxDepth = 40

// podLists are what containers stand under; the last two are those of Terraform.
var podLists = []string{"containers", "initContainers", "ephemeralContainers", "container", "init_container"}

// pods finds the pods in an object, wherever its kind has them.
func (f *facts) pods(v any, by string, depth int) {
	if depth > maxDepth {
		f.cannotTell("what is nested deeper than "+fmt.Sprint(maxDepth)+" levels", by)
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for _, list := range podLists {
			for _, c := range children(v, list) {
				f.container(c, by)
			}
		}
		if _, isPod := v["containers"].([]any); isPod {
			if v["hostNetwork"] == true {
				f.expose(HostPort, by, "every port: it uses the network of its node")
			}
			for _, volume := range children(v, "volumes") {
				f.image(text(child(volume, "image"), "reference"), by)
			}
		}
		for _, key := range keysOf(v) { // of two that are the same, the first counts
			if key != "metadata" && key != "status" {
				f.pods(v[key], by, depth+1)
			}
		}
	case []any:
		for _, value := range v {
			f.pods(value, by, depth+1)
		}
	}
}

func (f *facts) container(c map[string]any, by string) {
	f.image(text(c, "image"), by)
	for _, p := range children(c, "ports") {
		if port := word(p["hostPort"]); port != "" && port != "0" {
			f.expose(HostPort, by, port)
		}
	}
	for _, e := range children(c, "env") {
		f.variable(text(e, "name"), text(e, "value"), by)
	}
}

func (f *facts) image(image, by string) {
	if image = strings.TrimSpace(image); image != "" {
		put(f.images, image, Image{Image: image, By: by})
	}
}

func child(m map[string]any, path ...string) map[string]any {
	for _, key := range path {
		m, _ = m[key].(map[string]any)
	}
	return m
}

func text(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return s
}

// children are the objects of a list.
func children(m map[string]any, key string) []map[string]any {
	list, _ := m[key].([]any)
	var all []map[string]any
	for _, item := range list {
		if c, ok := item.(map[string]any); ok {
			all = append(all, c)
		}
	}
	return all
}

// texts are the strings of a list.
func texts(m map[string]any, key string) []string { return stringsOf(m[key]) }

// stringsOf reads a list of strings, or one string.
func stringsOf(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		var all []string
		for _, item := range v {
			if s, ok := item.(string); ok {
				all = append(all, s)
			}
		}
		return all
	}
	return nil
}

// word is a number or a string; "" for anything else.
func word(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}
