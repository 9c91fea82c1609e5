package interpolate

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Masterminds/sprig/v3"
	"github.com/google/go-cmp/cmp"
)

// What becomes of a function of Sprig: it is given to templates as it is, in a
// version of our own, or refused for a reason.
const (
	asItIs   = "as it is"
	frozen   = "ours: the time of the step, UTC"
	stable   = "ours: the same order or answer everywhere"
	measured = "ours: looks at its arguments before it makes something large"
)

// reviewed lists every function of Sprig 3.3.0. A new version that brings one,
// or takes one away, fails the test until someone has decided on it.
var reviewed = map[string]string{}

func init() {
	for verdict, names := range map[string]string{
		asItIs: `hello duration unixEpoch
			abbrev abbrevboth trunc trim upper lower title untitle substr trimall trimAll trimSuffix trimPrefix nospace
			initials swapcase snakecase camelcase kebabcase wrap contains hasPrefix hasSuffix quote squote cat plural
			sha1sum sha256sum sha512sum adler32sum toString
			atoi int64 int float64 toDecimal toStrings
			add1 add sub div mod mul add1f addf subf divf mulf biggest max min maxf minf ceil floor round
			sortAlpha default empty coalesce all any compact mustCompact
			fromJson toJson toRawJson mustFromJson mustToJson mustToRawJson ternary deepCopy mustDeepCopy
			typeOf typeIs typeIsLike kindOf kindIs deepEqual base dir clean ext isAbs
			b64enc b64dec b32enc b32dec
			tuple list dict get set unset hasKey pluck pick omit merge mergeOverwrite mustMerge mustMergeOverwrite
			append push mustAppend mustPush prepend mustPrepend first mustFirst rest mustRest last mustLast
			initial mustInitial reverse mustReverse uniq mustUniq without mustWithout has mustHas slice mustSlice
			concat dig chunk mustChunk derivePassword decryptAES semver semverCompare fail regexQuoteMeta
			urlParse urlJoin`,
		frozen: `now date htmlDate date_in_zone dateInZone htmlDateInZone date_modify dateModify must_date_modify
			mustDateModify toDate mustToDate ago durationRound`,
		stable: `keys values osBase osClean osDir osExt osIsAbs`,
		measured: `repeat indent nindent join replace wrapWith until untilStep seq split splitList splitn
			toPrettyJson mustToPrettyJson regexMatch mustRegexMatch regexFind mustRegexFind regexFindAll mustRegexFindAll
			regexSplit mustRegexSplit regexReplaceAll mustRegexReplaceAll regexReplaceAllLiteral mustRegexReplaceAllLiteral`,
		whyNetwork:     `getHostByName`,
		whyEnvironment: `env expandenv`,
		whyRandom: `randAlphaNum randAlpha randAscii randNumeric randBytes randInt shuffle uuidv4 bcrypt htpasswd encryptAES
			genPrivateKey genCA genCAWithKey genSelfSignedCert genSelfSignedCertWithKey genSignedCert genSignedCertWithKey`,
		"it only serves the functions that make certificates": `buildCustomCert`,
	} {
		for _, name := range strings.Fields(names) {
			reviewed[name] = verdict
		}
	}
}

func TestFunctionSet(t *testing.T) {
	t.Parallel()
	all := sprig.TxtFuncMap()
	got := map[string]string{}
	for name := range all {
		got[name] = asItIs
	}
	for _, r := range refused() {
		got[r.name] = r.why
	}
	for name := range dateFunctions(time.Time{}) {
		got[name] = frozen
	}
	for name := range stableFunctions(nil) {
		if _, ok := all[name]; ok {
			got[name] = stable
		}
	}
	for name := range boundedFunctions(all, &budget{}) {
		got[name] = measured
	}
	if diff := cmp.Diff(reviewed, got); diff != "" {
		t.Errorf("functions of Sprig and what becomes of them (-reviewed +now):\n%s", diff)
	}
	for name, verdict := range reviewed {
		_, callable := functionNames[name]
		if isRefused := slices.ContainsFunc(refused(), func(r refusal) bool { return r.name == name }); callable == isRefused {
			t.Errorf("%s is %q, but callable is %v", name, verdict, callable)
		}
	}
	var own []string
	for _, name := range slices.Sorted(maps.Keys(functionNames)) {
		if _, ok := all[name]; !ok {
			own = append(own, name)
		}
	}
	want := strings.Fields("and call eq ge gt html index js le len lt ne not or print printf println urlquery")
	if diff := cmp.Diff(want, own); diff != "" {
		t.Errorf("functions next to Sprig's (-want +got):\n%s", diff)
	}
}

// TestRefusalsSay holds that a refused function says why, and that what Sprig
// itself does not call hermetic is refused or ours.
func TestRefusalsSay(t *testing.T) {
	t.Parallel()
	for _, r := range refused() {
		_, err := RenderAlways("{{ "+r.name+" }}", State{}, Options{})
		if err == nil || !strings.Contains(err.Error(), r.why) {
			t.Errorf("%s: got %v, want %q", r.name, err, r.why)
		}
	}
	hermetic := sprig.HermeticTxtFuncMap()
	for name := range sprig.TxtFuncMap() {
		if _, ok := hermetic[name]; !ok && (reviewed[name] == asItIs || reviewed[name] == measured) {
			t.Errorf("%s is not hermetic, and given to templates", name)
		}
	}
}
