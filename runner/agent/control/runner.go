package control

import (
	"context"
	"net/http"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/customersecret"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/roles"
)

// PhoneHome reports that the stack was applied. It may be repeated with the same
// outputs.
func (c *Client) PhoneHome(ctx context.Context, secret string, outputs map[string]any) error {
	const what = "phone home"
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	resp, err := c.api.PhoneHomeWithResponse(ctx, runnerapi.PhoneHome{Secret: secret, Outputs: outputs})
	switch {
	case err != nil:
		return unreachable(what, err)
	case resp.JSON200 == nil:
		return problem(what, resp.StatusCode(), resp.ApplicationProblemJSONDefault)
	}
	return nil
}

// Enrol binds the runner's key. It may be repeated.
func (c *Client) Enrol(ctx context.Context, in runnerapi.Enrolment) (runnerapi.Identity, error) {
	const what = "enrol"
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	resp, err := c.api.EnrolWithResponse(ctx, in)
	switch {
	case err != nil:
		return runnerapi.Identity{}, unreachable(what, err)
	case resp.JSON200 == nil:
		return runnerapi.Identity{}, problem(what, resp.StatusCode(), resp.ApplicationProblemJSONDefault)
	}
	return *resp.JSON200, nil
}

// OpenSession asks for a session. Its token is carried once Use is called.
func (c *Client) OpenSession(ctx context.Context, in runnerapi.SessionRequest) (runnerapi.Session, error) {
	const what = "open session"
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	c.signer.SetSession("")
	resp, err := c.api.OpenSessionWithResponse(ctx, in)
	switch {
	case err != nil:
		return runnerapi.Session{}, unreachable(what, err)
	case resp.JSON200 == nil:
		return runnerapi.Session{}, problem(what, resp.StatusCode(), resp.ApplicationProblemJSONDefault)
	}
	return *resp.JSON200, nil
}

// Use carries the token of a session from now on.
func (c *Client) Use(session runnerapi.Session) { c.signer.SetSession(session.Token) }

// Claim asks for work and waits for it.
func (c *Client) Claim(ctx context.Context, in runnerapi.ClaimRequest) ([]runnerapi.Assignment, error) {
	const what = "claim jobs"
	ctx, cancel := context.WithTimeout(ctx, holdTimeout)
	defer cancel()
	resp, err := c.api.ClaimJobsWithResponse(ctx, in)
	switch {
	case err != nil:
		return nil, unreachable(what, err)
	case resp.JSON200 == nil:
		return nil, problem(what, resp.StatusCode(), resp.ApplicationProblemJSONDefault)
	}
	return resp.JSON200.Jobs, nil
}

// Renew keeps leases, and tells what the engines of some of them do right now.
func (c *Client) Renew(ctx context.Context, in runnerapi.RenewRequest) ([]runnerapi.RenewedLease, error) {
	const what = "renew leases"
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	resp, err := c.api.RenewLeasesWithResponse(ctx, in)
	switch {
	case err != nil:
		return nil, unreachable(what, err)
	case resp.JSON200 == nil:
		return nil, problem(what, resp.StatusCode(), resp.ApplicationProblemJSONDefault)
	}
	return resp.JSON200.Leases, nil
}

// Settings waits for settings newer than after; version is 0 when there are
// none.
func (c *Client) Settings(ctx context.Context, after int64) (env capsule.Envelope, version int64, err error) {
	const what = "get settings"
	ctx, cancel := context.WithTimeout(ctx, holdTimeout)
	defer cancel()
	wait := WaitSeconds
	resp, err := c.api.GetSettingsWithResponse(ctx, &runnerapi.GetSettingsParams{AfterVersion: &after, WaitSeconds: &wait})
	switch {
	case err != nil:
		return env, 0, unreachable(what, err)
	case resp.JSON200 != nil:
		return resp.JSON200.Envelope, resp.JSON200.Version, nil
	case resp.StatusCode() == http.StatusNoContent:
		return env, 0, nil
	}
	return env, 0, problem(what, resp.StatusCode(), resp.ApplicationProblemJSONDefault)
}

// ReportRun reports a run of a scheduled action.
func (c *Client) ReportRun(ctx context.Context, runID string, run runnerapi.Run) (runnerapi.RunRecorded, error) {
	const what = "report run"
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	resp, err := c.api.PutRunWithResponse(ctx, runID, run)
	switch {
	case err != nil:
		return runnerapi.RunRecorded{}, unreachable(what, err)
	case resp.JSON200 == nil:
		return runnerapi.RunRecorded{}, problem(what, resp.StatusCode(), resp.ApplicationProblemJSONDefault)
	}
	return *resp.JSON200, nil
}

// ReportSamples tells the runner's own numbers.
func (c *Client) ReportSamples(ctx context.Context, s runnerapi.Samples) error {
	const what = "report numbers"
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	resp, err := c.api.PutSamplesWithResponse(ctx, s)
	switch {
	case err != nil:
		return unreachable(what, err)
	case resp.StatusCode() != http.StatusNoContent:
		return problem(what, resp.StatusCode(), resp.ApplicationProblemJSONDefault)
	}
	return nil
}

