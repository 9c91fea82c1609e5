package chain

import "encoding/json"

// maxScripts is the longest list of scripts in a record, in bytes of JSON: a line
// has room for more, so that the rest of it always fits.
const maxScripts = 128 << 10

// Scripts is what the acceptance of a release's scripts is about. The intent names
// the release. The outcome of one that succeeded also lists all scripts that the
// writer may run from then on, so that another machine that goes on with the chain
// knows them too.
type Scripts struct {
	ReleaseID string `json:"release_id,omitempty"`
	Release   int    `json:"release,omitempty"` // its number
	// Manifest is the digest of all that the release brings.
	Manifest string `json:"manifest,omitempty"`
	// Version is how often the list was replaced.
	Version int64 `json:"version,omitempty"`
	// Count is the length of List, also when List was left out for its size.
	Count int              `json:"count,omitempty"`
	List  []AcceptedScript `json:"list,omitempty"`
}

// AcceptedScript names one script by its digest, with all that the digest covers
// but the text.
type AcceptedScript struct {
	Digest         string   `json:"digest"`
	Name           string   `json:"name"`
	Inputs         []string `json:"inputs,omitempty"`
	Cron           string   `json:"cron,omitempty"`
	Role           string   `json:"role,omitempty"`
	TimeoutSeconds int      `json:"timeout_seconds,omitempty"`
	ReadOnly       bool     `json:"read_only,omitempty"`
	HealthCheck    bool     `json:"health_check,omitempty"`
	Unattended     bool     `json:"unattended,omitempty"`
	BreakGlassRole string   `json:"break_glass_role,omitempty"`
	WhenRoleIsOff  bool     `json:"when_role_is_off,omitempty"`
	// Heals says about which checks it runs by itself, and how often at most.
	Heals []string `json:"heals,omitempty"`
	// Kept: the release does not bring it, but settings still schedule it.
	Kept bool `json:"kept,omitempty"`
}

// Fitting leaves out a list that is too long for a record.
func (s Scripts) Fitting() Scripts {
	s.Count = len(s.List)
	if raw, err := json.Marshal(s.List); err != nil || len(raw) > maxScripts {
		s.List = nil
	}
	return s
}

// Whole reports whether the list was not left out.
func (s Scripts) Whole() bool { return s.Count == len(s.List) }
