package table

import (
	"strconv"
	"strings"
	"time"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// InstallSecret shows what is known of the secrets of an install.
func InstallSecret(now time.Time) output.View[ctlapi.InstallSecret] {
	return output.View[ctlapi.InstallSecret]{
		Name: func(s ctlapi.InstallSecret) string { return s.Name },
		None: "the app asks for no secrets",
		Columns: []output.Column[ctlapi.InstallSecret]{
			{Head: "NAME", Shrinks: true, Cell: func(s ctlapi.InstallSecret) string { return s.Name }},
			{Head: "VALUE", Cell: secretValue},
			{Head: "VERSION", Cell: func(s ctlapi.InstallSecret) string { return strconv.Itoa(s.Version) }},
			{Head: "BY", Cell: func(s ctlapi.InstallSecret) string { return api.Value(s.SetBy) }},
			{Head: "AGE", Cell: func(s ctlapi.InstallSecret) string {
				if s.SetAt == nil {
					return ""
				}
				return age(now, *s.SetAt)
			}},
			{Head: "USED BY", Shrinks: true, Cell: secretUses},
			{Head: "COPIED TO", Wide: true, Shrinks: true, Cell: secretCopies},
			{Head: "DIGEST", Wide: true, Cell: func(s ctlapi.InstallSecret) string { return api.Value(s.Digest) }},
			{Head: "DESCRIPTION", Wide: true, Cell: func(s ctlapi.InstallSecret) string { return api.Value(s.Description) }},
		},
	}
}

func secretValue(s ctlapi.InstallSecret) string {
	switch {
	case s.Set && !s.Declared:
		return "left over"
	case s.Set:
		return "set"
	case s.Needed:
		return "missing"
	}
	return "not set"
}

// secretCopies says where a secret is in the cluster, with the version where that is another
// one.
func secretCopies(s ctlapi.InstallSecret) string {
	var copies []string
	for _, c := range s.Copies {
		text := c.Namespace + "/" + c.Name + ":" + c.Key
		if c.Behind {
			text += " (version " + strconv.Itoa(c.Version) + ")"
		}
		copies = append(copies, text)
	}
	return strings.Join(copies, ", ")
}

// secretUses names what uses a secret, with the version where that is another one.
func secretUses(s ctlapi.InstallSecret) string {
	var uses []string
	for _, use := range s.UsedBy {
		text := use.Name
		if use.Behind {
			text += " (version " + strconv.Itoa(use.Version) + ")"
		}
		uses = append(uses, text)
	}
	return strings.Join(uses, ", ")
}
