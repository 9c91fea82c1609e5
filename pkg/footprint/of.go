package footprint

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/berth-dev/berth/pkg/policy"
)

const (
	// maxEntries bounds each list of a footprint: nobody reads more, and it is part of a
	// report.
	maxEntries = 100
	// maxText bounds a text of an entry, in bytes.
	maxText = 300
	// maxWords bounds a list in an entry, maxList all texts of a list, in bytes.
	maxWords = 60
	maxList  = 64 << 10
	// maxFacts bounds what is remembered while computing, per kind of fact.
	maxFacts = 50_000
)

// Of is the footprint of the change that the documents are about. Documents that cannot be
// read say nothing; rules are in doubt about those.
func Of(documents []policy.Document, known Known) Footprint {
	before, after := newFacts(), newFacts()
	for _, d := range documents {
		switch d.Form {
		case policy.FormObject:
			if d.Unchanged() {
				if o := readObject(d.Body); o != nil {
					before.object(o)
					after.object(o)
				}
				continue
			}
			before.object(readObject(d.Old))
			after.object(readObject(d.Body))
		case policy.FormPlan:
			readPlan(d.Body, before, after)
		case policy.FormPulumi:
			readPreview(d.Body, before, after)
		case policy.FormChanges:
			readChanges(d, after)
		case policy.FormImage, policy.FormScript, policy.FormRelease, policy.FormFootprint:
		}
	}
	for _, raw := range known.Before {
		before.object(readObject(raw))
	}
	for _, raw := range known.After {
		after.object(readObject(raw))
	}
	f := Footprint{
		Rights:       rightsOf(known.Uses, before.kinds),
		CloudActions: after.newActions(before),
		Grants:       after.newGrants(before),
		Exposed:      newOnes(before.exposed, after.exposed),
		Images:       after.newImages(before),
		Hosts:        newOnes(before.hosts, after.hosts),
		Unknown:      newOnes(before.unknown, after.unknown),
	}
	f.bound()
	return f
}

// facts are what is, or what will be. Each map goes from what makes two entries the same to
// the entry.
type facts struct {
	kinds   map[kindAt]bool
	actions map[string]typeUse // by type
	grants  map[grantKey]*Grant
	exposed map[string]Exposure
	images  map[string]Image
	hosts   map[string]Host
	unknown map[string]Unknown
}

// kindAt is a kind of object where it is.
type kindAt struct{ group, kind, namespace string }

func newFacts() *facts {
	return &facts{
		kinds: map[kindAt]bool{}, actions: map[string]typeUse{}, grants: map[grantKey]*Grant{},
		exposed: map[string]Exposure{}, images: map[string]Image{}, hosts: map[string]Host{}, unknown: map[string]Unknown{},
	}
}

// put keeps the first of equal entries, so that the order of the documents decides and not
// that of a map.
func put[K comparable, V any](m map[K]V, key K, v V) {
	if _, there := m[key]; !there && len(m) < maxFacts {
		m[key] = v
	}
}

func (f *facts) expose(kind ExposureKind, by, at string) {
	put(f.exposed, string(kind)+"\x00"+by+"\x00"+at, Exposure{Kind: kind, By: by, At: at})
}

func (f *facts) cannotTell(what, by string) { put(f.unknown, what, Unknown{What: what, By: by}) }

// newOnes are the entries of after that before does not have.
func newOnes[V any](before, after map[string]V) []V {
	var list []V
	for _, key := range slices.Sorted(maps.Keys(after)) {
		if _, had := before[key]; !had {
			list = append(list, after[key])
		}
	}
	return list
}

