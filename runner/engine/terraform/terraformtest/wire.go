package terraformtest

import (
	"encoding/binary"
	"encoding/json"
)

// field appends a field of bytes to a message of protocol buffers.
func field(to []byte, number int, value []byte) []byte {
	to = append(to, byte(number<<3|2))
	to = binary.AppendUvarint(to, uint64(len(value)))
	return append(to, value...)
}

// get is the last field of bytes with a number; nil for none.
func get(message []byte, number int) (value []byte) {
	for len(message) > 0 {
		tag, n := binary.Uvarint(message)
		if n <= 0 {
			return nil
		}
		message = message[n:]
		size, n := binary.Uvarint(message)
		if n <= 0 {
			return nil
		}
		message = message[n:]
		if tag&7 == 0 {
			continue // size was a number
		}
		if tag&7 != 2 || uint64(len(message)) < size {
			return nil
		}
		if int(tag>>3) == number {
			value = message[:size]
		}
		message = message[size:]
	}
	return value
}

// attributes are those of a value as Terraform sends it, in MessagePack or JSON; nil for
// null. All are strings.
func attributes(value []byte) (all map[string]any) {
	if text := get(value, 2); text != nil {
		_ = json.Unmarshal(text, &all)
		return all
	}
	pack := get(value, 1)
	if len(pack) == 0 || pack[0]&0xf0 != 0x80 {
		return nil
	}
	n := int(pack[0] & 0x0f)
	pack, all = pack[1:], map[string]any{}
	for range n {
		var name, text any
		name, pack = next(pack)
		text, pack = next(pack)
		all[name.(string)] = text
	}
	return all
}

// next is the string at the beginning of MessagePack, nil for null, and the rest.
func next(pack []byte) (any, []byte) {
	var size, from int
	switch c := pack[0]; {
	case c == 0xc0:
		return nil, pack[1:]
	case c&0xe0 == 0xa0:
		size, from = int(c&0x1f), 1
	case c == 0xd9:
		size, from = int(pack[1]), 2
	case c == 0xda:
		size, from = int(binary.BigEndian.Uint16(pack[1:])), 3
	default:
		panic("terraformtest: a value that is no string")
	}
	return string(pack[from : from+size]), pack[from+size:]
}
