package engine_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// set, edit and gone are what happens in most scenes.
func set(flags string) func(*testing.T, *stage) {
	return func(t *testing.T, s *stage) { s.set(t, "web", flags) }
}

func edited(args ...string) func(*testing.T, *stage) {
	return func(t *testing.T, s *stage) { s.kubectl(t, args...) }
}

func replaced(patch string) func(*testing.T, *stage) {
	return func(t *testing.T, s *stage) {
		s.kubectl(t, "patch", "deployment", "web", "--type=json", "-p", strings.ReplaceAll(patch, "IMAGE", s.image))
	}
}

const (
	settings = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {app.json: '{\"a\": 1}'}\n"
	service  = "---\napiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}\n"
	restart  = `[{"op": "add", "path": "/spec/template/metadata/annotations", "value": {"again": "1"}}]`
)

// recreated is a Deployment that takes the old pods away before it makes new ones.
var recreated = web{spec: "strategy: {type: Recreate}"}

// scenes are the faults and the quiet controls.
func scenes() []scene {
	withSettings := web{
		spec: "strategy: {type: Recreate}", flags: "-config=/etc/app/app.json",
		mounts: "- {name: settings, mountPath: /etc/app}", volumes: "- {name: settings, configMap: {name: settings}}",
	}
	return append(faults(withSettings), controls(withSettings)...)
}

