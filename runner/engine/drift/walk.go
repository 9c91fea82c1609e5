package drift

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/runner/engine/kube"
)

// maxDifferences is how many differences of one object are listed.
const maxDifferences = 500

// three are the values of one field: as the release wants it, as it is, and as
// an apply would make it. nil is absent, as for the API server.
type three struct{ want, live, tried any }

// step is the end of a path, with what comes before it.
type step struct {
	before *step
	end    string
}

func (s *step) String() string {
	var ends []string
	for ; s != nil; s = s.before {
		ends = append(ends, s.end)
	}
	slices.Reverse(ends)
	return strings.TrimPrefix(strings.Join(ends, ""), ".")
}

// walker compares one object.
type walker struct {
	*managed
	ref      kube.Ref
	isTried  bool
	releases releases
	secrets  Secrets
	hint     string // who wrote last, for what leaves no trace
	untried  string // why there is no dry run
	out      []Difference
	more     int
}

// field is one with its node, its owners, and who owns all that is below it.
type field struct {
	path *step
	n    *node
	own  owners
	over owners
}

func (f field) next(end string) field {
	below := field{path: &step{f.path, end}, n: f.n.at(end), own: f.over, over: f.over}
	if below.n != nil {
		below.own, below.over = f.over|below.n.own, f.over|below.n.whole
	}
	return below
}

// walk compares a field and all that is below it.
func (w *walker) walk(f field, v three, depth int) {
	switch {
	case v.want == nil && v.live == nil && v.tried == nil:
	case v.live == nil:
		w.missing(f, v)
	case depth < maxDepth && w.fields(f, v, depth):
	case depth < maxDepth && w.items(f, v, depth):
	default:
		w.leaf(f, v)
	}
}

