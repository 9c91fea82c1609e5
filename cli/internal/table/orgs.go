package table

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// Org shows orgs.
func Org(now time.Time) output.View[ctlapi.Org] {
	return output.View[ctlapi.Org]{
		Name: func(o ctlapi.Org) string { return o.Name },
		Columns: []output.Column[ctlapi.Org]{
			{Head: "NAME", Shrinks: true, Cell: func(o ctlapi.Org) string { return o.Name }},
			{Head: "AGE", Cell: func(o ctlapi.Org) string { return age(now, o.CreatedAt) }},
			{Head: "ID", Wide: true, Cell: func(o ctlapi.Org) string { return o.ID }},
		},
	}
}

// Token shows tokens, never their secrets.
func Token(now time.Time) output.View[ctlapi.Token] {
	return output.View[ctlapi.Token]{
		Name: func(t ctlapi.Token) string { return t.ID },
		Columns: []output.Column[ctlapi.Token]{
			{Head: "ID", Cell: func(t ctlapi.Token) string { return t.ID }},
			{Head: "NAME", Shrinks: true, Cell: func(t ctlapi.Token) string { return t.Name }},
			{Head: "MEMBER", Shrinks: true, Cell: func(t ctlapi.Token) string { return t.Account.Name }},
			{Head: "PREFIX", Shrinks: true, Yields: true, Cell: func(t ctlapi.Token) string { return t.Prefix + "…" }},
			{Head: "STATE", Cell: func(t ctlapi.Token) string {
				switch {
				case t.RevokedAt != nil:
					return "revoked"
				case t.ExpiresAt != nil && t.ExpiresAt.Before(now):
					return "expired"
				}
				return "active"
			}},
			{Head: "USED", Cell: func(t ctlapi.Token) string { return ageOf(now, t.LastUsedAt) }},
			{Head: "AGE", Cell: func(t ctlapi.Token) string { return age(now, t.CreatedAt) }},
		},
	}
}

// BrowserSession shows browsers that are logged in.
func BrowserSession(now time.Time) output.View[ctlapi.BrowserSession] {
	return output.View[ctlapi.BrowserSession]{
		Name: func(s ctlapi.BrowserSession) string { return s.ID },
		Columns: []output.Column[ctlapi.BrowserSession]{
			{Head: "ID", Cell: func(s ctlapi.BrowserSession) string { return s.ID }},
			{Head: "MEMBER", Shrinks: true, Cell: func(s ctlapi.BrowserSession) string { return s.Account.Name }},
			{Head: "BROWSER", Shrinks: true, Yields: true, Cell: func(s ctlapi.BrowserSession) string { return s.UserAgent }},
			{Head: "USED", Cell: func(s ctlapi.BrowserSession) string { return age(now, s.LastUsedAt) }},
			{Head: "LEFT", Cell: func(s ctlapi.BrowserSession) string { return age(s.EndsAt, now) }},
			{Head: "AGE", Cell: func(s ctlapi.BrowserSession) string { return age(now, s.CreatedAt) }},
		},
	}
}

// Customer shows customers.
func Customer(now time.Time) output.View[ctlapi.Customer] {
	return output.View[ctlapi.Customer]{
		Name: func(x ctlapi.Customer) string { return x.Name },
		None: "no customers yet",
		Columns: []output.Column[ctlapi.Customer]{
			{Head: "NAME", Shrinks: true, Cell: func(x ctlapi.Customer) string { return x.Name }},
			{Head: "LABELS", Shrinks: true, Cell: func(x ctlapi.Customer) string { return labelText(x.Labels) }},
			{Head: "AGE", Cell: func(x ctlapi.Customer) string { return age(now, x.CreatedAt) }},
			{Head: "ID", Wide: true, Cell: func(x ctlapi.Customer) string { return x.ID }},
		},
	}
}

