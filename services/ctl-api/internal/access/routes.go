package access

import "github.com/berth-dev/berth/services/internal/auth"

// Where says what a permission that is limited to one customer, app or install
// is worth on a route.
type Where string

// The values of Where.
const (
	// WhereOrg: nothing; only those may who have the permission everywhere.
	WhereOrg Where = "org"
	// WhereList: the handler itself leaves out what is outside.
	WhereList Where = "list"
	// WhereFilter: the query parameter `install` must name an install inside.
	WhereFilter Where = "filter"
	// The object that this path parameter names must be inside.
	WhereApp      Where = "app"
	WhereInstall  Where = "install"
	WhereWorkflow Where = "workflow"
	WhereStep     Where = "step"
	WhereObject   Where = "object" // any of them
	WhereChange   Where = "change"
	WhereRun      Where = "run"
	WhereRunner   Where = "runner"
	WhereAlarm    Where = "alarm"
	WhereAlert    Where = "alert"
)

// Route is what an operation of openapi/ctl-api.yaml asks of its caller.
type Route struct {
	Permission auth.Permission
	Where      Where
}

// Routes has one row for every operation, by the name of its handler; one
// without a row answers nobody, and fails the test of this table.
var Routes = map[string]Route{
	"GetMe":                {auth.Self, WhereList},
	"ListTokens":           {auth.Self, WhereList},
	"CreateToken":          {auth.Self, WhereList}, // for others: auth.TokensWrite, asked by the handler
	"RevokeToken":          {auth.Self, WhereList}, // as above
	"GetLoginMethods":      {auth.Public, WhereList},
	"CreateLoginLink":      {auth.Self, WhereList},
	"CreateBrowserSession": {auth.Public, WhereList}, // the link or token in its body is the proof
	"ListBrowserSessions":  {auth.Self, WhereList},
	"EndBrowserSession":    {auth.Self, WhereList},     // of others: auth.TokensWrite, asked by the handler
	"CreateRegistryToken":  {auth.AppsWrite, WhereOrg}, // what it pulls is source, which viewers are not shown
	"ListOrgs":             {auth.Self, WhereList},
	"CreateOrg":            {auth.OrgsCreate, WhereOrg},
	"ListMembers":          {auth.OrgRead, WhereOrg},
	"CreateMember":         {auth.MembersWrite, WhereOrg},
	"RemoveMember":         {auth.MembersWrite, WhereOrg},
	"ListCustomers":        {auth.OrgRead, WhereOrg},
	"CreateCustomer":       {auth.CustomersWrite, WhereOrg},
	"GetCustomer":          {auth.OrgRead, WhereOrg},
	"ListKeys":             {auth.OrgRead, WhereOrg},
	"ListChainRecords":     {auth.OrgRead, WhereOrg},

	"PutBlob":           {auth.AppsWrite, WhereOrg},
	"FindMissingBlobs":  {auth.AppsWrite, WhereOrg},
	"ListApps":          {auth.AppsRead, WhereOrg},
	"CreateApp":         {auth.AppsWrite, WhereOrg},
	"GetApp":            {auth.AppsRead, WhereApp},
	"UpdateApp":         {auth.AppsWrite, WhereApp},
	"DeleteApp":         {auth.AppsWrite, WhereOrg},
	"ListConfigs":       {auth.AppsRead, WhereApp},
	"SyncApp":           {auth.AppsWrite, WhereOrg}, // it may make the app, and reads uploads of all
	"GetConfig":         {auth.AppsRead, WhereOrg},
	"DiffConfigs":       {auth.AppsRead, WhereOrg},
	"GetConfigGraph":    {auth.AppsRead, WhereOrg},
	"ListBuilds":        {auth.AppsRead, WhereOrg},
	"CreateBuilds":      {auth.AppsWrite, WhereOrg},
	"GetBuild":          {auth.AppsRead, WhereOrg},
	"CancelBuild":       {auth.AppsWrite, WhereOrg},
	"ListAppVariables":  {auth.AppsRead, WhereApp},
	"GetAppVariable":    {auth.AppsRead, WhereApp},
	"SetAppVariable":    {auth.AppsWrite, WhereApp},
	"DeleteAppVariable": {auth.AppsWrite, WhereApp},
	"ListReleases":      {auth.AppsRead, WhereApp},
	"CreateRelease":     {auth.AppsWrite, WhereApp},
	"GetRelease":        {auth.AppsRead, WhereOrg},
	"DiffReleases":      {auth.AppsRead, WhereOrg},

	"GetReleaseContents":  {auth.AppsRead, WhereOrg},
	"AddReleaseStatement": {auth.AppsWrite, WhereOrg}, "AddReleaseRevocation": {auth.AppsWrite, WhereOrg},

	"ListInstalls":      {auth.InstallsRead, WhereList},
	"CreateInstall":     {auth.InstallsWrite, WhereOrg},
	"SyncInstalls":      {auth.InstallsWrite, WhereOrg}, // it makes installs and customers, as CreateInstall does
	"GetInstall":        {auth.InstallsRead, WhereInstall},
	"ListStatus":        {auth.InstallsRead, WhereList},
	"GetInstallStatus":  {auth.InstallsRead, WhereInstall},
	"UpdateInstall":     {auth.InstallsWrite, WhereInstall},
	"ForgetInstall":     {auth.InstallsWrite, WhereInstall},
	"GetInputs":         {auth.InstallsRead, WhereInstall},
	"SetInputs":         {auth.InstallsWrite, WhereInstall},
	"ListResources":     {auth.InstallsRead, WhereInstall},
	"GetResource":       {auth.InstallsRead, WhereInstall},
	"GetState":          {auth.InstallsRead, WhereInstall},
	"ListStateVersions": {auth.InstallsRead, WhereInstall},
	"DiffState":         {auth.InstallsRead, WhereInstall},
	"GetSnapshot":       {auth.InstallsRead, WhereInstall},
	"DiffSnapshots":     {auth.InstallsRead, WhereInstall},
	"ListTimeline":      {auth.InstallsRead, WhereInstall}, // with what the caller may see of the app
	"GetBeforeFailure":  {auth.InstallsRead, WhereInstall},
	"GetInstallGraph":   {auth.InstallsRead, WhereInstall},
	"GetInstallReadme":  {auth.InstallsRead, WhereInstall},
	"ListAllResources":  {auth.InstallsRead, WhereList},
	"CreateBulk":        {auth.WorkflowsWrite, WhereList}, // only in installs where the caller may
	"ListBulks":         {auth.InstallsRead, WhereList},
	"GetBulk":           {auth.InstallsRead, WhereList}, // with the items that the caller may see
	"GetStack":          {auth.InstallsRead, WhereInstall},

	"GetAppApprovalPolicy":     {auth.AppsRead, WhereApp},
	"PutAppApprovalPolicy":     {auth.PoliciesWrite, WhereApp},
	"GetInstallApprovalPolicy": {auth.InstallsRead, WhereInstall},
	"PutInstallApprovalPolicy": {auth.PoliciesWrite, WhereInstall},
	"ListAppFreezes":           {auth.AppsRead, WhereApp},
	"AddAppFreeze":             {auth.AppsWrite, WhereApp},
	"RemoveAppFreeze":          {auth.FreezesLift, WhereApp},
	"ListInstallFreezes":       {auth.InstallsRead, WhereInstall},
	"AddInstallFreeze":         {auth.InstallsWrite, WhereInstall},
	"RemoveInstallFreeze":      {auth.FreezesLift, WhereInstall},
	"OverrideFreeze":           {auth.FreezesLift, WhereWorkflow},
	"PauseInstall":             {auth.InstallsWrite, WhereInstall},
	"ResumeInstall":            {auth.InstallsWrite, WhereInstall},
	"DecideInstall":            {auth.ChangesDecide, WhereInstall},

	"ListMetrics":      {auth.InstallsRead, WhereInstall},
	"GetMetric":        {auth.InstallsRead, WhereInstall},
	"ListMetricPoints": {auth.InstallsRead, WhereInstall},

	"ListInstallSecrets":        {auth.InstallsRead, WhereInstall},
	"ListInstallRoles":          {auth.InstallsRead, WhereInstall},
	"ListTerraformStates":       {auth.InstallsRead, WhereInstall},
	"GetTerraformState":         {auth.InstallsRead, WhereInstall},
	"ListTerraformStateHistory": {auth.InstallsRead, WhereInstall},
	"UnlockTerraformState":      {auth.WorkflowsWrite, WhereInstall},

	"CreateStackVersion": {auth.RunnersWrite, WhereInstall},
	"CreateEnrolment":    {auth.RunnersWrite, WhereInstall},
	"GetHealth":          {auth.InstallsRead, WhereInstall},
	"GetHealthHistory":   {auth.InstallsRead, WhereInstall},
	"ListHealthHistory":  {auth.InstallsRead, WhereList},
	"ListRemediations":   {auth.InstallsRead, WhereInstall},
	"GetDrift":           {auth.InstallsRead, WhereInstall},
	"AskForDrift":        {auth.InstallsWrite, WhereInstall},
	"ListDrift":          {auth.InstallsRead, WhereList},
	"WhyInstall":         {auth.InstallsRead, WhereInstall},

	"CreateWorkflow":       {auth.WorkflowsWrite, WhereInstall},
	"ListWorkflows":        {auth.InstallsRead, WhereFilter},
	"GetWorkflow":          {auth.InstallsRead, WhereWorkflow},
	"RetryWorkflow":        {auth.WorkflowsWrite, WhereWorkflow},
	"CancelWorkflow":       {auth.WorkflowsWrite, WhereWorkflow},
	"ApproveAll":           {auth.ChangesDecide, WhereWorkflow},
	"StreamWorkflowEvents": {auth.InstallsRead, WhereWorkflow},
	"WhyWorkflow":          {auth.InstallsRead, WhereWorkflow},
	"WhyObject":            {auth.InstallsRead, WhereObject},
	"GetStep":              {auth.InstallsRead, WhereStep},
	"RetryStep":            {auth.WorkflowsWrite, WhereStep},
	"SkipStep":             {auth.WorkflowsWrite, WhereStep},
	"ListChanges":          {auth.InstallsRead, WhereFilter},
	"GetChange":            {auth.InstallsRead, WhereChange},
	"GetPlan":              {auth.InstallsRead, WhereChange},
	"GetPlanTree":          {auth.InstallsRead, WhereChange},
	"GetCapsule":           {auth.InstallsRead, WhereChange},
	"Decide":               {auth.ChangesDecide, WhereChange},
	"ListAppPolicies":      {auth.AppsRead, WhereApp},
	"OverridePolicies":     {auth.PoliciesLift, WhereChange},
	"ListPolicyReports":    {auth.InstallsRead, WhereFilter},
	"ListActions":          {auth.InstallsRead, WhereInstall},
	"RunAction":            {auth.WorkflowsWrite, WhereInstall},
	"ListActionRuns":       {auth.InstallsRead, WhereFilter},
	"GetActionRun":         {auth.InstallsRead, WhereRun},

	"ListRunnerVersions":        {auth.RunnersRead, WhereOrg},
	"AddRunnerVersion":          {auth.RunnersWrite, WhereOrg},
	"CreateRunnerVersionUpload": {auth.RunnersWrite, WhereOrg},
	"RemoveRunnerVersion":       {auth.RunnersWrite, WhereOrg},

	"ListRunners":    {auth.RunnersRead, WhereFilter},
	"GetRunner":      {auth.RunnersRead, WhereRunner},
	"ListRunnerJobs": {auth.RunnersRead, WhereRunner},
	"RevokeRunner":   {auth.RunnersWrite, WhereRunner},

	"ListAlarms":       {auth.RunnersRead, WhereFilter},
	"AcknowledgeAlarm": {auth.RunnersWrite, WhereAlarm},

	"ListAlerts":       {auth.InstallsRead, WhereList},
	"GetAlert":         {auth.InstallsRead, WhereAlert},
	"AcknowledgeAlert": {auth.WorkflowsWrite, WhereAlert},
	"ListAlertMutes":   {auth.InstallsRead, WhereList},
	"CreateAlertMute":  {auth.InstallsWrite, WhereList}, // of installs where the caller may
	"DeleteAlertMute":  {auth.InstallsWrite, WhereList},
	"ListIncidents":    {auth.InstallsRead, WhereList},
	"GetIncident":      {auth.InstallsRead, WhereList}, // with the alerts that the caller may see

	"ListEvents": {auth.InstallsRead, WhereList}, // each event is filtered by where it happened and of which kind it is
	// A webhook sends what happens everywhere in the org to an address outside.
	"ListWebhooks":          {auth.WebhooksRead, WhereOrg},
	"CreateWebhook":         {auth.WebhooksWrite, WhereOrg},
	"GetWebhook":            {auth.WebhooksRead, WhereOrg},
	"UpdateWebhook":         {auth.WebhooksWrite, WhereOrg},
	"DeleteWebhook":         {auth.WebhooksWrite, WhereOrg},
	"TestWebhook":           {auth.WebhooksWrite, WhereOrg},
	"ReplayWebhook":         {auth.WebhooksWrite, WhereOrg},
	"ListWebhookDeliveries": {auth.WebhooksRead, WhereOrg},
}

// Permissions is the table as package auth takes it.
func Permissions() auth.Routes {
	all := auth.Routes{}
	for operation, route := range Routes {
		all[operation] = route.Permission
	}
	return all
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