// fields compares tables; false when not all that are there are tables.
func (w *walker) fields(f field, v three, depth int) bool {
	want, live, tried, ok := typed[map[string]any](v)
	if !ok || len(live) == 0 && len(want) == 0 && len(tried) == 0 {
		return false
	}
	if w.isTried && v.tried == nil && v.want == nil {
		return false // an apply would remove all of it
	}
	names := map[string]bool{}
	for _, table := range []map[string]any{want, live, tried} {
		for name := range table {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		w.walk(f.next("."+name), three{want[name], live[name], tried[name]}, depth+1)
	}
	return true
}

// typed are the values as what they all have to be.
func typed[T any](v three) (want, live, tried T, ok bool) {
	is := func(v any) (as T, ok bool) {
		if v == nil {
			return as, true
		}
		as, ok = v.(T)
		return as, ok
	}
	want, isWant := is(v.want)
	live, isLive := is(v.live)
	tried, isTried := is(v.tried)
	return want, live, tried, isWant && isLive && isTried
}

// items compares lists whose items are told apart by keys or are values; false
// for any other list.
func (w *walker) items(f field, v three, depth int) bool {
	want, live, tried, ok := typed[[]any](v)
	if !ok || len(live) == 0 {
		return false
	}
	if w.isTried && v.tried == nil && v.want == nil {
		return false
	}
	var keys []string
	isSet := false
	switch {
	case f.n != nil && (f.n.keys != nil || f.n.set):
		keys, isSet = f.n.keys, f.n.keys == nil
	case f.own == 0:
		keys = []string{"name"} // nobody owns it, so nobody says how it is told apart
	default:
		return false
	}
	hasTried, okTried := byKey(tried, keys, isSet)
	hasLive, okLive := byKey(live, keys, isSet)
	hasWant, okWant := likely(want, keys, isSet, hasLive, hasTried)
	if !okTried || !okLive || !okWant {
		return false
	}
	ends := map[string]bool{}
	for _, has := range []map[string]any{hasLive, hasTried, hasWant} {
		for end := range has {
			ends[end] = true
		}
	}
	for _, end := range slices.Sorted(maps.Keys(ends)) {
		w.item(f.next(end), three{hasWant[end], hasLive[end], hasTried[end]}, depth+1)
	}
	return true
}

// item compares one item: one that is all of one owner is shown as a whole.
func (w *walker) item(f field, v three, depth int) {
	uniform := f.n.all()&^f.own == 0
	if v.want == nil && v.live != nil && uniform && (!w.isTried || same(v.live, v.tried, depth)) {
		w.leaf(f, v)
		return
	}
	w.walk(f, v, depth)
}

// byKey are the items of a list by the ends of their paths; false when they
// cannot all be told apart.
func byKey(list []any, keys []string, isSet bool) (map[string]any, bool) {
	has := make(map[string]any, len(list))
	for _, item := range list {
		end, ok := endOf(item, keys, isSet)
		if _, twice := has[end]; !ok || twice {
			return nil, false
		}
		has[end] = item
	}
	return has, true
}

func endOf(item any, keys []string, isSet bool) (string, bool) {
	if isSet {
		value, ok := scalar(item)
		return "[=" + value + "]", ok
	}
	table, ok := item.(map[string]any)
	if !ok {
		return "", false
	}
	return keyOf(table, keys)
}

// likely is byKey for what the release wants: it may leave out fields of a key
// that have a default, such as the protocol of a port. Such an item is the first
// one in the cluster that has what it names and that no other item is.
func likely(list []any, keys []string, isSet bool, in ...map[string]any) (map[string]any, bool) {
	has := make(map[string]any, len(list))
	var partly []map[string]any
	for _, item := range list {
		end, ok := endOf(item, keys, isSet)
		table, isTable := item.(map[string]any)
		if !ok && isTable && end != "" {
			partly = append(partly, table)
			continue
		}
		if _, twice := has[end]; !ok || twice {
			return nil, false
		}
		has[end] = item
	}
	for _, item := range partly {
		end := ""
		for _, there := range in {
			for _, candidate := range slices.Sorted(maps.Keys(there)) {
				table, _ := there[candidate].(map[string]any)
				if _, taken := has[candidate]; end == "" && !taken && agrees(item, table, keys) {
					end = candidate
				}
			}
		}
		if end == "" {
			if end, _ = keyOf(item, keys); has[end] != nil {
				return nil, false
			}
		}
		has[end] = item
	}
	return has, true
}

// agrees tells whether a table has what item says of its key.
func agrees(item, table map[string]any, keys []string) bool {
	for _, key := range keys {
		if item[key] != nil && !same(item[key], table[key], 0) {
			return false
		}
	}
	return true
}

// missing is about a field that is not there.
func (w *walker) missing(f field, v three) {
	switch {
	case !w.isTried && isEmpty(v.want):
	case !w.isTried:
		w.add(f, v, Difference{What: Removed, Class: Unknown, Why: "it is missing, and without a dry run" + w.untried + " it is not known whether the cluster keeps it" + w.hint})
	case v.tried == nil && isEmpty(v.want):
	case v.tried == nil:
		w.add(f, v, Difference{What: Rewritten, Class: Defaulted, Why: "the cluster does not keep it"})
	case v.want == nil:
		w.add(f, v, Difference{What: Removed, Class: Defaulted, Why: "an apply would fill it: a default, or an admission webhook"})
	default:
		w.add(f, v, w.unowned(Removed, "nobody in managedFields explains that it is missing"+w.hint))
	}
}

// leaf is about a field that is there and has nothing to look into.
func (w *walker) leaf(f field, v three) {
	others := f.own &^ w.berth
	if f.n != nil && v.want == nil {
		others |= f.n.all() &^ w.berth
	}
	if d, ok := w.toNothing(f, v); ok {
		w.add(f, v, d)
		return
	}
	if !w.isTried {
		switch {
		case v.want == nil:
			w.added(f, v, others)
		case same(v.want, v.live, 0):
		case others != 0:
			w.add(f, v, w.owned(Changed, others))
		default:
			w.add(f, v, Difference{What: Changed, Class: Unknown, Why: "without a dry run" + w.untried + " it is not known whether the cluster writes it in this form"})
		}
		return
	}
	switch {
	case v.tried == nil:
		w.add(f, v, w.unowned(Left, "an apply would remove it: Berth applied it, and the release no longer has it"))
	case same(v.live, v.tried, 0):
		if v.want == nil {
			w.added(f, v, others)
		} else if !same(v.want, v.live, 0) {
			w.add(f, v, Difference{What: Rewritten, Class: Defaulted, Why: "the cluster makes this of it: another form of the same, or an admission webhook"})
		}
	case others != 0:
		w.add(f, v, w.owned(Changed, others))
	case v.want == nil:
		w.add(f, v, Difference{What: Changed, Class: Defaulted, Why: "the release does not set it, and an apply would fill it differently: a default, or an admission webhook"})
	default:
		w.add(f, v, w.unowned(Changed, "nobody but Berth owns it in managedFields"))
	}
}

// toNothing is about replicas that nobody owns and that are 0. Who asks for a scale of 0
// leaves no name: a Scale without a count has no field to own, so the API server takes the
// field from its owners and gives it to nobody. Nothing else does that to an object that
// has owners, and no default of these kinds is 0. Where the release leaves the count to
// others, it may well be an autoscaler.
func (w *walker) toNothing(f field, v three) (Difference, bool) {
	count, _ := scalar(v.live)
	scaled := w.ref.Group == "apps" && f.path.String() == "spec.replicas" && count == "0" && !same(v.want, v.live, 0)
	if !scaled || f.own != 0 || w.berth == 0 || w.broken != "" {
		return Difference{}, false
	}
	d := Difference{What: Changed, Class: HumanEdit, Why: "scaled to nothing, which leaves no name: kubectl scale, or an autoscaler that goes down to zero"}
	if v.want == nil {
		d.What, d.Class = Added, Unknown
	}
	return d, true
}

// added is about a field that the release does not set.
func (w *walker) added(f field, v three, others owners) {
	d := Difference{What: Added, Class: Defaulted}
	switch {
	case others != 0:
		d = w.owned(Added, others)
	case f.own&w.applied != 0 && !w.isTried:
		d.What, d.Class, d.Why = Left, Real, "Berth applied it, and the release no longer has it"
	case w.broken != "":
		d.Class, d.Why = Unknown, w.broken
	case f.own != 0:
		d.Why = "filled in a request of Berth's: a default, or an admission webhook"
	default:
		d.Why = "nobody set it: a default of the API server, or an admission webhook"
	}
	w.add(f, v, d)
}

// unowned is a difference that no other manager owns.
func (w *walker) unowned(what What, why string) Difference {
	if w.broken != "" {
		return Difference{What: what, Class: Unknown, Why: w.broken}
	}
	return Difference{What: what, Class: Real, Why: why}
}

// owned is a difference in a field that others than Berth own: the worst of
// them counts, of equals the one that wrote last.
func (w *walker) owned(what What, others owners) Difference {
	d := Difference{What: what}
	w.each(others, func(e entry) {
		class, why := w.judge(e, w.releases)
		better := slices.Index(classes, class) - slices.Index(classes, d.Class)
		if d.Class == "" || better < 0 || better == 0 && later(e.time, d.Time) {
			d.Class, d.Manager, d.Time, d.Why = class, e.manager, e.time, why
		}
	})
	return d
}

func later(a, b *time.Time) bool { return a != nil && (b == nil || a.After(*b)) }

func (w *walker) add(f field, v three, d Difference) {
	if len(w.out) == maxDifferences {
		w.more++
		return
	}
	path := f.path.String()
	want := v.want
	if v.tried != nil && (want != nil || d.What == Removed || d.What == Changed) && d.What != Rewritten {
		want = v.tried
	}
	d.Path = w.secrets.path(path)
	d.Want, d.Have = w.secrets.value(w.ref, path, want), w.secrets.value(w.ref, path, v.live)
	w.out = append(w.out, d)
}

func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}

// same compares JSON: numbers by value, null as absent. What is deeper than
// anything that is real counts as different.
func same(a, b any, depth int) bool {
	if depth > 10*maxDepth {
		return false
	}
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			return false
		}
		for key, value := range x {
			if !same(value, y[key], depth+1) {
				return false
			}
		}
		for key, value := range y {
			if x[key] == nil && value != nil {
				return false
			}
		}
		return true
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !same(x[i], y[i], depth+1) {
				return false
			}
		}
		return true
	case nil:
		return b == nil
	}
	one, isOne := scalar(a)
	two, isTwo := scalar(b)
	return isOne && isTwo && one == two
}
