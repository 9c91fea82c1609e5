package enginepod

import "strings"

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
	Status   struct {
		Phase      string      `json:"phase"`
		Reason     string      `json:"reason"`
		Message    string      `json:"message"`
		Conditions []condition `json:"conditions"`
		Containers []struct {
			State struct {
				Waiting    *stateOf  `json:"waiting"`
				Running    *struct{} `json:"running"`
				Terminated *stateOf  `json:"terminated"`
			} `json:"state"`
		} `json:"containerStatuses"`
	} `json:"status"`
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
		for _, c := range p.Status.Containers {
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