// rightsOf puts the verbs of one place together.
func rightsOf(uses []Use, had map[kindAt]bool) []Right {
	type key struct {
		place
		isNew  bool
		access Access
	}
	verbs := map[key][]string{}
	for _, u := range uses {
		k := key{place: place{u.Namespace, u.Group, u.Resource}, access: u.Access}
		k.isNew = !u.Record && !had[kindAt{u.Group, u.Kind, u.Namespace}]
		if !k.isNew && u.Access != AccessLacks || len(verbs) >= maxFacts {
			continue
		}
		verbs[k] = append(verbs[k], u.Verb)
	}
	var list []Right
	for k, v := range verbs {
		list = append(list, Right{Verbs: union(v, nil), Group: k.group, Resource: k.resource, Namespace: k.namespace, New: k.isNew, Access: k.access})
	}
	slices.SortFunc(list, func(a, b Right) int {
		// Those outside of namespaces are first: "" sorts so.
		return cmp.Or(a.place().compare(b.place()), cmp.Compare(a.Access, b.Access), strings.Compare(strings.Join(a.Verbs, " "), strings.Join(b.Verbs, " ")))
	})
	return list
}

// place is where a right holds.
type place struct{ namespace, group, resource string }

func (r Right) place() place { return place{r.Namespace, r.Group, r.Resource} }

func (p place) compare(q place) int {
	return cmp.Or(strings.Compare(p.namespace, q.namespace), strings.Compare(p.group, q.group), strings.Compare(p.resource, q.resource))
}

// newImages are those that were not used before.
func (f *facts) newImages(before *facts) []Image {
	repositories := map[string]bool{}
	for image := range before.images {
		repositories[repository(image)] = true
	}
	list := newOnes(before.images, f.images)
	for i := range list {
		list[i].KnownRepository = repositories[repository(list[i].Image)]
	}
	slices.SortStableFunc(list, func(a, b Image) int { return falseFirst(a.KnownRepository, b.KnownRepository) })
	return list
}

// repository is an image without its tag and digest.
func repository(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if colon := strings.LastIndexByte(image, ':'); colon > strings.LastIndexByte(image, '/') {
		image = image[:colon]
	}
	return image
}

func falseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// bound cuts what is too long, and counts what it cut off. Each list has room of its own, so
// that no other one can take it.
func (f *Footprint) bound() {
	f.Rights = cutList(f, f.Rights, func(r *Right) ([]*string, []*[]string) {
		return []*string{&r.Group, &r.Resource, &r.Namespace}, []*[]string{&r.Verbs}
	})
	f.CloudActions = cutList(f, f.CloudActions, func(c *CloudActions) ([]*string, []*[]string) {
		return []*string{&c.Type, &c.By}, []*[]string{&c.Actions}
	})
	f.Grants = cutList(f, f.Grants, func(g *Grant) ([]*string, []*[]string) {
		return []*string{&g.By, &g.What, &g.Scope}, []*[]string{&g.Actions, &g.To}
	})
	f.Exposed = cutList(f, f.Exposed, func(e *Exposure) ([]*string, []*[]string) { return []*string{&e.By, &e.At}, nil })
	f.Images = cutList(f, f.Images, func(i *Image) ([]*string, []*[]string) { return []*string{&i.Image, &i.By}, nil })
	f.Hosts = cutList(f, f.Hosts, func(h *Host) ([]*string, []*[]string) { return []*string{&h.Host, &h.By}, nil })
	f.Unknown = cutList(f, f.Unknown, func(u *Unknown) ([]*string, []*[]string) { return []*string{&u.What, &u.By}, nil })
}

// cutList keeps the first entries of a list; parts are the texts of an entry, and its lists.
func cutList[T any](f *Footprint, list []T, parts func(*T) ([]*string, []*[]string)) []T {
	left := maxList
	for i := range list {
		texts, words := parts(&list[i])
		for _, list := range words {
			if len(*list) > maxWords {
				f.LeftOut += len(*list) - maxWords
				*list = (*list)[:maxWords]
			}
			for i := range *list {
				texts = append(texts, &(*list)[i])
			}
		}
		for _, text := range texts {
			*text = cut(*text)
			left -= len(*text)
		}
		if i == maxEntries || left < 0 {
			f.LeftOut += len(list) - i
			return list[:i]
		}
	}
	return list
}

func cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	end := maxText - len("…")
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

// union is both lists, sorted, each word once.
func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// decode reads JSON; nil for what is none.
func decode(raw []byte) any {
	var v any
	if len(raw) == 0 || json.Unmarshal(raw, &v) != nil {
		return nil
	}
	return v
}
