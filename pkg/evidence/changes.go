package evidence

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/csvcell"
	"github.com/berth-dev/berth/pkg/policy"
)

// Plan is what the runner wrote down of a planned change.
type Plan struct {
	ChangeID     string            `json:"change_id"`
	JobID        string            `json:"job_id"`
	OriginID     string            `json:"origin_id,omitempty"`
	Effect       capsule.Effect    `json:"effect"`
	EffectDigest string            `json:"effect_digest"`
	PlanBytes    string            `json:"plan_bytes_digest,omitempty"`
	Judgement    *policy.Judgement `json:"judgement,omitempty"`
	PlannedAt    time.Time         `json:"planned_at"`
}

// Change is a mutation, as auditors read it.
type Change struct {
	Record   int64     `json:"record"` // of the chain
	At       time.Time `json:"at"`
	What     string    `json:"what"`
	Job      string    `json:"job,omitempty"`
	ChangeID string    `json:"change_id,omitempty"`
	// Vendor is who ordered it at the vendor, by the signed order.
	Vendor string `json:"vendor,omitempty"`
	// Mode is the customer's consent mode, Consented who agreed: holders or a rule.
	Mode      string   `json:"consent_mode,omitempty"`
	Consented []string `json:"consented,omitempty"`
	Effect    string   `json:"effect"`
	Order     string   `json:"order,omitempty"`
	Outcome   string   `json:"outcome"` // "" while there is none
	// Ended is when the outcome was recorded.
	Ended time.Time `json:"ended,omitzero"`
	// Verdicts are those that did not pass.
	Verdicts     []string `json:"verdicts,omitempty"`
	PolicyEngine string   `json:"policy_engine,omitempty"`
}

// Changes are the mutations that a chain of a folder records from since on, with what
// the folder's other documents say of them.
func Changes(dir string, since time.Time) (list []Change, err error) {
	list = []Change{}
	at := map[int64]int{}
	err = records(filepath.Join(dir, ChainFile), func(r chain.Record) error {
		switch {
		case r.Kind == chain.Intent && !r.Time.Before(since):
			c := Change{Record: r.Seq, At: r.Time, What: r.What, Job: r.Job, Effect: r.Effect, Order: r.Capsule}
			if r.Consent != nil {
				c.Mode, c.Consented = r.Consent.Mode, slices.Clone(r.Consent.By)
				if r.Consent.Rule != "" {
					c.Consented = append(c.Consented, "rule "+r.Consent.Rule)
				}
			}
			if err := c.document(dir); err != nil {
				return err
			}
			at[r.Seq] = len(list)
			list = append(list, c)
		case r.Kind == chain.Outcome:
			if i, known := at[r.Intent]; known {
				list[i].Outcome, list[i].Ended = r.Result, r.Time
			}
		}
		return nil
	})
	return list, err
}

// document adds what the order and the plan of the change say.
func (c *Change) document(dir string) error {
	var env capsule.Envelope
	if found, err := readJSON(dir, OrderFile(c.Job), &env); err != nil || !found {
		return err
	}
	var order capsule.Order
	payload, err := base64.StdEncoding.DecodeString(env.Payload)
	if err != nil || json.Unmarshal(payload, &order) != nil {
		return fmt.Errorf("%s: no order", OrderFile(c.Job))
	}
	c.ChangeID, c.Vendor = order.ChangeID, order.Actor
	var plan Plan
	if found, err := readJSON(dir, PlanFile(order.ChangeID), &plan); err != nil || !found || plan.Judgement == nil {
		return err
	}
	c.PolicyEngine = plan.Judgement.Engine
	for _, v := range slices.Concat(plan.Judgement.Vendor, plan.Judgement.Guardrails) {
		if v.Result != policy.Pass && v.Result != policy.Skip {
			c.Verdicts = append(c.Verdicts, strings.Join([]string{string(v.Result), v.Policy, v.Rule, v.Message}, " "))
		}
	}
	return nil
}

func readJSON(dir, name string, v any) (found bool, err error) {
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return false, nil // an id of the chain that is no file name
	}
	raw, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	if os.IsNotExist(err) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, v)
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", name, err)
	}
	return true, nil
}

func records(file string, each func(chain.Record) error) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		r, err := chain.ParseRecord(lines.Bytes())
		if err == nil {
			err = each(r)
		}
		if err != nil {
			return err
		}
	}
	return lines.Err()
}

// ChangesFiles are the two files for auditors.
func ChangesFiles(list []Change) (asJSON, asCSV []byte, err error) {
	if asJSON, err = json.MarshalIndent(list, "", "  "); err != nil {
		return nil, nil, err
	}
	var out bytes.Buffer
	if err := writeCSV(&out, list); err != nil {
		return nil, nil, err
	}
	return append(asJSON, '\n'), out.Bytes(), nil
}

func writeCSV(w io.Writer, list []Change) error {
	out := csv.NewWriter(w)
	_ = out.Write([]string{"record", "at", "what", "job", "change", "vendor", "consent_mode", "consented", "effect", "order", "outcome", "ended", "verdicts", "policy_engine"})
	for _, c := range list {
		ended := ""
		if !c.Ended.IsZero() {
			ended = c.Ended.Format(time.RFC3339)
		}
		row := []string{
			fmt.Sprint(c.Record), c.At.Format(time.RFC3339), c.What, c.Job, c.ChangeID, c.Vendor, c.Mode, strings.Join(c.Consented, ", "),
			c.Effect, c.Order, c.Outcome, ended, strings.Join(c.Verdicts, "; "), c.PolicyEngine,
		}
		for i := range row {
			row[i] = csvcell.Safe(row[i])
		}
		_ = out.Write(row)
	}
	out.Flush()
	return out.Error()
}
