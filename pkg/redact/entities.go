package redact

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// entities are the ways in which tools write what is special in HTML and XML.
// Each is one tool's whole set: text is escaped by one of them, not by a mixture.
var entities = func() []map[rune]string {
	five := func(amp, lt, gt, quot, apos string) map[rune]string {
		return map[rune]string{'&': amp, '<': lt, '>': gt, '"': quot, '\'': apos}
	}
	with := func(set map[rune]string, more ...string) map[rune]string {
		for i := 0; i < len(more); i += 2 {
			set[[]rune(more[i])[0]] = more[i+1]
		}
		return set
	}
	const quote, apostrophe = `"`, "'"
	return []map[rune]string{
		five("&amp;", "&lt;", "&gt;", "&#34;", "&#39;"),                                       // Go's html
		with(five("&amp;", "&lt;", "&gt;", "&#34;", "&#39;"), "+", "&#43;", "\x00", "\ufffd"), // Go's html/template
		five("&amp;", "&lt;", "&gt;", "&quot;", "&#39;"),                                      // Ruby, Java, lodash
		five("&amp;", "&lt;", "&gt;", "&quot;", "&#039;"),                                     // PHP
		five("&amp;", "&lt;", "&gt;", "&quot;", "&#x27;"),                                     // Python
		five("&amp;", "&lt;", "&gt;", "&quot;", "&apos;"),                                     // XML
		five("&amp;", "&lt;", "&gt;", "&quot;", apostrophe),
		five("&amp;", "&lt;", "&gt;", quote, apostrophe), // text between tags
		five("&amp;", "&lt;", ">", quote, apostrophe),
		with(five("&amp;", "&lt;", "&gt;", "&quot;", "&#39;"), "/", "&#x2F;", "`", "&#x60;", "=", "&#x3D;"), // Handlebars
		with(five("&amp;", "&lt;", "&gt;", "&quot;", "&#x27;"), "/", "&#x2F;"),                              // OWASP
		five("&#38;", "&#60;", "&#62;", "&#34;", "&#39;"),
		five("&#x26;", "&#x3c;", "&#x3e;", "&#x22;", "&#x27;"),
		five("&#x26;", "&#x3C;", "&#x3E;", "&#x22;", "&#x27;"),
		// Go's html/template inside a script.
		with(five(`\u0026`, `\u003c`, `\u003e`, `\u0022`, `\u0027`), "+", `\u002b`, "`", `\u0060`, "/", `\/`, `\`, `\\`, "\n", `\n`, "\r", `\r`, "\t", `\t`, "\v", `\u000b`, "\f", `\f`, "\x00", `\u0000`),
	}
}()

// unquoted is what Go's html/template also escapes in an attribute without
// quotes.
const unquoted = "\t\n\v\f\r \"&'+<=>`"

// entityForms adds a text as it stands in HTML and XML, and such a document
// inside of JSON, as an API hands on a rendered page.
func entityForms(text string, add func(string)) {
	add2 := func(form string) {
		if form == text {
			return
		}
		add(form)
		add(jsonInside(form, true))
		add(jsonInside(form, false))
	}
	for _, set := range entities {
		add2(replaced(text, func(r rune) string { return set[r] }))
	}
	add2(replaced(text, inXML))
	add2(replaced(text, func(r rune) string {
		switch {
		case 0xfdd0 <= r && r <= 0xfdef, 0xfff0 <= r && r <= 0xffff: // also what is no UTF-8
			return fmt.Sprintf("&#x%x;", r)
		case strings.ContainsRune("&<>", r):
			return entities[0][r]
		case r == 0:
			return "&#xfffd;"
		case strings.ContainsRune(unquoted, r):
			return fmt.Sprintf("&#%d;", r)
		}
		return ""
	}))
}

// inXML is how encoding/xml writes a character; "" for as it is.
func inXML(r rune) string {
	switch {
	case r == '\t', r == '\n', r == '\r':
		return fmt.Sprintf("&#x%X;", r)
	case r < ' ', r == utf8.RuneError, r == 0xfffe, r == 0xffff:
		return "\ufffd" // no character of XML, or no UTF-8
	}
	return entities[0][r]
}

func replaced(text string, by func(rune) string) string {
	var b strings.Builder
	for i, r := range text {
		if form := by(r); form != "" {
			b.WriteString(form)
		} else {
			_, size := utf8.DecodeRuneInString(text[i:]) // 1 for a byte that is no UTF-8
			b.WriteString(text[i : i+size])
		}
	}
	return b.String()
}
