package consent

import (
	"crypto/ed25519"
	"fmt"
	"slices"

	"github.com/berth-dev/berth/pkg/capsule"
)

// Mode is what the customer's side wants to be asked.
type Mode string

// The modes.
const (
	// ModeVendor asks for what a guardrail asks for. It is the one without a setting.
	ModeVendor Mode = "vendor"
	// ModeRules asks for what no standing rule covers.
	ModeRules Mode = "rules"
	// ModeEach asks for each change.
	ModeEach Mode = "each"
)

// Machine is the holder of an install that names none: the person who works on the runner's own
// command line as the agent's user signs with the machine's key.
const Machine = "machine key"

// Config is the part of trust.json that says whose consent counts.
type Config struct {
	Mode    Mode     `json:"mode"`
	Holders []Holder `json:"holders,omitempty"`
	// Need is how many holders have to agree, 1 when it is left out.
	Need int `json:"need,omitempty"`
}

// Holder is a person, or a group that shares a key.
type Holder struct {
	Name string `json:"name"`
	// Keys are lines of authorized_keys, or Ed25519 keys in base64 or PEM.
	Keys []string `json:"keys"`
	// Accounts are this person's names at the vendor: what one of them asked for, this
	// holder does not approve.
	Accounts []string `json:"accounts,omitempty"`
}

// Panel is a Config that was read: who may sign, and how many have to.
type Panel struct {
	Mode    Mode
	Need    int
	Holders []Seat
}

// Seat is a holder with parsed keys.
type Seat struct {
	Name     string
	Keys     []Key
	Accounts []string
}

const maxHolders = 20 // as many as a report may name

// Read checks a configuration. machine is the key of this machine, which stands in where
// no holders are named; vendor are keys that may be nobody's here.
func (c Config) Read(machine ed25519.PublicKey, vendor []ed25519.PublicKey) (Panel, error) {
	p := Panel{Mode: c.Mode, Need: max(c.Need, 1)}
	switch c.Mode {
	case "":
		p.Mode = ModeVendor
	case ModeVendor:
	case ModeRules, ModeEach:
		if len(c.Holders) == 0 {
			return Panel{}, fmt.Errorf("consent: mode %s needs holders, each with a name and keys", c.Mode)
		}
	default:
		return Panel{}, fmt.Errorf("consent: mode %.40q is not vendor, rules or each", c.Mode)
	}
	if c.Need < 0 || len(c.Holders) > maxHolders {
		return Panel{}, fmt.Errorf("consent: need is %d and there are %d holders, at most %d", c.Need, len(c.Holders), maxHolders)
	}
	if len(c.Holders) == 0 {
		if c.Need > 1 {
			return Panel{}, fmt.Errorf("consent: need is %d, and no holders are named", c.Need)
		}
		p.Holders = []Seat{{Name: Machine, Keys: []Key{{ID: capsule.KeyID(machine), raw: machine}}}}
		return p, nil
	}
	if p.Need > len(c.Holders) {
		return Panel{}, fmt.Errorf("consent: need is %d, and there are %d holders", p.Need, len(c.Holders))
	}
	owner := map[string]string{}
	for _, h := range c.Holders {
		seat, err := h.read()
		if err != nil {
			return Panel{}, err
		}
		if slices.ContainsFunc(p.Holders, func(s Seat) bool { return s.Name == h.Name }) {
			return Panel{}, fmt.Errorf("consent: two holders are named %q", h.Name)
		}
		for i, key := range seat.Keys {
			if of, taken := owner[key.material()]; taken {
				return Panel{}, fmt.Errorf("consent: key %d of holder %q is also of holder %q", i+1, h.Name, of)
			}
			owner[key.material()] = h.Name
			if slices.ContainsFunc(vendor, key.Is) {
				return Panel{}, fmt.Errorf("consent: key %d of holder %q is a key of the vendor's", i+1, h.Name)
			}
		}
		p.Holders = append(p.Holders, seat)
	}
	return p, nil
}

func (h Holder) read() (Seat, error) {
	if h.Name == "" || len(h.Name) > 100 || h.Name == Machine {
		return Seat{}, fmt.Errorf("consent: a holder needs a name of at most 100 bytes, other than %q", Machine)
	}
	if len(h.Keys) == 0 {
		return Seat{}, fmt.Errorf("consent: holder %q has no keys", h.Name)
	}
	seat := Seat{Name: h.Name, Accounts: h.Accounts}
	for i, text := range h.Keys {
		key, err := ParseKey(text)
		if err != nil {
			return Seat{}, fmt.Errorf("consent: key %d of holder %q: %w", i+1, h.Name, err)
		}
		seat.Keys = append(seat.Keys, key)
	}
	return seat, nil
}

// Keys are the keys of all holders.
func (p Panel) Keys() (keys []Key) {
	for _, s := range p.Holders {
		keys = append(keys, s.Keys...)
	}
	return keys
}

// ByMachine says whether the machine's key stands in for holders.
func (p Panel) ByMachine() bool { return len(p.Holders) == 1 && p.Holders[0].Name == Machine }

// holder is who has a key.
func (p Panel) holder(keyID string) (Seat, bool) {
	for _, s := range p.Holders {
		if slices.ContainsFunc(s.Keys, func(k Key) bool { return k.ID == keyID }) {
			return s, true
		}
	}
	return Seat{}, false
}

// Holder is the name of who has a key.
func (p Panel) Holder(keyID string) (name string, known bool) {
	s, known := p.holder(keyID)
	return s.Name, known
}
