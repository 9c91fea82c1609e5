package capsule

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"testing"
)

// numbersExact is checkNumbers by the decoder of the standard library.
func numbersExact(raw []byte) bool {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return true
		}
		if n, ok := token.(json.Number); ok && !exact(n) {
			return false
		}
	}
}

func FuzzNumbers(f *testing.F) {
	for _, seed := range []string{
		`0`, `-1`, `[9007199254740993]`, `{"9007199254740993":"9007199254740993"}`, `["\"",9007199254740993]`, `["\\",9007199254740993]`,
		`["\\\"9007199254740993"]`, `{"a":-1.5e+3,"b":[1E400]}`, `[1,"x",9007199254740993 ]`, `[true,false,null]`, `"\u0022",1`, `[0.1,1e-7]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			return
		}
		if err := checkNumbers(raw); (err == nil) != numbersExact(raw) {
			t.Errorf("%q: %v", raw, err)
		}
	})
}
