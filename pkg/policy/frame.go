package policy

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

// MaxRequest is how many bytes a request may have.
const MaxRequest = 256 << 20

// WriteFrame writes a request or a reply as it goes between the engine and who asks it:
// four bytes with the length, the highest first, and so many bytes of JSON.
func WriteFrame(to io.Writer, message any, most int) error {
	raw, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if len(raw) > most {
		return fmt.Errorf("the message has %d bytes, more than %d", len(raw), most)
	}
	framed := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(raw)), uint32(len(raw)))
	_, err = to.Write(append(framed, raw...))
	return err
}

// ReadFrame reads what WriteFrame wrote, without decoding it. io.EOF says that nothing
// follows; io.ErrUnexpectedEOF that it was cut short.
func ReadFrame(from io.Reader, most int) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return nil, err
	}
	length := int64(binary.BigEndian.Uint32(head[:]))
	if length > int64(most) {
		return nil, fmt.Errorf("the message is to have %d bytes, more than %d", length, most)
	}
	// Not allocated by what the head says: that may be a lie.
	raw, err := io.ReadAll(io.LimitReader(from, length))
	if err == nil && int64(len(raw)) < length {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	return raw, nil
}
