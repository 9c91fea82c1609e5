package jobspec

import "github.com/berth-dev/berth/pkg/customersecret"

// SecretSync is what is copied of the customer's secrets into the install's cluster. It
// names secrets and has no value: the agent brings those that it names. No copies at all
// take away what an earlier sync has left.
type SecretSync struct {
	Copies []SecretCopy `json:"copies"`
}

// SecretCopy is one key of one Secret of Kubernetes. Namespace, Name and Key are
// templates; they may read anything but the value of a secret.
type SecretCopy struct {
	Secret string `json:"secret"`
	// Format is customersecret.FormatBase64 for a value that is decoded before, or "".
	Format    string `json:"format,omitempty"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Key       string `json:"key"`
}

// Secrets are the names of the secrets that are copied, some of them twice.
func (s *SecretSync) Secrets() (names []string) {
	if s == nil {
		return nil
	}
	for _, c := range s.Copies {
		names = append(names, c.Secret)
	}
	return names
}

// Output of a sync: CopiesOutput is a list of Copied.
const CopiesOutput = "copies"

// Copied is a copy that is in the cluster, without its value. Digest is salted, and the
// salt stays with the customer.
type Copied struct {
	Secret    string `json:"secret"`
	Version   int    `json:"version"`
	Digest    string `json:"digest"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Key       string `json:"key"`
}

func (s *SecretSync) validate(p *problems) {
	for _, c := range s.Copies {
		switch {
		case !customersecret.ValidName(c.Secret):
			p.add("the name of a secret is not valid: %q", c.Secret)
		case c.Namespace == "" || c.Name == "" || c.Key == "":
			p.add("a copy of secret %s names no namespace, Secret or key", c.Secret)
		case c.Format != "" && c.Format != customersecret.FormatBase64:
			p.add("secret %s has format %q, which is not known", c.Secret, c.Format)
		}
	}
}
