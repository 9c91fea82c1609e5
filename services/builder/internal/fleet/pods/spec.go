package pods

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/services/builder/internal/fleet/roster"
)

// Labels and annotations of pods. The org and the runner are no secrets, and
// neither is the digest of an enrolment secret: it has over 256 bits.
const (
	labelName   = "app.kubernetes.io/name"
	labelOrg    = "berth.dev/org"
	labelRunner = "berth.dev/runner"
	name        = "build-runner"

	annotationTrust     = "berth.dev/trust"
	annotationForm      = "berth.dev/form"
	annotationEnrolment = "berth.dev/enrolment"
)

// Where things are in a pod. The data directory is the agent's own, below a
// volume that belongs to root.
const (
	dataVolume = "/data"
	dataDir    = "/data/runner"
	givenDir   = "/run/berth/given"
	// buildKitDir has the keys of a BuildKit elsewhere, perOrgDir what builds of images
	// may have, by org.
	buildKitDir = "/run/berth/buildkit"
	perOrgDir   = "/run/berth/build-secrets"

	fileTrust     = "trust.json"
	fileEnrolment = "enrolment"
	fileCA        = "ca.crt"

	// authorities is where the agent keeps fileCA, for itself and its engines.
	authorities = dataDir + "/authorities"
)

const (
	// user of the agent and its engines: any but root will do.
	user = 65532
	// stopSeconds is what engines (30 s) and their results (10 s) get, with a margin.
	stopSeconds = 60
	// deadlineMargin is how far above the limit of age the cluster ends a pod that
	// nobody ended: the longest build, and a builder that is away.
	deadlineMargin = 12 * time.Hour
	tmpSize        = "1Gi"
)

// nameOf is the name of everything that is made for an org. There can be one of
// each kind, so an org has one pod, made by any builder.
func nameOf(orgID string) string {
	return name + "-" + strings.ReplaceAll(orgID, "_", "-")
}

func (f *Fleet) meta(orgID, runnerID string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: nameOf(orgID), Namespace: f.config.Namespace,
		Labels: map[string]string{labelName: name, "app.kubernetes.io/managed-by": "berth-builder", labelOrg: orgID, labelRunner: runnerID},
	}
}

// account is that of an org's pods: a name without any right.
func (f *Fleet) account(orgID, runnerID string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: f.meta(orgID, runnerID), AutomountServiceAccountToken: new(bool)}
}

// secret has what the pod starts from. Only the enrolment is one.
func (f *Fleet) secret(orgID, runnerID string, files map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: f.meta(orgID, runnerID), Type: corev1.SecretTypeOpaque, Data: files}
}

// trust is what the org's runner is to believe, as it stands in its files, with a
// digest of that.
func (f *Fleet) trust(orgID string) (files map[string][]byte, digest string, _ error) {
	trust, err := f.roster.Trust(orgID)
	if err != nil {
		return nil, "", err
	}
	trust.OneHost = true
	files = map[string][]byte{}
	if len(f.authorities) > 0 {
		files[fileCA], trust.PrivateCAFile = f.authorities, authorities+"/"+fileCA
	}
	files[fileTrust] = mustJSON(trust)
	return files, digestOf(string(files[fileTrust]), string(f.authorities)), nil
}

// pod is the pod of an org, all but what it enrols with; its annotation form says
// what it is like.
func (f *Fleet) pod(orgID, runnerID string, aliases []corev1.HostAlias) *corev1.Pod {
	c := f.config
	p := &corev1.Pod{ObjectMeta: f.meta(orgID, runnerID), Spec: corev1.PodSpec{
		ServiceAccountName:            nameOf(orgID),
		AutomountServiceAccountToken:  new(bool),
		EnableServiceLinks:            new(bool),
		RestartPolicy:                 corev1.RestartPolicyAlways,
		TerminationGracePeriodSeconds: pointer(int64(stopSeconds)),
		ActiveDeadlineSeconds:         pointer(int64((c.MaxAge + deadlineMargin).Seconds())),
		HostAliases:                   aliases,
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: pointer(true), RunAsUser: pointer(int64(user)), RunAsGroup: pointer(int64(user)), FSGroup: pointer(int64(user)),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{f.container(orgID)},
		Volumes: []corev1.Volume{
			{Name: "data", VolumeSource: scratch(c.Disk)},
			{Name: "tmp", VolumeSource: scratch(tmpSize)},
			// Optional: it is deleted once the pod has enrolled.
			{Name: "given", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
				SecretName: nameOf(orgID), DefaultMode: pointer(int32(0o440)), Optional: pointer(true),
			}}},
		},
	}}
	for _, g := range f.given(orgID) {
		p.Spec.Volumes = append(p.Spec.Volumes, g.volume())
	}
	if c.PullSecret != "" {
		p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: c.PullSecret}}
	}
	p.Annotations = map[string]string{annotationForm: digestOf(string(mustJSON(p.Spec)))}
	return p
}

// given is a Secret of the operator's that a pod reads.
type given struct {
	name, secret, at string
	// items renames keys.
	items []corev1.KeyToPath
	// env tells the runner where it is.
	env []corev1.EnvVar
}

