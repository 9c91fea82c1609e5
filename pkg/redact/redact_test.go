package redact_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"html"
	"html/template"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/redact"
)

func named(pairs ...string) *redact.Set {
	s := redact.New()
	for i := 0; i < len(pairs); i += 2 {
		s.Add([]byte(pairs[i+1]), pairs[i])
	}
	return s
}

func TestString(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		set  *redact.Set
		in   string
		want string
	}{
		{"no secrets", redact.New(), "nothing to hide", "nothing to hide"},
		{"empty text", named("a", "swordfish"), "", ""},
		{"raw", named("pw", "swordfish"), "pw=swordfish;", "pw=(redacted:pw);"},
		{"without a name", redact.New([]byte("swordfish")), "swordfish swordfish", "(redacted) (redacted)"},
		{"side by side", named("", "swordfish"), "swordfishswordfish", "(redacted)(redacted)"},
		{"short values stay", named("pw", "true"), "it is true", "it is true"},
		{"eight bytes are enough", named("pw", "12345678"), "a12345678b", "a(redacted:pw)b"},
		{"only the beginning", named("pw", "swordfish"), "swordfis", "swordfis"},
		{"beginning, then all of it", named("pw", "swordfish"), "swordswordfish", "sword(redacted:pw)"},
		{"longest first", named("short", "hunter22", "long", "hunter22-and-more"), "hunter22-and-more", "(redacted:long)"},
		{"shorter when the longer breaks off", named("short", "hunter22", "long", "hunter22-and-more"), "hunter22-and-mor!", "(redacted:short)-and-mor!"},
		{"shorter inside the longer", named("short", "hunter22", "long", "my-hunter22-and"), "my-hunter22-and", "(redacted:long)"},
		{"shorter in a broken longer", named("short", "hunter22", "long", "my-hunter22-and"), "my-hunter22-an", "my-(redacted:short)-an"},
		{"overlapping leave nothing", named("a", "abcdefgh", "b", "efghijklm"), "x abcdefghijklm y", "x (redacted:b) y"},
		{"overlapping with itself", named("", "aaaaaaaa"), strings.Repeat("a", 100), "(redacted)"},
		{"several lines as one", named("pem", "first line\nsecond line\n"), ">first line\nsecond line\n<", ">(redacted:pem)<"},
		{"several lines, one by one", named("pem", "first line\nsecond line\n"), "  first line\n  second line", "  (redacted:pem)\n  (redacted:pem)"},
		{"several lines, other line ends", named("pem", "first\nsecond"), "first\r\nsecond", "(redacted:pem)"},
		{"rulers of PEM stay", named("key", "-----BEGIN KEY-----\nMC4CAQAwBQYD\n-----END KEY-----\n"), "-----BEGIN KEY-----\nx", "-----BEGIN KEY-----\nx"},
		{"secret stored with a line feed", named("pw", "swordfish\n"), "pw=swordfish", "pw=(redacted:pw)"},
		{"not UTF-8", redact.New([]byte("\xff\xfe\x00\x01\x02\x03\x04\x05")), "a\xff\xfe\x00\x01\x02\x03\x04\x05b", "a(redacted)b"},
		{
			name: "keys of a configuration that only open a block are no secrets", set: named("cfg", "global:\n  receivers:\n    - password: hunter22\n  inhibit_rules:\n\n  - swordfish\n"),
			in: "receivers: and inhibit_rules: of password: hunter22, - swordfish", want: "receivers: and inhibit_rules: of password: hunter22, (redacted:cfg)",
		},
		{
			name: "lines that end in a colon otherwise are", set: named("codes", "first-half:\nsecond-half:\n"),
			in: "first-half: second-half:", want: "(redacted:codes) (redacted:codes)",
		},
		{
			name: "also where the next line is deeper, unless it is a plain key", set: named("codes", "p@ssword:\n  second-half:\n"),
			in: "p@ssword: second-half:", want: "(redacted:codes) (redacted:codes)",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, tt.set.String(tt.in)); diff != "" {
				t.Errorf("String(%q) (-want +got):\n%s", tt.in, diff)
			}
		})
	}
}

// secrets are values with everything that escapes look at.
var secrets = []string{
	"swordfish",
	"p@ss w0rd/+&=?#%",
	`quo"te's \back\slash $HOME ` + "`cmd`!",
	"<html> & 'more' / ünïcödé ☃",
	"tab\tand\nlines\nof some length here\r\nend of it",
	strings.Repeat("0123456789abcdef", 40),
}

