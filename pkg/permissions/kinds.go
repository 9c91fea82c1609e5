package permissions

import "strings"

// kind is how the API server serves objects of a kind.
type kind struct {
	resource   string
	namespaced bool
}

const groupRBAC = "rbac.authorization.k8s.io"

// builtIn are the kinds of Kubernetes itself by group, each "Kind=plural"; those
// after "|" live outside of namespaces.
var builtIn = readKinds(map[string]string{
	"": `ConfigMap=configmaps Endpoints=endpoints Event=events LimitRange=limitranges PersistentVolumeClaim=persistentvolumeclaims Pod=pods
		PodTemplate=podtemplates ReplicationController=replicationcontrollers ResourceQuota=resourcequotas Secret=secrets Service=services
		ServiceAccount=serviceaccounts | Namespace=namespaces Node=nodes PersistentVolume=persistentvolumes`,
	"apps":                         `ControllerRevision=controllerrevisions DaemonSet=daemonsets Deployment=deployments ReplicaSet=replicasets StatefulSet=statefulsets`,
	"batch":                        `CronJob=cronjobs Job=jobs`,
	"autoscaling":                  `HorizontalPodAutoscaler=horizontalpodautoscalers`,
	"policy":                       `PodDisruptionBudget=poddisruptionbudgets`,
	"networking.k8s.io":            `Ingress=ingresses NetworkPolicy=networkpolicies | IngressClass=ingressclasses IPAddress=ipaddresses ServiceCIDR=servicecidrs`,
	groupRBAC:                      `Role=roles RoleBinding=rolebindings | ClusterRole=clusterroles ClusterRoleBinding=clusterrolebindings`,
	"coordination.k8s.io":          `Lease=leases`,
	"discovery.k8s.io":             `EndpointSlice=endpointslices`,
	"events.k8s.io":                `Event=events`,
	"storage.k8s.io":               `CSIStorageCapacity=csistoragecapacities | StorageClass=storageclasses CSIDriver=csidrivers CSINode=csinodes VolumeAttachment=volumeattachments VolumeAttributesClass=volumeattributesclasses`,
	"scheduling.k8s.io":            `| PriorityClass=priorityclasses`,
	"node.k8s.io":                  `| RuntimeClass=runtimeclasses`,
	"apiextensions.k8s.io":         `| CustomResourceDefinition=customresourcedefinitions`,
	"apiregistration.k8s.io":       `| APIService=apiservices`,
	"certificates.k8s.io":          `| CertificateSigningRequest=certificatesigningrequests`,
	"admissionregistration.k8s.io": `| MutatingWebhookConfiguration=mutatingwebhookconfigurations ValidatingWebhookConfiguration=validatingwebhookconfigurations ValidatingAdmissionPolicy=validatingadmissionpolicies ValidatingAdmissionPolicyBinding=validatingadmissionpolicybindings`,
	"flowcontrol.apiserver.k8s.io": `| FlowSchema=flowschemas PriorityLevelConfiguration=prioritylevelconfigurations`,
	"resource.k8s.io":              `ResourceClaim=resourceclaims ResourceClaimTemplate=resourceclaimtemplates | DeviceClass=deviceclasses ResourceSlice=resourceslices`,
})

type groupKind struct{ group, kind string }

func readKinds(groups map[string]string) map[groupKind]kind {
	all := map[groupKind]kind{}
	for group, text := range groups {
		inside, outside, _ := strings.Cut(text, "|")
		for list, namespaced := range map[string]bool{inside: true, outside: false} {
			for _, entry := range strings.Fields(list) {
				name, plural, _ := strings.Cut(entry, "=")
				all[groupKind{group, name}] = kind{resource: plural, namespaced: namespaced}
			}
		}
	}
	return all
}
