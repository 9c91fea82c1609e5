package httpserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"github.com/berth-dev/berth/services/internal/fault"
)

// textHeaders are those whose values reach the database.
var textHeaders = []string{"Idempotency-Key", "Berth-Org", "Last-Event-ID"}

// checkText refuses a request whose path, query or headers cannot be text of the
// database, before anybody looks for them there; and one with two credentials,
// of which nobody could say which one counts.
func (s *Server) checkText(c *gin.Context) {
	if n := len(c.Request.Header.Values("Authorization")); n > 1 {
		WriteProblem(c, fault.With(fault.Newf(fault.ErrInvalid, "there are %d Authorization headers", n),
			fault.Code("two_credentials"), fault.Remedy("send one")))
		return
	}
	for _, param := range c.Params {
		if reason := notText(param.Value); reason != "" {
			refuseText(c, fault.FieldError{Detail: fmt.Sprintf("path parameter %q: %s", param.Key, reason)})
			return
		}
	}
	query := c.Request.URL.Query()
	for _, name := range slices.Sorted(maps.Keys(query)) {
		for _, value := range append([]string{name}, query[name]...) {
			if reason := notText(value); reason != "" {
				refuseText(c, fault.FieldError{Detail: fmt.Sprintf("query parameter %q: %s", strings.ToValidUTF8(name, "?"), reason)})
				return
			}
		}
	}
	for _, name := range textHeaders {
		if reason := notText(c.GetHeader(name)); reason != "" {
			refuseText(c, fault.FieldError{Detail: fmt.Sprintf("header %q: %s", name, reason)})
			return
		}
	}
}

// notText says why Postgres cannot keep s as text; "" when it can.
func notText(s string) string {
	switch {
	case strings.ContainsRune(s, 0):
		return "has a NUL character, which is not text"
	case !utf8.ValidString(s):
		return "is not UTF-8"
	}
	return ""
}

func refuseText(c *gin.Context, at fault.FieldError) {
	detail := at.Detail
	if at.Pointer != "" {
		detail = at.Pointer + ": " + detail
	}
	WriteProblem(c, fault.With(fault.Newf(fault.ErrInvalid, "%s", detail), fault.Code("not_text"), fault.Fields(at)))
}

// checkBody does the same with a JSON body, as it was sent.
func checkBody(c *gin.Context, body []byte) {
	switch {
	case !utf8.Valid(body):
		refuseText(c, fault.FieldError{Detail: "body: is not UTF-8"})
	case bytes.Contains(body, []byte(`\u0000`)), hasLoneSurrogate(body):
		// Rare, so it may be decoded once more to say where; an escaped backslash
		// before u0000 is innocent.
		if at, bad := badText(body); bad {
			refuseText(c, at)
		}
	}
}

// hasLoneSurrogate tells a body that may have half of a character in it, which
// Go replaces and Postgres refuses in what is handed on as it is.
func hasLoneSurrogate(body []byte) bool {
	for i := bytes.Index(body, []byte(`\u`)); i >= 0 && i+6 <= len(body); {
		if c := body[i+2]; c == 'd' || c == 'D' {
			return true
		}
		next := bytes.Index(body[i+2:], []byte(`\u`))
		if next < 0 {
			return false
		}
		i += 2 + next
	}
	return false
}

// badText finds the first string of a document that is none for Postgres.
func badText(body []byte) (at fault.FieldError, bad bool) {
	type frame struct {
		path   string
		object bool
		key    string
		isKey  bool // what comes next is one
		index  int
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	stack := []frame{{}}
	for {
		before := decoder.InputOffset()
		token, err := decoder.Token()
		if err != nil {
			return at, false // the end; what is no JSON was refused before
		}
		top := &stack[len(stack)-1]
		place := top.path
		switch {
		case len(stack) == 1:
		case top.object:
			place += "/" + pointerEscapes.Replace(strings.ReplaceAll(top.key, "\x00", ""))
		default:
			place += "/" + strconv.Itoa(top.index)
		}
		if text, ok := token.(string); ok {
			written := body[before:decoder.InputOffset()]
			reason := notText(text)
			if reason == "" && strings.ContainsRune(text, utf8.RuneError) && loneSurrogate(written) {
				reason = "has half of a character (a lone surrogate), which is not text"
			}
			if reason != "" {
				if top.object && top.isKey {
					return fault.FieldError{Pointer: top.path, Detail: "a key " + reason}, true
				}
				return fault.FieldError{Pointer: place, Detail: reason}, true
			}
			if top.object && top.isKey {
				top.key, top.isKey = text, false
				continue
			}
		}
		if delim, ok := token.(json.Delim); ok {
			switch delim {
			case '{':
				stack = append(stack, frame{path: place, object: true, isKey: true})
				continue
			case '[':
				stack = append(stack, frame{path: place})
				continue
			}
			stack = stack[:len(stack)-1]
			if len(stack) == 0 {
				return at, false
			}
			top = &stack[len(stack)-1]
		}
		top.isKey = top.object
		top.index++
	}
}

// loneSurrogate reports whether a JSON string, as it was written, has an escape
// of half a character.
func loneSurrogate(written []byte) bool {
	unit := func(b []byte) (rune, bool) {
		if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
			return 0, false
		}
		n, err := strconv.ParseUint(string(b[2:6]), 16, 16)
		return rune(n), err == nil
	}
	for i := 0; i < len(written); i++ {
		if written[i] != '\\' {
			continue
		}
		high, ok := unit(written[i:])
		if !ok {
			i++ // the escaped character
			continue
		}
		i += 5
		if high < 0xd800 || high > 0xdfff {
			continue
		}
		low, ok := unit(written[i+1:])
		if high >= 0xdc00 || !ok || low < 0xdc00 || low > 0xdfff {
			return true
		}
		i += 6
	}
	return false
}
