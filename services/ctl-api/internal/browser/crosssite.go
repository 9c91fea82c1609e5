package browser

import (
	"net/http"
	"strings"

	"github.com/berth-dev/berth/services/internal/fault"
)

// errCrossSite answers a request that another site may have made the browser send.
var errCrossSite = fault.With(fault.Newf(fault.ErrForbidden, "this request does not come from a page of this dashboard"),
	fault.Code("cross_site"), fault.Remedy("programs send a token in the Authorization header, and no cookie"))

// CheckOrigin refuses what a page of another site, or of another port of this machine, may
// have made a browser send along with its cookie. A request that changes something must
// prove where it comes from; one that reads is refused when its headers say from elsewhere.
func CheckOrigin(r *http.Request) error {
	from := r.Header.Get("Sec-Fetch-Site")
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		if from == "" || from == "same-origin" || from == "none" {
			return nil
		}
		return errCrossSite
	}
	if from == "" && r.Header.Get("Origin") == "" {
		return errCrossSite // no browser of today, and no program of ours
	}
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		return errCrossSite
	}
	return nil
}

// checkScheme refuses a login from an https page at a site that is plain http for us: the
// cookie would lack Secure.
func checkScheme(r *http.Request, site Site) error {
	if !site.Secure && strings.HasPrefix(r.Header.Get("Origin"), "https://") {
		return errInsecure
	}
	return nil
}
