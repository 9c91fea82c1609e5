package health

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// keepCertificates writes which certificates the newest look of a probe saw. One that did not
// come so far says nothing of them.
func keepCertificates(ctx context.Context, tx *database.Tx, install, check string) error {
	if !strings.HasPrefix(check, jobspec.ProbePrefix) && !(&appconfig.Action{Name: check}).IsProbe() {
		return nil
	}
	outcome, err := tx.CertificatesOfOutcome(ctx, ctldb.CertificatesOfOutcomeParams{InstallID: install, Action: check})
	if errors.Is(err, fault.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read certificates: %w", err)
	}
	seen, told := certificatesIn(outcome.Certificates)
	if !told {
		return nil
	}
	places := []string{} // not nil: NULL matches nothing
	for _, c := range seen {
		places = append(places, c.Place)
		err := tx.PutCertificate(ctx, ctldb.PutCertificateParams{
			InstallID: install, CheckName: check, Place: c.Place, Subject: c.Subject, Fingerprint: c.Fingerprint, NotBefore: c.NotBefore, NotAfter: c.NotAfter, SeenAt: outcome.SeenAt,
		})
		if err != nil {
			return fmt.Errorf("keep certificate of %s: %w", c.Place, err)
		}
	}
	if err := tx.DropCertificates(ctx, ctldb.DropCertificatesParams{InstallID: install, CheckName: check, Places: places}); err != nil {
		return fmt.Errorf("drop certificates: %w", err)
	}
	return nil
}

// certificatesIn reads what a look told. The runner wrote it, which belongs to the customer:
// what rows do not take is left out. told is false when it told nothing.
func certificatesIn(text json.RawMessage) (seen []jobspec.Certificate, told bool) {
	var all []jobspec.Certificate
	if err := json.Unmarshal(text, &all); err != nil || all == nil {
		return nil, false
	}
	for _, c := range all[:min(len(all), jobspec.MaxCertificates)] {
		c.Place, c.Subject = clean(c.Place), clean(c.Subject)
		if c.Place == "" || len(c.Fingerprint) != 64 || strings.Trim(c.Fingerprint, "0123456789abcdef") != "" || !c.NotBefore.Before(c.NotAfter) || c.NotAfter.Year() > 9999 || c.NotBefore.Year() < 1 {
			continue
		}
		seen = append(seen, c)
	}
	return seen, true
}

// clean is a text that rows take.
func clean(text string) string {
	return jobspec.CutText(strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), ""), 256)
}