// spellings are made here with the encoders of others, as a tool would.
func spellings(secret string) map[string]string {
	quoted, _ := json.Marshal(secret)
	nested, _ := json.Marshal(string(quoted))
	b64 := base64.StdEncoding.EncodeToString
	return map[string]string{
		"raw":             secret,
		"hex":             hex.EncodeToString([]byte(secret)),
		"HEX":             strings.ToUpper(hex.EncodeToString([]byte(secret))),
		"base64":          b64([]byte(secret)),
		"base64 raw url":  base64.RawURLEncoding.EncodeToString([]byte(secret)),
		"query":           url.QueryEscape(secret),
		"path":            url.PathEscape(secret),
		"json":            string(quoted),
		"json in json":    string(nested),
		"go":              strconv.Quote(secret),
		"single quotes":   "'" + strings.ReplaceAll(secret, "'", `'\''`) + "'",
		"basic auth 0":    b64([]byte("abc" + secret + "xyz")),
		"basic auth 1":    b64([]byte("abcd" + secret + "xyz")),
		"basic auth 2":    b64([]byte("abcde" + secret + "xyz")),
		"url basic 1":     base64.URLEncoding.EncodeToString([]byte("u" + secret)),
		"wrapped base64":  wrap(b64([]byte(secret)), 76),
		"wrapped as PEM":  wrap(b64([]byte(secret)), 64),
		"inside a string": "x" + secret + "y",
		"html":            html.EscapeString(secret),
		"html in json":    inJSON(html.EscapeString(secret)),
		"xml":             inXML(secret),
		"template":        inTemplate(`<p>{{.}}</p>`, secret),
		"attribute":       inTemplate(`<a title="{{.}}">`, secret),
		"bare attribute":  inTemplate(`<a title={{.}}>`, secret),
		"script":          inTemplate(`<script>x="{{.}}"</script>`, secret),
		"named entities":  entities("&quot;", "&apos;").Replace(secret),
		"python":          entities("&quot;", "&#x27;").Replace(secret),
		"php":             entities("&quot;", "&#039;").Replace(secret),
		"decimal":         strings.NewReplacer("&", "&#38;", "<", "&#60;", ">", "&#62;", `"`, "&#34;", "'", "&#39;").Replace(secret),
		"hexadecimal":     strings.NewReplacer("&", "&#x26;", "<", "&#x3c;", ">", "&#x3e;", `"`, "&#x22;", "'", "&#x27;").Replace(secret),
		"HEXADECIMAL":     strings.NewReplacer("&", "&#x26;", "<", "&#x3C;", ">", "&#x3E;", `"`, "&#x22;", "'", "&#x27;").Replace(secret),
	}
}

// entities writes quotes as is said, the rest by name.
func entities(quote, apostrophe string) *strings.Replacer {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, quote, "'", apostrophe)
}

func inJSON(text string) string {
	quoted, _ := json.Marshal(text)
	return string(quoted)
}

func inXML(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text))
	return b.String()
}

func inTemplate(source, text string) string {
	var b strings.Builder
	if err := template.Must(template.New("").Parse(source)).Execute(&b, text); err != nil {
		panic(err)
	}
	return b.String()
}

func wrap(s string, width int) string {
	var b strings.Builder
	for len(s) > width {
		b.WriteString(s[:width] + "\n")
		s = s[width:]
	}
	return b.String() + s
}

// hidden fails when a piece of the secret's spelling is left in out. Pieces of
// 12 characters are long enough not to be there by chance.
func hidden(t *testing.T, form, spelling, out string) {
	t.Helper()
	const piece = 12
	if !strings.Contains(out, "(redacted") {
		t.Errorf("%s: nothing was replaced in %.200q", form, out)
	}
	clean := strings.NewReplacer("\n", "", "\r", "").Replace(spelling)
	for i := 0; i+piece <= len(clean); i++ {
		if strings.Contains(out, clean[i:i+piece]) {
			t.Errorf("%s: %q is left in %.200q", form, clean[i:i+piece], out)
			return
		}
	}
}

func TestAllForms(t *testing.T) {
	t.Parallel()
	for _, secret := range secrets {
		set := redact.New([]byte(secret))
		for form, spelling := range spellings(secret) {
			hidden(t, fmt.Sprintf("%.12q as %s", secret, form), spelling, set.String("before "+spelling+" after"))
		}
	}
}

