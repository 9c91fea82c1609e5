package registry

import (
	"net/http"
	"path"
	"regexp"

	v2 "github.com/distribution/distribution/v3/registry/api/v2"
	"github.com/gorilla/mux"
)

// Names of routes: distribution's, and the one it lacks.
const (
	routeBase        = v2.RouteNameBase
	routeManifest    = v2.RouteNameManifest
	routeTags        = v2.RouteNameTags
	routeBlob        = v2.RouteNameBlob
	routeUpload      = v2.RouteNameBlobUpload
	routeUploadChunk = v2.RouteNameBlobUploadChunk
	routeReferrers   = "referrers"
)

// route is what a request is about.
type route struct {
	name       string
	repository string // "" for the version check
	reference  string // tag or digest of manifests, digest of referrers
	upload     string // id of the upload
	action     Action
}

// referrersPath has distribution's pattern for names.
var referrersPath = regexp.MustCompile(`^/v2/([a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*)/referrers/(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$`)

// parseRoute finds the repository with the same router as distribution does
// later, so that both understand the same path. What it does not know, what is
// not spelled plainly and the catalog are no routes.
func parseRoute(req *http.Request) (route, bool) {
	p := req.URL.Path
	if clean := path.Clean(p); req.URL.RawPath != "" || (p != clean && p != clean+"/") {
		return route{}, false
	}
	if m := referrersPath.FindStringSubmatch(p); m != nil {
		return route{name: routeReferrers, repository: m[1], reference: m[2], action: ActionPull}, isRead(req.Method)
	}
	var match mux.RouteMatch
	if !v2.Router().Match(req, &match) || match.MatchErr != nil {
		return route{}, false
	}
	r := route{
		name: match.Route.GetName(), repository: match.Vars["name"],
		reference: match.Vars["reference"], upload: match.Vars["uuid"],
	}
	switch r.name {
	case routeBase:
		return r, isRead(req.Method)
	case routeTags:
		r.action = ActionPull
		return r, isRead(req.Method) && r.repository != ""
	case routeUpload, routeUploadChunk:
		r.action = ActionPush // also to look at one's upload or to cancel it
	case routeManifest, routeBlob:
		r.action = actionOf(req.Method)
	default:
		return route{}, false
	}
	return r, r.repository != ""
}

func actionOf(method string) Action {
	switch {
	case isRead(method):
		return ActionPull
	case method == http.MethodDelete:
		return ActionDelete
	default:
		return ActionPush
	}
}

func isRead(method string) bool { return method == http.MethodGet || method == http.MethodHead }
