package cluster

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/berth-dev/berth/runner/agent/cloudcluster"
)

// Made is the access that the outputs of a component give: their credentials, else
// for a cluster of EKS, GKE or AKS a token that is made here. keep is what makes the
// same access again, for an apply that gets no outputs; it is to be sealed.
//
// Errors: ErrNoCredentials; a *cloudcluster.Error.
func (c Contexts) Made(ctx context.Context, outputs map[string]any) (access Access, keep []byte, err error) {
	access, err = FromOutputs(outputs)
	if !errors.Is(err, ErrNoCredentials) && !errors.Is(err, errNoEndpoint) {
		return access, access.Kubeconfig, err
	}
	named, ofCloud := cloudcluster.Of(outputs)
	if !ofCloud {
		return Access{}, nil, err
	}
	if access, err = c.ofCloud(ctx, named); err != nil {
		return Access{}, nil, err
	}
	keep, err = json.Marshal(kept{Cloud: &named})
	return access, keep, err
}

// Again is the access that Made kept: the same credentials, or of a cloud a new
// token for the same cluster.
func (c Contexts) Again(ctx context.Context, keep []byte) (Access, error) {
	var k kept
	if json.Unmarshal(keep, &k) == nil && k.Cloud != nil {
		return c.ofCloud(ctx, *k.Cloud)
	}
	return Parse(keep, "")
}

// kept is what Made keeps of a cluster of a cloud. It is no kubeconfig.
type kept struct {
	Cloud *cloudcluster.Cluster `json:"berth_cloud"`
}

func (c Contexts) ofCloud(ctx context.Context, named cloudcluster.Cluster) (Access, error) {
	place, err := c.Clouds.Reach(ctx, named)
	if err != nil {
		return Access{}, err
	}
	token, err := c.Clouds.Token(ctx, named)
	if err != nil {
		return Access{}, err
	}
	access, err := vetted(document{
		APIVersion: "v1", Kind: "Config", CurrentContext: "install",
		Contexts: []namedContext{{Name: "install", Context: map[string]any{"cluster": "install", "user": "install"}}},
		Clusters: []namedCluster{{Name: "install", Cluster: map[string]any{
			"server": place.Server, "certificate-authority-data": base64.StdEncoding.EncodeToString(place.Authority),
		}}},
		Users: []namedUser{{Name: "install", User: map[string]any{"token": token.Text}}},
	})
	access.Cloud, access.Until = &named, token.Until
	return access, err
}

// TokenFile is where the token stands that the kubeconfig at path names.
func TokenFile(path string) string { return path + "-token" }

// Write writes the kubeconfig of an access at path, and for a cluster of a cloud its
// token next to it, where Keep renews it: tools read it again each minute. Both are
// readable by their owner alone.
func Write(path string, access Access) error {
	if access.Cloud == nil {
		return os.WriteFile(path, access.Kubeconfig, 0o600)
	}
	var d document
	if err := yaml.Unmarshal(access.Kubeconfig, &d); err != nil || len(d.Users) != 1 {
		return errors.New("kubeconfig of a cloud that is none")
	}
	user := d.Users[0].User
	if err := os.WriteFile(TokenFile(path), []byte(text(user, "token")), 0o600); err != nil {
		return err
	}
	delete(user, "token")
	user["tokenFile"] = TokenFile(path)
	raw, err := yaml.Marshal(d)
	if err != nil {
		return err
	}
	return os.WriteFile(path, raw, 0o600)
}

// Kept is a token file that is renewed.
type Kept struct {
	// Kubeconfig is the path that Write was given.
	Kubeconfig string
	// UID and GID are whose file it is, 0 for the agent's own.
	UID, GID int
	Cluster  cloudcluster.Cluster
	// Until is when the token there ends; the zero time, when that is not known.
	Until time.Time
	// Learn is told of each token before anyone else can see it.
	Learn func(token string)
	Log   *slog.Logger
}

// renewAgain is how long Keep waits after a failure.
const renewAgain = 15 * time.Second

// Keep renews a token file until ctx ends, each time before the token ends. A cloud
// that gives none is asked again and again: a job may need its cluster at its end
// only.
func (c Contexts) Keep(ctx context.Context, k Kept) {
	now := time.Now
	if c.Clouds.Now != nil {
		now = c.Clouds.Now
	}
	wait := cloudcluster.RenewAfter(k.Until.Sub(now()))
	for {
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		token, err := c.Clouds.Token(ctx, k.Cluster)
		if err == nil {
			k.Learn(token.Text)
			err = replace(k, token.Text)
		}
		if err != nil {
			if ctx.Err() == nil {
				k.Log.WarnContext(ctx, "token of a cluster is not renewed", "cluster", k.Cluster.String(), "err", err)
			}
			wait = renewAgain
			continue
		}
		wait = cloudcluster.RenewAfter(token.Until.Sub(now()))
	}
}

// replace puts another token into the file, at once and whole.
func replace(k Kept, token string) error {
	path := TokenFile(k.Kubeconfig)
	dir, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	next := filepath.Base(path) + ".next"
	if err := dir.Remove(next); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := dir.OpenFile(next, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(token)
	if k.UID != 0 && err == nil {
		err = f.Chown(k.UID, k.GID)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return dir.Rename(next, filepath.Base(path))
}