// plain drops the names from replacements.
func plain(s string) string {
	for i := range secrets {
		s = strings.ReplaceAll(s, "(redacted:s"+strconv.Itoa(i)+")", "(redacted)")
	}
	return s
}

// FuzzHold looks for a secret that survives the ends of windows in any form.
func FuzzHold(f *testing.F) {
	for i, secret := range secrets {
		f.Add([]byte(secret), []byte("some text"), uint64(i))
	}
	f.Add([]byte("aaaaaaaaa"), []byte("aaaa"), uint64(9))
	f.Add([]byte("abababab"), []byte("ab"), uint64(9))
	f.Add([]byte("(redacted)"), []byte("(red"), uint64(9))
	f.Add([]byte("(renacted\x00"), []byte("(r"), uint64(9))
	f.Fuzz(func(t *testing.T, secret, filler []byte, seed uint64) {
		if len(bytes.TrimSpace(secret)) < redact.MinLen || len(secret) > 4096 {
			t.Skip()
		}
		r := rand.New(rand.NewPCG(seed, 2))
		set := redact.New(secret)
		for form, spelling := range spellings(string(secret)) {
			text := string(filler) + spelling + string(filler) + spelling[:r.IntN(len(spelling))] + spelling
			got := held(set, text, r)
			// Between two replacements stands text as it came; across one,
			// only what its own text spells.
			for part := range strings.SplitSeq(got, "(redacted)") {
				if strings.Contains(part, string(secret)) || strings.Contains(part, spelling) && !strings.HasPrefix(form, "wrapped") {
					t.Fatalf("%s of %q survives in %q", form, secret, got)
				}
			}
			// A window may end between two stretches that touch.
			if whole := set.String(text); joined(whole) != joined(got) {
				t.Fatalf("in windows %q, in one %q", got, whole)
			}
		}
	})
}

func TestAddWhileOthersReplace(t *testing.T) {
	t.Parallel()
	set := redact.New()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 50 {
			set.Add(fmt.Appendf(nil, "secret number %03d", i), "n")
		}
	}()
	for i := range 50 {
		if line := fmt.Sprintf("line %d\n", i); set.String(line) != line {
			t.Errorf("%q was changed", line)
		}
	}
	<-done
	if got := set.String("secret number 049"); got != "(redacted:n)" {
		t.Errorf("the last secret is shown as %q", got)
	}
}

func TestField(t *testing.T) {
	t.Parallel()
	set := named("pw", "swordfish", "num", "1234567890")
	type login struct {
		User string `json:"user"`
		PIN  string `json:"pin"`
	}
	got := set.Field(map[string]any{
		"PIN":       "0000",
		"port":      8080,
		"account":   json.Number("1234567890"),
		"note":      "pw is swordfish",
		"swordfish": true,
		"list":      []any{login{User: "a", PIN: "1"}, nil, map[string]any{"pin": map[string]any{"deep": 1}}},
		"func":      func() {},
	}, "pin")
	want := map[string]any{
		"PIN":           "(redacted)",
		"port":          8080,
		"account":       "(redacted:num)",
		"note":          "pw is (redacted:pw)",
		"(redacted:pw)": true,
		"list":          []any{map[string]any{"user": "a", "pin": "(redacted)"}, nil, map[string]any{"pin": "(redacted)"}},
		"func":          "(redacted)",
	}
	if diff := cmp.Diff(any(want), got); diff != "" {
		t.Errorf("Field (-want +got):\n%s", diff)
	}
}

// BenchmarkBytes runs an ordinary log through 1, 20 and 200 secrets.
func BenchmarkBytes(b *testing.B) {
	line := []byte("2026-11-21T12:00:00Z terraform_data.api: Still creating... [id=0c1f3a52-77aa-4d0e, 10s elapsed]\n")
	chunk := bytes.Repeat(line, 300)
	for _, n := range []int{1, 20, 200} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 1))
			set := redact.New()
			for range n {
				secret := make([]byte, 24)
				for i := range secret {
					secret[i] = byte(r.UintN(256))
				}
				set.Add([]byte(base64.StdEncoding.EncodeToString(secret)), "s")
			}
			b.SetBytes(int64(len(chunk)))
			for b.Loop() {
				set.Bytes(chunk)
			}
		})
	}
}

func BenchmarkBuild(b *testing.B) {
	for b.Loop() {
		set := redact.New()
		for i := range 200 {
			set.Add(fmt.Appendf(nil, "a secret of ordinary length %d", i), "s")
		}
		set.String("x")
	}
}