// ReportRemediation tells of a remediation; hold says why its next attempt should wait.
func (c *Client) ReportRemediation(ctx context.Context, remediation string, r runnerapi.Remediation) (hold string, err error) {
	const what = "report remediation"
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	resp, err := c.api.PutRemediationWithResponse(ctx, remediation, r)
	switch {
	case err != nil:
		return "", unreachable(what, err)
	case resp.JSON200 == nil:
		return "", problem(what, resp.StatusCode(), resp.ApplicationProblemJSONDefault)
	case resp.JSON200.Hold == nil:
		return "", nil
	}
	return *resp.JSON200.Hold, nil
}

// RegistryToken returns a token for the org's registry.
func (c *Client) RegistryToken(ctx context.Context, actions ...runnerapi.RegistryAction) (runnerapi.RegistryToken, error) {
	const what = "get registry token"
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	resp, err := c.api.CreateRegistryTokenWithResponse(ctx, runnerapi.RegistryTokenRequest{Actions: actions})
	switch {
	case err != nil:
		return runnerapi.RegistryToken{}, unreachable(what, err)
	case resp.JSON200 == nil:
		return runnerapi.RegistryToken{}, problem(what, resp.StatusCode(), resp.ApplicationProblemJSONDefault)
	}
	return *resp.JSON200, nil
}

// ChainHead says where the copy of the chain ends.
func (c *Client) ChainHead(ctx context.Context) (runnerapi.ChainHead, error) {
	const what = "get chain head"
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	resp, err := c.api.GetChainHeadWithResponse(ctx)
	switch {
	case err != nil:
		return runnerapi.ChainHead{}, unreachable(what, err)
	case resp.JSON200 == nil:
		return runnerapi.ChainHead{}, problem(what, resp.StatusCode(), resp.ApplicationProblemJSONDefault)
	}
	return *resp.JSON200, nil
}

// AppendChain copies records. After a refusal, head is where the copy ends.
func (c *Client) AppendChain(ctx context.Context, records []runnerapi.ChainRecord) (head runnerapi.ChainHead, err error) {
	const what = "copy chain"
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	resp, err := c.api.AppendChainWithResponse(ctx, runnerapi.ChainAppend{Records: records})
	switch {
	case err != nil:
		return head, unreachable(what, err)
	case resp.JSON200 != nil:
		return *resp.JSON200, nil
	case resp.ApplicationProblemJSON409 != nil:
		p := resp.ApplicationProblemJSON409
		return runnerapi.ChainHead{Seq: p.Seq, Hash: p.Hash},
			&Error{What: what, Status: resp.StatusCode(), Code: p.Code, Detail: deref(p.Detail), Remedy: deref(p.Remedy)}
	}
	return head, problem(what, resp.StatusCode(), resp.ApplicationProblemJSONDefault)
}

// PutRoles reports which roles are on, and how they were switched.
func (c *Client) PutRoles(ctx context.Context, report roles.Report) error {
	const what = "tell roles"
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	in := runnerapi.RolesReport{Roles: []runnerapi.RoleState{}, Switches: []runnerapi.RoleSwitch{}}
	for _, r := range report.Roles {
		state := runnerapi.RoleState{
			Name: r.Name, Known: r.Known, Written: r.Written, Kind: runnerapi.RoleStateKind(r.Kind), DisplayName: given(r.DisplayName), Description: given(r.Description),
		}
		if r.On != nil {
			state.SwitchID = &r.On.ID
		}
		in.Roles = append(in.Roles, state)
	}
	for _, s := range report.Switches {
		told := runnerapi.RoleSwitch{ID: s.ID, Role: s.Role, Name: s.Name, On: s.On, At: s.At, By: s.By, Reason: given(s.Reason)}
		if !s.Until.IsZero() {
			told.Until = &s.Until
		}
		in.Switches = append(in.Switches, told)
	}
	resp, err := c.api.PutRolesWithResponse(ctx, in)
	switch {
	case err != nil:
		return unreachable(what, err)
	case resp.StatusCode() != http.StatusNoContent:
		return problem(what, resp.StatusCode(), resp.ApplicationProblemJSONDefault)
	}
	return nil
}

// PutConsents reports how changes stand with the customer's side.
func (c *Client) PutConsents(ctx context.Context, list []runnerapi.Consent) error {
	const what = "tell consents"
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	resp, err := c.api.PutConsentsWithResponse(ctx, runnerapi.ConsentsReport{Consents: append([]runnerapi.Consent{}, list...)})
	switch {
	case err != nil:
		return unreachable(what, err)
	case resp.StatusCode() != http.StatusNoContent:
		return problem(what, resp.StatusCode(), resp.ApplicationProblemJSONDefault)
	}
	return nil
}

// given is a text that may be left out.
func given(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// PutSecrets reports which versions of the customer's secrets there are.
func (c *Client) PutSecrets(ctx context.Context, list []customersecret.Version) error {
	const what = "tell secrets"
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	in := runnerapi.SecretsReport{Secrets: []runnerapi.SecretState{}}
	for _, v := range list {
		in.Secrets = append(in.Secrets, runnerapi.SecretState{
			Name: v.Name, Version: v.Version, Set: v.Set, Digest: v.Digest, SetBy: runnerapi.SecretStateSetBy(v.SetBy), SetAt: v.SetAt,
		})
	}
	resp, err := c.api.PutSecretsWithResponse(ctx, in)
	switch {
	case err != nil:
		return unreachable(what, err)
	case resp.StatusCode() != http.StatusNoContent:
		return problem(what, resp.StatusCode(), resp.ApplicationProblemJSONDefault)
	}
	return nil
}
