package job

import (
	"bytes"
	"testing"
)

func TestDriftKey(t *testing.T) {
	t.Parallel()
	one, other := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	if !bytes.Equal(driftKey(one), driftKey(one)) || bytes.Equal(driftKey(one), driftKey(other)) {
		t.Error("an install has one key, and no other has it")
	}
	if bytes.Equal(driftKey(one), one) || len(driftKey(one)) != 32 {
		t.Error("the key is the salt itself, which is for other digests")
	}
}
