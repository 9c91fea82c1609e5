package job

import (
	"bytes"
	"testing"

	"github.com/berth-dev/berth/pkg/jobspec"
)

func TestDigestKey(t *testing.T) {
	t.Parallel()
	one, other := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	db, web := jobspec.Resource{ID: "res_db"}, jobspec.Resource{ID: "res_web"}
	key := digestKey(one, db)
	if !bytes.Equal(key, digestKey(one, db)) || bytes.Equal(key, digestKey(other, db)) || bytes.Equal(key, digestKey(one, web)) {
		t.Error("a resource of an install has one key, and no other has it")
	}
	if bytes.Equal(key, one) || len(key) != 32 {
		t.Error("the key is the salt itself, which is for other digests")
	}
}
