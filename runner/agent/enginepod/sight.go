package enginepod

import (
	"slices"
	"strings"
	"time"
)

// sight is what the API server has of an attempt.
type sight struct {
	noJob bool
	job   struct {
		Metadata meta `json:"metadata"`
		Status   struct {
			Conditions []condition `json:"conditions"`
		} `json:"status"`
	}
	pods struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
		Items []pod `json:"items"`
	}
}

type meta struct {
	UID          string `json:"uid"`
	Name         string `json:"name"`
	DeletedAt    string `json:"deletionTimestamp"`
	GraceSeconds *int64 `json:"deletionGracePeriodSeconds"`
}

type condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

type pod struct {
	Metadata meta `json:"metadata"`
	Spec     struct {
		First      []struct{} `json:"initContainers"` // of an engine with an image of its own
		Containers []struct {
			Image string `json:"image"`
		} `json:"containers"`
	} `json:"spec"`
	Status struct {
		Phase      string           `json:"phase"`
		Reason     string           `json:"reason"`
		Message    string           `json:"message"`
		Conditions []condition      `json:"conditions"`
		First      []containerState `json:"initContainerStatuses"`
		Containers []containerState `json:"containerStatuses"`
	} `json:"status"`
}

type containerState struct {
	State struct {
		Waiting    *stateOf  `json:"waiting"`
		Running    *struct{} `json:"running"`
		Terminated *stateOf  `json:"terminated"`
	} `json:"state"`
}

type stateOf struct {
	ExitCode int    `json:"exitCode"`
	Reason   string `json:"reason"`
	Message  string `json:"message"`
}

// over: all pods have ended, or there is none and nothing makes one.
func (s sight) over() bool {
	if len(s.pods.Items) == 0 {
		if s.noJob || s.job.Metadata.DeletedAt != "" {
			return true
		}
		for _, c := range s.job.Status.Conditions {
			if c.Status == "True" && (c.Type == "Failed" || c.Type == "Complete" || c.Type == "FailureTarget") {
				return true
			}
		}
		return false
	}
	for _, p := range s.pods.Items {
		if !p.ended() {
			return false
		}
	}
	return true
}

// ended: its one container has, though its node may not have tidied up yet.
func (p pod) ended() bool {
	if p.Status.Phase == "Succeeded" || p.Status.Phase == "Failed" {
		return true
	}
	return len(p.Status.Containers) == 1 && p.Status.Containers[0].State.Terminated != nil
}

func (s sight) running() bool {
	for _, p := range s.pods.Items {
		if p.Status.Phase == "Running" {
			return true
		}
	}
	return false
}

// exitCode is the engine's; the pod of one that did not begin has none.
func (s sight) exitCode() (code int, known bool) {
	for _, p := range s.pods.Items {
		for _, c := range p.Status.Containers {
			if t := c.State.Terminated; t != nil && t.ExitCode != notLaunched {
				return t.ExitCode, true
			}
		}
	}
	return 0, false
}

func (s sight) outOfMemory() bool {
	for _, p := range s.pods.Items {
		for _, c := range p.Status.Containers {
			if t := c.State.Terminated; t != nil && t.Reason == "OOMKilled" {
				return true
			}
		}
	}
	return false
}

// waits says why an engine does not begin, or did not, "" when it runs.
func (s sight) waits() string {
	for _, p := range s.pods.Items {
		for _, c := range slices.Concat(p.Status.First, p.Status.Containers) {
			switch {
			case c.State.Running != nil:
				return ""
			case c.State.Waiting != nil && c.State.Waiting.Reason != "ContainerCreating" && c.State.Waiting.Reason != "PodInitializing":
				return words(c.State.Waiting.Reason, c.State.Waiting.Message)
			case c.State.Terminated != nil && c.State.Terminated.ExitCode != 0:
				return words(c.State.Terminated.Reason, c.State.Terminated.Message)
			}
		}
		for _, c := range p.Status.Conditions {
			if c.Type == "PodScheduled" && c.Status == "False" {
				return words(c.Reason, c.Message)
			}
		}
		if p.Status.Reason != "" {
			return words(p.Status.Reason, p.Status.Message)
		}
	}
	for _, c := range s.job.Status.Conditions {
		if c.Type == "Failed" && c.Status == "True" {
			return words(c.Reason, c.Message)
		}
	}
	return ""
}

// noImage says in plain words why the image that an action asks for cannot be had,
// "" when it can or the engine has the runner's. lasting: no further try helps.
func (s sight) noImage() (why string, lasting bool) {
	for _, p := range s.pods.Items {
		if len(p.Spec.First) == 0 || len(p.Spec.Containers) == 0 {
			continue
		}
		for _, c := range p.Status.Containers {
			if c.State.Waiting != nil {
				if why, lasting = pullTrouble(p.Spec.Containers[0].Image, *c.State.Waiting); why != "" {
					return why, lasting
				}
			}
		}
	}
	return "", false
}

// pulling is how long an image could not be had, and why.
type pulling struct {
	since time.Time // zero while it can
	said  string
}

// hopeless says why the pod is given up, "" while it is worth waiting.
func (p *pulling) hopeless(s sight, now time.Time) string {
	why, lasting := s.noImage()
	switch {
	case why == "":
		*p = pulling{}
		return ""
	case p.since.IsZero():
		p.since, p.said = now, why
	case !strings.Contains(why, "Back-off"): // which may not say why
		p.said = why
	}
	if lasting || now.Sub(p.since) > pullWithin {
		return p.said
	}
	return ""
}

// pullTrouble reads what a node says of an image, in the words of containerd and
// CRI-O.
func pullTrouble(image string, waits stateOf) (why string, lasting bool) {
	if !slices.Contains([]string{"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError"}, waits.Reason) {
		return "", false
	}
	said := strings.ToLower(waits.Message)
	says := func(texts ...string) bool {
		return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(said, text) })
	}
	told := words("the node says", waits.Message)
	switch {
	case says("no match for platform", "no image found in", "no matching manifest"):
		return "image " + image + " is not made for the platform of the runner's node; " + told, true
	case says("unauthorized", "authentication required", "denied", "forbidden", "authorization failed"):
		return "the node may not pull image " + image + ": have it copied as a component, or give the runner's pod the registry's credentials; " + told, false
	case says("not found", "manifest unknown", "name unknown"):
		return "image " + image + " is not in its registry; " + told, true
	case waits.Reason == "InvalidImageName":
		return "the node does not understand the name of image " + image + "; " + told, true
	}
	return "image " + image + " cannot be pulled; " + told, false
}

func words(reason, message string) string {
	message = strings.Join(strings.Fields(message), " ")
	switch {
	case message == "":
		return reason
	case reason == "":
		return message
	}
	return reason + ": " + message
}
