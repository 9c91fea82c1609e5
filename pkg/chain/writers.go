package chain

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"

	"github.com/berth-dev/berth/pkg/capsule"
)

// VerifyOf verifies a chain of which one of the writers made the first records, or the
// last ones: then the machine that began it is the one that the chain names, each that went
// on has a handover of the recovery key, and by its hashes the last writer stands behind
// all of it. Without writers it is Verify.
func VerifyOf(writers map[string]ed25519.PublicKey, file io.ReadSeeker, o VerifyOptions) (Report, error) {
	o.Keys = writers
	if len(writers) == 0 {
		return Verify(file, o)
	}
	first, err := firstWriter(file, writers)
	if err != nil {
		return Report{}, err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return Report{}, err
	}
	if first != nil {
		o.Keys, o.changes = map[string]ed25519.PublicKey{capsule.KeyID(first): first}, true
	}
	report, err := Verify(file, o)
	if err != nil || !report.OK() || first == nil {
		return report, err
	}
	if _, known := writers[report.Writer]; !known {
		report.FirstBad, report.Problem = report.Head.Seq, fmt.Sprintf("is the last, and of key %.80s, which is not a given one", report.Writer)
	}
	return report, nil
}

// firstWriter finds the key of the first record, which the chain names itself; nil when
// that is one of the writers, or the chain does not name it.
func firstWriter(file io.Reader, writers map[string]ed25519.PublicKey) (ed25519.PublicKey, error) {
	in := bufio.NewReaderSize(file, maxLine+1)
	id := ""
	for {
		raw, err := in.ReadSlice('\n')
		if errors.Is(err, io.EOF) || errors.Is(err, bufio.ErrBufferFull) {
			return nil, nil //nolint:nilnil // Verify says what is wrong
		}
		if err != nil {
			return nil, err
		}
		rec, err := ParseRecord(bytes.TrimSuffix(raw, []byte{'\n'}))
		if err != nil {
			return nil, nil //nolint:nilerr,nilnil // Verify says so, with its number
		}
		if id == "" {
			id = rec.KeyID
			if _, known := writers[id]; known {
				return nil, nil //nolint:nilnil // nobody wrote before
			}
		}
		if rec.Keys == nil || rec.KeyID != id {
			continue
		}
		if key, err := capsule.ParsePublicKey(rec.Keys.Machine); err == nil && capsule.KeyID(key) == id {
			return key, nil
		}
	}
}

// Writers are the keys that wrote the chain, in their order.
func (r Report) Writers() (list []Vouched) {
	for _, k := range r.Keys {
		if k.As == "writer" {
			list = append(list, k)
		}
	}
	return list
}