// given are the Secrets that an org's pods read. One that is not there is an empty
// directory: a build that needs it says what it lacks.
func (f *Fleet) given(orgID string) (list []given) {
	c := f.config
	of := func(name string) string {
		return strings.ReplaceAll(name, OrgPlace, strings.ReplaceAll(orgID, "_", "-"))
	}
	if c.BuildKit.isFor(orgID) {
		list = append(list, given{name: "buildkit", secret: of(c.BuildKit.Secret), at: buildKitDir, env: []corev1.EnvVar{
			{Name: "BERTH_BUILDKIT_ADDR", Value: c.BuildKit.Address}, {Name: "BERTH_BUILDKIT_ORG", Value: orgID}, {Name: "BERTH_BUILDKIT_TLS", Value: buildKitDir},
		}})
	}
	secrets := []corev1.EnvVar{{Name: "BERTH_BUILD_SECRETS", Value: perOrgDir}}
	if c.BuildSecrets != "" {
		list = append(list, given{name: "build-secrets", secret: of(c.BuildSecrets), at: perOrgDir + "/" + orgID + "/secrets", env: secrets})
	}
	if c.BuildRegistries != "" {
		list = append(list, given{
			name: "build-registries", secret: of(c.BuildRegistries), at: perOrgDir + "/" + orgID + "/registries", env: secrets,
			items: []corev1.KeyToPath{{Key: corev1.DockerConfigJsonKey, Path: "config.json"}},
		})
	}
	return list
}

func (g given) volume() corev1.Volume {
	return corev1.Volume{Name: g.name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: g.secret, Items: g.items, DefaultMode: pointer(int32(0o440)), Optional: pointer(true),
	}}}
}

func (f *Fleet) container(orgID string) corev1.Container {
	c := f.config
	env := []corev1.EnvVar{
		{Name: "HOME", Value: "/tmp"},
		{Name: "TMPDIR", Value: "/tmp"},
		// The limits of this container hold engines too; it cannot set others.
		{Name: "BERTH_ENGINE_LIMITS", Value: "off"},
		{Name: "SSL_CERT_DIR", Value: "/etc/ssl/certs:" + authorities},
	}
	for _, pair := range c.Env {
		key, value, _ := strings.Cut(pair, "=")
		env = append(env, corev1.EnvVar{Name: key, Value: value})
	}
	mounts := []corev1.VolumeMount{
		{Name: "data", MountPath: dataVolume},
		{Name: "tmp", MountPath: "/tmp"},
		{Name: "given", MountPath: givenDir, ReadOnly: true},
	}
	for _, g := range f.given(orgID) {
		mounts = append(mounts, corev1.VolumeMount{Name: g.name, MountPath: g.at, ReadOnly: true})
		for _, v := range g.env {
			if !slices.Contains(env, v) {
				env = append(env, v)
			}
		}
	}
	return corev1.Container{
		Name: "runner", Image: c.Image,
		Command: []string{"/usr/local/bin/berth-runner"}, Args: []string{"--data", dataDir, "--from", givenDir},
		Env: env,
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: amount(c.CPU), corev1.ResourceMemory: amount(c.Memory)},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: amount(c.MemoryLimit)},
		},
		ReadinessProbe: &corev1.Probe{
			ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{
				Command: []string{"/usr/local/bin/berth-runner", "status", "--connected", "--data", dataDir},
			}},
			PeriodSeconds: 10, TimeoutSeconds: 10,
		},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(bool), ReadOnlyRootFilesystem: pointer(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
		VolumeMounts: mounts,
	}
}

// seen is what Decide needs to know of a pod.
func seen(p *corev1.Pod) *Pod {
	s := &Pod{
		RunnerID: p.Labels[labelRunner], Trust: p.Annotations[annotationTrust], Form: p.Annotations[annotationForm],
		Made: p.CreationTimestamp.Time,
		Over: p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded,
	}
	if p.DeletionTimestamp != nil {
		s.EndsBy = p.DeletionTimestamp.Time
	}
	for _, c := range p.Status.ContainerStatuses {
		s.Restarts += int(c.RestartCount)
	}
	return s
}

// enrolment is the digest of the secret with which a pod enrols; nil for none.
func enrolment(p *corev1.Pod) []byte {
	hash, err := hex.DecodeString(p.Annotations[annotationEnrolment])
	if err != nil {
		return nil
	}
	return hash
}

// newEnrolment makes a secret and gives its digest to the pod.
func newEnrolment(p *corev1.Pod, files map[string][]byte) (hash []byte) {
	text, hash := roster.NewSecret()
	files[fileEnrolment] = []byte(text + "\n")
	p.Annotations[annotationEnrolment] = hex.EncodeToString(hash)
	return hash
}

func scratch(size string) corev1.VolumeSource {
	return corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: pointer(amount(size))}}
}

// amount is one that New has checked, or a constant.
func amount(text string) resource.Quantity { return resource.MustParse(text) }

func digestOf(parts ...string) string {
	sum := sha256.Sum256(mustJSON(parts))
	return hex.EncodeToString(sum[:])
}

// mustJSON encodes plain structs, which always can be.
func mustJSON(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}

func pointer[T any](v T) *T { return &v }
