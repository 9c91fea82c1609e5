package deploy

import "slices"

// The kinds of volume that the Pod Security level restricted lets in.
var volumeKinds = []string{"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}

// Users and groups below it may be those of the node.
const leastID = 10000

// restrictedFaults are what the Pod Security level restricted and the like say of
// a pod beyond what podFaults and containerFaults do.
func restrictedFaults(pod podSpec, say func(string, ...any)) {
	s := pod.SecurityContext
	if s.RunAsUser < leastID || s.RunAsGroup < leastID {
		say("wants a user and a group from %d on: lower numbers may be those of the node", leastID)
	}
	if len(s.Sysctls) > 0 || s.SELinuxOptions != nil || s.AppArmorProfile != nil {
		say("changes sysctls, SELinux or AppArmor")
	}
	if pod.ShareProcessNamespace {
		say("lets its containers see each other's processes")
	}
	if pod.ServiceAccount != "" {
		say("uses the old field serviceAccount")
	}
	for _, v := range pod.Volumes {
		for kind, of := range v {
			if kind == "name" {
				continue
			}
			if !slices.Contains(volumeKinds, kind) {
				say("volume %s is of the kind %s", v.name(), kind)
			}
			if settings, _ := of.(map[string]any); kind == "emptyDir" && settings["sizeLimit"] == nil {
				say("volume %s can fill the node: set sizeLimit", v.name())
			}
		}
	}
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		restrictedContainerFaults(c, say)
	}
}

func restrictedContainerFaults(c container, say func(string, ...any)) {
	s := c.SecurityContext
	if s.Privileged || s.ProcMount != "" && s.ProcMount != "Default" || s.SELinuxOptions != nil || s.AppArmorProfile != nil {
		say("%s is privileged, or changes /proc, SELinux or AppArmor", c.Name)
	}
	if s.RunAsNonRoot != nil && !*s.RunAsNonRoot || s.SeccompProfile.Type != "" && s.SeccompProfile.Type != "RuntimeDefault" {
		say("%s takes back what its pod says of users or seccomp", c.Name)
	}
	const unprivileged = 1024
	for _, p := range c.Ports {
		if p.HostPort != 0 || p.ContainerPort < unprivileged {
			say("%s has a port of the node, or one below %d", c.Name, unprivileged)
		}
	}
	seen := map[string]bool{}
	for _, e := range c.Env {
		if seen[e.Name] {
			say("%s: the variable %s is there twice", c.Name, e.Name)
		}
		seen[e.Name] = true
	}
}