func faults(withSettings web) []scene {
	return []scene{
		{name: "crash loop", manifest: web{}.String(), inject: set("-exit-after=10ms"), want: bad, names: "CrashLoopBackOff", slice: true},
		{name: "crashes after it was ready", manifest: web{}.String(), inject: set("-exit-after=8s"), want: bad, names: "web"},
		{name: "out of memory", manifest: web{}.String(), inject: set("-alloc=200"), want: bad, names: "OOMKilled"},
		{name: "one of two crashes", manifest: web{replicas: 2}.String(), inject: func(t *testing.T, s *stage) {
			pod := s.pods(t, "web")[0]
			err := s.Client.CoreV1().RESTClient().Post().Namespace(s.namespace).Resource("pods").Name(pod.Name + ":8080").SubResource("proxy").Suffix("set").
				Body([]byte("-exit-after=10ms")).Do(t.Context()).Error()
			if err != nil {
				t.Fatal(err)
			}
		}, want: bad, names: "CrashLoopBackOff"},
		{name: "not ready any more", manifest: web{}.String(), inject: set("-never"), want: bad, names: "Unhealthy"},
		{name: "full disk", manifest: web{mounts: "- {name: data, mountPath: /data}", volumes: "- {name: data, emptyDir: {medium: Memory, sizeLimit: 4Mi}}"}.String(), inject: set("-fill=/data"), want: bad, names: "web"},
		{name: "dependency down", manifest: web{}.String(), inject: set("-needs=127.0.0.1:9"), want: bad, names: "Unhealthy"},
		{name: "starts too slowly", manifest: web{}.String(), inject: set("-slow=1h"), want: bad, names: "Unhealthy"},
		{name: "liveness kills it", manifest: web{container: "livenessProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 1, failureThreshold: 2}"}.String(), inject: set("-never"), want: bad, names: "Liveness"},
		{name: "certificate expired", manifest: web{flags: "-cert=/etc/tls/tls.crt", mounts: "- {name: tls, mountPath: /etc/tls}", volumes: "- {name: tls, secret: {secretName: tls}}"}.String(),
			before: func(t *testing.T, s *stage) { s.create(t, tlsSecret(t, 2*time.Minute)) }, want: bad, names: "Unhealthy"},
		{name: "bad configuration", manifest: withSettings.String() + settings, inject: func(t *testing.T, s *stage) {
			s.kubectl(t, "patch", "configmap", "settings", "-p", `{"data": {"app.json": "not json"}}`)
			s.kubectl(t, "delete", "pod", "-l", "app=web", "--wait=false")
		}, want: bad, names: "CrashLoopBackOff"},
		{name: "configuration deleted", manifest: withSettings.String() + settings, inject: edited("delete", "configmap", "settings"), want: bad, names: "settings: is not there"},
		{name: "Deployment deleted", manifest: web{}.String(), inject: edited("delete", "deployment", "web"), want: bad, names: "is not there", slice: true},
		{name: "Service deleted", manifest: web{}.String() + service, inject: edited("delete", "service", "web"), want: bad, names: "is not there"},
		{name: "image gone", manifest: recreated.String(), inject: replaced(`[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "127.0.0.1:16452/misbehave:gone"}]`), want: bad, names: "ImagePull"},
		{name: "new image gone, the old pod still serves", manifest: web{}.String(), inject: replaced(`[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "127.0.0.1:16452/misbehave:gone"}]`), want: bad, names: "ImagePull"},
		{name: "command that is not there", manifest: recreated.String(), inject: replaced(`[{"op": "add", "path": "/spec/template/spec/containers/0/command", "value": ["/none"]}]`), want: bad, names: "web"},
		{name: "Secret missing", manifest: recreated.String(), inject: replaced(`[{"op": "add", "path": "/spec/template/spec/containers/0/envFrom", "value": [{"secretRef": {"name": "none"}}]}]`), want: bad, names: "CreateContainerConfigError"},
		{name: "volume missing", manifest: recreated.String(), inject: replaced(`[{"op": "add", "path": "/spec/template/spec/volumes/-", "value": {"name": "data", "persistentVolumeClaim": {"claimName": "none"}}}]`), want: bad, names: "none"},
		{name: "no node has so much", manifest: recreated.String(), inject: replaced(`[{"op": "replace", "path": "/spec/template/spec/containers/0/resources/requests/cpu", "value": "900"}]`), want: bad, names: "Insufficient cpu"},
		{name: "no node fits", manifest: recreated.String(), inject: replaced(`[{"op": "add", "path": "/spec/template/spec/nodeSelector", "value": {"disk": "none"}}]`), want: bad, names: "node"},
		{name: "quota", manifest: recreated.String(), inject: func(t *testing.T, s *stage) {
			s.create(t, "{apiVersion: v1, kind: ResourceQuota, metadata: {name: none}, spec: {hard: {pods: '0'}}}")
			s.kubectl(t, "delete", "pod", "-l", "app=web", "--wait=false")
		}, want: bad, names: "quota"},
		{name: "account of the pods deleted", manifest: strings.Replace(recreated.String(), "terminationGracePeriodSeconds: 1", "terminationGracePeriodSeconds: 1\n      serviceAccountName: web", 1) +
			"---\n{apiVersion: v1, kind: ServiceAccount, metadata: {name: web}}\n", inject: func(t *testing.T, s *stage) {
			s.kubectl(t, "delete", "serviceaccount", "web")
			s.kubectl(t, "delete", "pod", "-l", "app=web", "--wait=false")
		}, want: bad, names: "ServiceAccount"},
		{name: "init container fails", manifest: recreated.String(), inject: replaced(`[{"op": "add", "path": "/spec/template/spec/initContainers", "value": [{"name": "prepare", "image": "IMAGE", "args": ["-exit-after=10ms"]}]}]`), want: bad, names: "prepare"},
		{name: "second replica does not fit next to the first", manifest: web{pod: "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}}]}}"}.String(),
			inject: edited("scale", "deployment", "web", "--replicas=2"), want: bad, names: "affinity"},
		{name: "StatefulSet crashes", manifest: web{kind: "StatefulSet", spec: "serviceName: web"}.String(), inject: set("-exit-after=10ms"), want: bad, names: "CrashLoopBackOff"},
		{name: "DaemonSet crashes", manifest: web{kind: "DaemonSet"}.String(), inject: set("-exit-after=10ms"), want: bad, names: "CrashLoopBackOff"},
		{name: "Service without an address", manifest: web{}.String() + service, inject: edited("patch", "service", "web", "-p", `{"spec": {"type": "LoadBalancer"}}`), want: bad, names: "Service"},
		{name: "operator says no", manifest: basket, before: kind("subresources: {status: {}}, "), inject: func(t *testing.T, s *stage) {
			s.status(t, baskets(s), "b", `{"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "NoFruit", "message": "it is empty"}]}}`)
		}, want: bad, names: "it is empty"},
		{name: "operator says nothing", manifest: basket, before: kind("subresources: {status: {}}, "), want: unclear, names: "does not say"},
		{name: "pods are refused", manifest: recreated.String(), inject: func(t *testing.T, s *stage) {
			s.create(t, fmt.Sprintf(`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: %[1]s}, spec: {failurePolicy: Fail, matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}, validations: [{expression: "false", message: "nobody may"}]}}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: %[1]s}, spec: {policyName: %[1]s, validationActions: [Deny], matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}}}}
`, s.namespace))
			t.Cleanup(func() {
				admission := s.Client.AdmissionregistrationV1()
				_ = admission.ValidatingAdmissionPolicyBindings().Delete(background(t), s.namespace, metav1.DeleteOptions{})
				_ = admission.ValidatingAdmissionPolicies().Delete(background(t), s.namespace, metav1.DeleteOptions{})
			})
			time.Sleep(5 * time.Second) // until the API server has read it
			s.kubectl(t, "delete", "pod", "-l", "app=web", "--wait=false")
		}, want: bad, names: "nobody may"},
	}
}