// Runner shows runners.
func Runner(now time.Time) output.View[ctlapi.Runner] {
	return output.View[ctlapi.Runner]{
		Name: func(r ctlapi.Runner) string { return r.ID },
		None: "no runners yet",
		Columns: []output.Column[ctlapi.Runner]{
			{Head: "ID", Cell: func(r ctlapi.Runner) string { return r.ID }},
			{Head: "NAME", Shrinks: true, Cell: func(r ctlapi.Runner) string { return r.Name }},
			{Head: "KIND", Shrinks: true, Yields: true, Cell: func(r ctlapi.Runner) string { return string(r.Kind) }},
			{Head: "STATE", Cell: func(r ctlapi.Runner) string {
				if r.State == ctlapi.RunnerStateActive && r.Online {
					return "online"
				}
				return string(r.State)
			}},
			{Head: "SWITCH", Shrinks: true, Cell: func(r ctlapi.Runner) string { return string(r.Switch) }},
			{Head: "TRUST", Shrinks: true, Yields: true, Cell: func(r ctlapi.Runner) string { return string(r.Trust) }},
			{Head: "SEEN", Cell: func(r ctlapi.Runner) string { return ageOf(now, r.LastSeenAt) }},
			{Head: "VERSION", Shrinks: true, Yields: true, Cell: func(r ctlapi.Runner) string { return r.Version }},
			{Head: "NEWEST", Shrinks: true, Yields: true, Cell: func(r ctlapi.Runner) string { return api.Value(r.NewestVersion) }},
			{Head: "PROBLEM", Shrinks: true, Cell: func(r ctlapi.Runner) string { return api.Value(r.Problem) }},
			{Head: "SWITCH SINCE", Wide: true, Cell: func(r ctlapi.Runner) string { return ageOf(now, r.SwitchSince) }},
			{Head: "SWITCH REASON", Wide: true, Cell: func(r ctlapi.Runner) string { return api.Value(r.SwitchReason) }},
			{Head: "INSTALL", Wide: true, Cell: func(r ctlapi.Runner) string { return api.Value(r.Install).Name }},
			{Head: "SLOTS", Wide: true, Cell: func(r ctlapi.Runner) string { return strconv.Itoa(r.Slots) }},
			{Head: "EPOCH", Wide: true, Cell: func(r ctlapi.Runner) string { return strconv.FormatInt(r.Epoch, 10) }},
		},
	}
}

// RunnerVersion shows the versions of the runner that are on offer.
func RunnerVersion(now time.Time) output.View[ctlapi.RunnerVersion] {
	return output.View[ctlapi.RunnerVersion]{
		Name: func(v ctlapi.RunnerVersion) string { return v.Version },
		None: "no runner version is on offer",
		Columns: []output.Column[ctlapi.RunnerVersion]{
			{Head: "VERSION", Cell: func(v ctlapi.RunnerVersion) string { return v.Version }},
			{Head: "PLATFORM", Cell: func(v ctlapi.RunnerVersion) string { return v.Platform }},
			{Head: "NAMED KEY", Shrinks: true, Cell: func(v ctlapi.RunnerVersion) string { return strings.Join(v.SignedBy, ",") }},
			{Head: "BY", Shrinks: true, Cell: func(v ctlapi.RunnerVersion) string { return v.CreatedBy }},
			{Head: "AGE", Cell: func(v ctlapi.RunnerVersion) string { return age(now, v.CreatedAt) }},
			{Head: "DIGEST", Wide: true, Cell: func(v ctlapi.RunnerVersion) string { return v.Digest }},
			{Head: "BYTES", Wide: true, Cell: func(v ctlapi.RunnerVersion) string { return strconv.FormatInt(v.SizeBytes, 10) }},
		},
	}
}

func labelText(labels map[string]string) string {
	var texts []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		texts = append(texts, key+"="+labels[key])
	}
	return strings.Join(texts, ",")
}

// Member shows the people and machines of an org.
func Member(now time.Time) output.View[ctlapi.Member] {
	return output.View[ctlapi.Member]{
		Name: func(m ctlapi.Member) string { return m.Name },
		Columns: []output.Column[ctlapi.Member]{
			{Head: "NAME", Shrinks: true, Cell: func(m ctlapi.Member) string { return m.Name }},
			{Head: "KIND", Shrinks: true, Cell: func(m ctlapi.Member) string { return string(m.Kind) }},
			{Head: "ROLES", Shrinks: true, Cell: func(m ctlapi.Member) string {
				var roles []string
				for _, grant := range m.Grants {
					role := string(grant.Role)
					if within := cmp.Or(api.Value(grant.InstallID), api.Value(grant.AppID), api.Value(grant.CustomerID)); within != "" {
						role += " in " + within
					}
					roles = append(roles, role)
				}
				return strings.Join(roles, ", ")
			}},
			{Head: "AGE", Cell: func(m ctlapi.Member) string { return age(now, m.CreatedAt) }},
			{Head: "DISABLED", Cell: func(m ctlapi.Member) string { return ageOf(now, m.DisabledAt) }},
			{Head: "ID", Wide: true, Cell: func(m ctlapi.Member) string { return m.ID }},
			{Head: "EMAIL", Wide: true, Cell: func(m ctlapi.Member) string { return api.Value(m.Email) }},
		},
	}
}
