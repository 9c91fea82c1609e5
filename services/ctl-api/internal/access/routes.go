package access

// Where says what a permission that is limited to one customer, app or install
// is worth on a route.
type Where string

// The values of Where. What they name is a path parameter of the route.
const (
	// WhereOrg: only those who have the permission everywhere.
	WhereOrg Where = "org"
	// WhereList: the handler leaves out what is outside of the caller's scope.
	WhereList Where = "list"
	// WhereFilter: the query parameter `install` must name an install inside.
	WhereFilter Where = "filter"
	// The object that the path parameter names must be inside.
	WhereApp      Where = "app"
	WhereInstall  Where = "install"
	WhereWorkflow Where = "workflow"
	WhereStep     Where = "step"
	WhereChange   Where = "change"
	WhereRun      Where = "run"
	WhereRunner   Where = "runner"
)

// Route is what a route of openapi/ctl-api.yaml asks of its caller.
type Route struct {
	Method     string
	Path       string // as in the contract
	Permission Permission
	Where      Where
}

// Routes has one row for every route; a route without a row answers nobody,
// and fails the test of this table.
var Routes = []Route{
	{"GET", "/me", PermitSelf, WhereList},
	{"GET", "/tokens", PermitSelf, WhereList},
	{"POST", "/tokens", PermitSelf, WhereList},
	{"DELETE", "/tokens/{token}", PermitSelf, WhereList},
	{"GET", "/orgs", PermitSelf, WhereList},
	{"POST", "/orgs", PermitPlatform, WhereOrg},
	{"GET", "/members", PermitRead, WhereOrg},
	{"POST", "/members", PermitAdminister, WhereOrg},
	{"DELETE", "/members/{member}", PermitAdminister, WhereOrg},
	{"GET", "/customers", PermitRead, WhereOrg},
	{"POST", "/customers", PermitOperate, WhereOrg},
	{"GET", "/customers/{customer}", PermitRead, WhereOrg},
	{"GET", "/keys", PermitRead, WhereOrg},
	{"GET", "/chains/{chain}/records", PermitRead, WhereOrg},

	{"PUT", "/blobs/{digest}", PermitOperate, WhereOrg},
	{"POST", "/blobs/missing", PermitOperate, WhereOrg},
	{"GET", "/apps", PermitRead, WhereOrg},
	{"POST", "/apps", PermitOperate, WhereOrg},
	{"GET", "/apps/{app}", PermitRead, WhereApp},
	{"PATCH", "/apps/{app}", PermitOperate, WhereApp},
	{"DELETE", "/apps/{app}", PermitOperate, WhereOrg},
	{"GET", "/apps/{app}/configs", PermitRead, WhereApp},
	{"POST", "/apps/{app}/configs", PermitOperate, WhereOrg}, // it may make the app, and reads uploads of all
	{"GET", "/configs/{config}", PermitRead, WhereOrg},
	{"GET", "/builds", PermitRead, WhereOrg},
	{"POST", "/builds", PermitOperate, WhereOrg},
	{"GET", "/builds/{build}", PermitRead, WhereOrg},
	{"POST", "/builds/{build}/cancel", PermitOperate, WhereOrg},
	{"GET", "/apps/{app}/releases", PermitRead, WhereApp},
	{"POST", "/apps/{app}/releases", PermitOperate, WhereApp},
	{"GET", "/releases/{release}", PermitRead, WhereOrg},

	{"GET", "/installs", PermitRead, WhereList},
	{"POST", "/installs", PermitOperate, WhereOrg},
	{"GET", "/installs/{install}", PermitRead, WhereInstall},
	{"PATCH", "/installs/{install}", PermitOperate, WhereInstall},
	{"DELETE", "/installs/{install}", PermitOperate, WhereInstall},
	{"GET", "/installs/{install}/inputs", PermitRead, WhereInstall},
	{"PUT", "/installs/{install}/inputs", PermitOperate, WhereInstall},
	{"GET", "/installs/{install}/resources", PermitRead, WhereInstall},
	{"GET", "/installs/{install}/resources/{resource}", PermitRead, WhereInstall},
	{"GET", "/installs/{install}/state", PermitRead, WhereInstall},
	{"GET", "/installs/{install}/stack", PermitRead, WhereInstall},
	{"POST", "/installs/{install}/enrolments", PermitOperate, WhereInstall},
	{"GET", "/installs/{install}/health", PermitRead, WhereInstall},
	{"GET", "/installs/{install}/why", PermitRead, WhereInstall},

	{"POST", "/installs/{install}/workflows", PermitOperate, WhereInstall},
	{"GET", "/workflows", PermitRead, WhereFilter},
	{"GET", "/workflows/{workflow}", PermitRead, WhereWorkflow},
	{"POST", "/workflows/{workflow}/cancel", PermitOperate, WhereWorkflow},
	{"POST", "/workflows/{workflow}/approve-all", PermitDecide, WhereWorkflow},
	{"GET", "/workflows/{workflow}/events", PermitRead, WhereWorkflow},
	{"GET", "/workflows/{workflow}/why", PermitRead, WhereWorkflow},
	{"GET", "/steps/{step}", PermitRead, WhereStep},
	{"POST", "/steps/{step}/retry", PermitOperate, WhereStep},
	{"GET", "/changes", PermitRead, WhereFilter},
	{"GET", "/changes/{change}", PermitRead, WhereChange},
	{"GET", "/changes/{change}/plan", PermitRead, WhereChange},
	{"POST", "/changes/{change}/decisions", PermitDecide, WhereChange},
	{"GET", "/installs/{install}/actions", PermitRead, WhereInstall},
	{"POST", "/installs/{install}/actions/{action}/runs", PermitOperate, WhereInstall},
	{"GET", "/action-runs", PermitRead, WhereFilter},
	{"GET", "/action-runs/{run}", PermitRead, WhereRun},

	{"GET", "/runners", PermitRead, WhereFilter},
	{"GET", "/runners/{runner}", PermitRead, WhereRunner},
	{"POST", "/runners/{runner}/revoke", PermitOperate, WhereRunner},
}

// ParamOf names the path parameter that Where is about; empty when it is about
// none.
func (w Where) ParamOf() string {
	switch w {
	case WhereOrg, WhereList, WhereFilter:
		return ""
	}
	return string(w)
}