// controls are quiet: what happens is no fault.
func controls(withSettings web) []scene {
	claim := "---\n{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}}\n"
	job := func(more string) string {
		return `---
apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec:
  ` + more + `
  template: {spec: {restartPolicy: Never, containers: [{name: once, image: "{{ .nuon.inputs.inputs.image }}", args: ["-done"], resources: {limits: {memory: 64Mi}}}]}}
`
	}
	return []scene{
		{name: "nothing happens", manifest: web{}.String() + service, want: good},
		{name: "a pod is killed", manifest: web{}.String(), inject: edited("delete", "pod", "-l", "app=web", "--wait=false"), want: good, slice: true},
		{name: "a pod of two is killed", manifest: web{replicas: 2}.String(), inject: func(t *testing.T, s *stage) {
			s.kubectl(t, "delete", "pod", s.pods(t, "web")[0].Name, "--wait=false")
		}, want: good},
		{name: "one crash", manifest: web{}.String(), inject: set("-exit-once=/state/once"), want: good},
		{name: "slow start after a restart", manifest: web{}.String(), inject: set("-slow=25s"), want: good},
		{name: "rolled by hand", manifest: web{replicas: 2}.String(), inject: edited("rollout", "restart", "deployment", "web"), want: good},
		{name: "scaled by hand", manifest: web{}.String(), inject: edited("scale", "deployment", "web", "--replicas=3"), want: good},
		{name: "scaled to nothing", manifest: web{}.String(), inject: edited("scale", "deployment", "web", "--replicas=0"), want: good},
		{name: "an autoscaler at work", manifest: web{}.String() + "---\n{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web}, spec: {minReplicas: 2, maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}\n", want: good},
		{name: "node cordoned", manifest: web{}.String(), inject: func(t *testing.T, s *stage) {
			node := s.pods(t, "web")[0].Spec.NodeName
			s.kubectl(t, "cordon", node)
			t.Cleanup(func() {
				_ = exec.Command(os.Getenv("KUBECTL"), "--kubeconfig", s.kubeconfig, "uncordon", node).Run()
			})
		}, want: good, alone: true},
		{name: "configuration edited, and still right", manifest: withSettings.String() + settings, inject: edited("patch", "configmap", "settings", "-p", `{"data": {"app.json": "{}"}}`), want: good},
		{name: "certificate renewed by another", manifest: web{mounts: "- {name: tls, mountPath: /etc/tls}", volumes: "- {name: tls, secret: {secretName: tls}}"}.String(),
			before: func(t *testing.T, s *stage) { s.create(t, tlsSecret(t, time.Hour)) }, inject: func(t *testing.T, s *stage) { s.create(t, tlsSecret(t, 2*time.Hour)) }, want: good},
		{name: "StatefulSet", manifest: web{kind: "StatefulSet", spec: "serviceName: web", replicas: 2}.String(), inject: edited("delete", "pod", "web-0", "--wait=false"), want: good},
		{name: "DaemonSet", manifest: web{kind: "DaemonSet"}.String(), want: good},
		{name: "a volume", manifest: web{mounts: "- {name: data, mountPath: /data}", volumes: "- {name: data, persistentVolumeClaim: {claimName: data}}"}.String() + claim, want: good},
		{name: "a Job that is done", manifest: web{}.String() + job("backoffLimit: 0"), want: good},
		{name: "a Job that waits", manifest: web{}.String() + job("suspend: true"), want: good},
		{name: "a CronJob", manifest: web{}.String() + "---\n{apiVersion: batch/v1, kind: CronJob, metadata: {name: often}, spec: {schedule: '* * * * *', jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: once, image: '{{ .nuon.inputs.inputs.image }}', args: ['-exit-after=1s']}]}}}}}}\n", want: good},
		{name: "operator says yes", manifest: basket, before: kind("subresources: {status: {}}, "), inject: func(t *testing.T, s *stage) {
			s.status(t, baskets(s), "b", `{"status": {"conditions": [{"type": "Ready", "status": "True"}]}}`)
		}, want: good},
		{name: "a kind without a status", manifest: basket, before: kind(""), want: good},
		{name: "no pods", manifest: "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: b}}\n---\n{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: a}, spec: {minAvailable: 0, selector: {matchLabels: {app: none}}}}\n---\n{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: a}, spec: {podSelector: {matchLabels: {app: none}}}}\n", want: good},
	}
}

// A Basket is of a group that is named after the namespace: scenes run side by side.
const basket = "{apiVersion: GROUP/v1, kind: Basket, metadata: {name: b}}\n"

// kind makes the kind of baskets, with a status or without.
func kind(subresources string) func(*testing.T, *stage) {
	return func(t *testing.T, s *stage) {
		group := baskets(s).Group
		s.create(t, fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: baskets.%[1]s}
spec:
  group: %[1]s
  scope: Namespaced
  names: {kind: Basket, plural: baskets, singular: basket}
  versions:
  - {name: v1, served: true, storage: true, %[2]sschema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`, group, subresources))
		definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
		t.Cleanup(func() {
			_ = s.Dynamic.Resource(definitions).Delete(background(t), "baskets."+group, metav1.DeleteOptions{})
		})
		s.kubectl(t, "wait", "--for=condition=Established", "--timeout=20s", "crd/baskets."+group)
	}
}

func baskets(s *stage) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: s.namespace + ".example.com", Version: "v1", Resource: "baskets"}
}

// tlsSecret is a certificate that ends after a while.
func tlsSecret(t *testing.T, lasts time.Duration) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(lasts)}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	text := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}))
	return "apiVersion: v1\nkind: Secret\nmetadata: {name: tls}\nstringData:\n  tls.crt: |\n    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ") + "\n"
}
