package states

import (
	"encoding/json"
	"fmt"

	"github.com/berth-dev/berth/pkg/helmstate"
)

// withReleases adds what is in the records of Helm releases to the revisions that a
// document shows: values and manifest. They are sensitive as a whole, and are only
// unpacked to be revealed.
func withReleases(state []byte, d *document, reveal bool) error {
	releases, err := helmstate.Parse(state)
	if err != nil || len(releases.Helm.Records) == 0 {
		return nil //nolint:nilerr // it is of another tool
	}
	for _, r := range d.Resources {
		for _, i := range r.Instances {
			if i.Attributes != nil {
				i.Attributes["values"], i.Attributes["manifest"] = Masked, Masked
			}
		}
	}
	if !reveal {
		return nil
	}
	for _, record := range releases.Helm.Records {
		raw, err := record.Unpack()
		if err != nil {
			return err
		}
		var in struct {
			Config   map[string]any `json:"config"`
			Manifest string         `json:"manifest"`
		}
		if err := json.Unmarshal(raw, &in); err != nil {
			return fmt.Errorf("record %s is damaged", record.Key)
		}
		for _, r := range d.Resources {
			for _, i := range r.Instances {
				if r.Name == record.Release && i.IndexKey == helmstate.Index(record.Namespace, record.Revision) {
					i.Attributes["values"], i.Attributes["manifest"] = in.Config, in.Manifest
				}
			}
		}
	}
	return nil
}
