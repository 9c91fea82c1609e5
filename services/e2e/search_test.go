package e2e_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// search looks for texts in all their spellings. It remembers where.
type search struct {
	found  map[string][]string
	pieces int
	bytes  int64
	spans  bool // traces were among it
}

func placeOf(all map[string]*search, name string) *search {
	if all[name] == nil {
		all[name] = &search{found: map[string][]string{}}
	}
	return all[name]
}

var wanted = map[string][]spelling{
	canary: spellings(canary), secretText: spellings(secretText), variableText: spellings(variableText), plainText: spellings(plainText),
	customerText: spellings(customerText), rotatedText: spellings(rotatedText), scriptSecret: spellings(scriptSecret), secretMarker: spellings(secretMarker),
}

// spelling is a text in an encoding.
type spelling struct {
	name string
	text []byte
}

func spellings(text string) []spelling {
	quoted, _ := json.Marshal(text) // a string: cannot fail
	all := []spelling{
		{"raw", []byte(text)},
		{"hex", []byte(hex.EncodeToString([]byte(text)))},
		{"hex in capitals", []byte(strings.ToUpper(hex.EncodeToString([]byte(text))))},
		{"url query", []byte(url.QueryEscape(text))},
		{"url path", []byte(url.PathEscape(text))},
		{"json", quoted[1 : len(quoted)-1]},
		{"html", []byte(html.EscapeString(text))},
	}
	// Inside the base64 of something longer a text begins at one of three
	// places. What depends on its neighbours is left out.
	for offset := range 3 {
		for name, enc := range map[string]*base64.Encoding{"base64": base64.RawStdEncoding, "base64url": base64.RawURLEncoding} {
			whole := enc.EncodeToString([]byte(strings.Repeat("x", offset) + text))
			first := (offset*8 + 5) / 6
			all = append(all, spelling{fmt.Sprintf("%s +%d", name, offset), []byte(whole[first : (offset+len(text))*8/6])})
		}
	}
	return all
}

// look searches data, and what is packed in it.
func (s *search) look(where string, data []byte) {
	s.pieces++
	s.bytes += int64(len(data))
	s.spans = s.spans || bytes.Contains(data, []byte(`"SpanContext"`))
	for text, forms := range wanted {
		for _, f := range forms {
			if bytes.Contains(data, f.text) {
				if at := where + " (" + f.name + ")"; !slices.Contains(s.found[text], at) {
					s.found[text] = append(s.found[text], at)
				}
			}
		}
	}
	for name, plain := range unpack(data) {
		s.look(where+" › "+name, plain)
	}
}

// maxPlain bounds what is unpacked.
const maxPlain = 64 << 20

// byteas are bytes as Postgres writes them into JSON.
var byteas = regexp.MustCompile(`\\\\x(?:[0-9a-f]{2}){8,}`)

// unpack returns what data is the packed form of: gzip, zstd, a tar archive, or
// text with bytes of Postgres in it.
func unpack(data []byte) map[string][]byte {
	plain := map[string][]byte{}
	switch {
	case bytes.HasPrefix(data, []byte("\x1f\x8b")):
		if r, err := gzip.NewReader(bytes.NewReader(data)); err == nil {
			plain["gzip"], _ = io.ReadAll(io.LimitReader(r, maxPlain))
		}
	case bytes.HasPrefix(data, []byte("\x28\xb5\x2f\xfd")):
		if r, err := zstd.NewReader(bytes.NewReader(data)); err == nil {
			plain["zstd"], _ = io.ReadAll(io.LimitReader(r, maxPlain))
			r.Close()
		}
	case len(data) > 512 && bytes.Equal(data[257:262], []byte("ustar")):
		// Its files are in it as they are; only those that are packed are looked
		// into once more.
		for r := tar.NewReader(bytes.NewReader(data)); ; {
			h, err := r.Next()
			if err != nil {
				break
			}
			if body, _ := io.ReadAll(io.LimitReader(r, maxPlain)); len(unpack(body)) > 0 {
				plain["tar "+h.Name] = body
			}
		}
	case len(data) > 0 && data[0] == '{':
		for i, match := range byteas.FindAll(data, -1) {
			if raw, err := hex.DecodeString(string(match[3:])); err == nil {
				plain[fmt.Sprintf("bytes %d", i)] = raw
			}
		}
	}
	return plain
}
