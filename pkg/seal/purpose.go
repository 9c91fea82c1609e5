package seal

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/berth-dev/berth/pkg/capsule"
)

const (
	// header begins every sealed plaintext. A form with other algorithms gets a
	// header of its own.
	header = "berth-seal-2"
	// lengthLen is the length, in bytes, of the length of a purpose.
	lengthLen = 4
	// maxPurpose bounds a purpose, in bytes: ids, a name and a path.
	maxPurpose = 4096
)

// What is wrong with sealed bytes that belong to the identity, for errors.Is.
var (
	// ErrOtherPurpose: sealed for something else than they are opened for.
	ErrOtherPurpose = errors.New("sealed for another purpose")
	// ErrFirstForm: sealed before sealed bytes carried their purpose.
	ErrFirstForm = errors.New("sealed in the first form, which names no purpose")
)

// Purpose says what sealed bytes are for. It is part of what is sealed and is
// compared before a byte is released, so that one sealed thing cannot be passed
// off as another: a Terraform state is no leaf of a template, and the output of
// one component is not that of another.
type Purpose struct {
	OrgID     string `json:"org_id"`
	InstallID string `json:"install_id"`
	// Kind is input, variable, output, state, plan, salt, secret, or at_rest for what
	// the control plane keeps for itself.
	Kind Kind `json:"kind"`
	// Resource is the id of the resource, or of the change, that it belongs to.
	Resource string `json:"resource,omitempty"`
	// Path is where in the document the value stands: see Path.
	Path string `json:"path,omitempty"`
	// Lineage and Serial are of Terraform states. Serial is also the version of a secret.
	Lineage string `json:"lineage,omitempty"`
	Serial  int64  `json:"serial,omitempty"`
}

// Kind is a kind of sealed bytes.
type Kind string

// The kinds.
const (
	KindInput    Kind = "input"
	KindVariable Kind = "variable"
	KindOutput   Kind = "output"
	KindState    Kind = "state"
	KindPlan     Kind = "plan"
	KindSalt     Kind = "salt"
	KindAtRest   Kind = "at_rest"
	KindSecret   Kind = "secret" // of the customer, kept on the customer's machine
	KindScript   Kind = "script" // an environment variable of a script that is part of no release
)

// pathEscapes are those of a JSON Pointer (RFC 6901), so that no two paths look
// the same.
var pathEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// Path joins the parts of a path by "/"; a "/" inside a part is written "~1", a
// "~" is written "~0".
func Path(parts ...string) string {
	escaped := make([]string, len(parts))
	for i, p := range parts {
		escaped[i] = pathEscapes.Replace(p)
	}
	return strings.Join(escaped, "/")
}

// String names the purpose for people. What it quotes may come from a stranger,
// so it holds no control characters.
func (p Purpose) String() string {
	text := fmt.Sprintf("%q", string(p.Kind))
	if p.Path != "" {
		text += fmt.Sprintf(" %q", p.Path)
	}
	if p.Resource != "" {
		text += fmt.Sprintf(" of %q", p.Resource)
	}
	if p.Lineage != "" {
		text += fmt.Sprintf(" lineage %q serial %d", p.Lineage, p.Serial)
	}
	if p.InstallID != "" {
		text += fmt.Sprintf(" of install %q", p.InstallID)
	}
	return text + fmt.Sprintf(" of org %q", p.OrgID)
}

// prefix is what stands before the data of this purpose: the header, the length
// of the purpose in four bytes, big-endian, and its canonical JSON.
func (p Purpose) prefix() ([]byte, error) {
	if p.Kind == "" || p.OrgID == "" {
		return nil, errors.New("a purpose needs at least kind and org")
	}
	text, err := capsule.Canonical(p)
	if err != nil {
		return nil, fmt.Errorf("purpose of sealed bytes: %w", err)
	}
	if len(text) > maxPurpose {
		return nil, fmt.Errorf("purpose of sealed bytes has %d bytes, more than %d", len(text), maxPurpose)
	}
	out := append(make([]byte, 0, len(header)+lengthLen+len(text)), header...)
	out = binary.BigEndian.AppendUint32(out, uint32(len(text)))
	return append(out, text...), nil
}

// otherPurpose is the error for bytes that were sealed for found, "" when they do
// not even say for what.
func otherPurpose(want Purpose, found []byte) error {
	var got Purpose
	if json.Unmarshal(found, &got) != nil {
		return fmt.Errorf("%w: they do not say for which; expected %s", ErrOtherPurpose, want)
	}
	return fmt.Errorf("%w: they are %s, and not %s", ErrOtherPurpose, got, want)
}
