package api

import (
	"context"
	"errors"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/installs"
	"github.com/berth-dev/berth/services/ctl-api/internal/paging"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// ListMembers answers accounts with their grants.
func (s *Server) ListMembers(ctx context.Context, req apigen.ListMembersRequestObject) (apigen.ListMembersResponseObject, error) {
	limit := paging.Limit(req.Params.Limit)
	var out apigen.ListMembers200JSONResponse
	err := s.read(ctx, func(ctx context.Context, tx *database.Tx) error {
		rows, err := tx.ListAccounts(ctx, ctldb.ListAccountsParams{After: optional.Value(req.Params.After), Most: int32(limit + 1)})
		if err != nil {
			return err
		}
		rows, out.Next = paging.Page(rows, limit, func(a ctldb.Account) string { return a.ID })
		grants, err := tx.ListGrantsOfAccounts(ctx, convert(rows, func(a ctldb.Account) string { return a.ID }))
		out.Items = convert(rows, func(a ctldb.Account) apigen.Member { return memberView(a, grants) })
		return err
	})
	return out, err
}

// CreateMember adds an account with one grant.
func (s *Server) CreateMember(ctx context.Context, req apigen.CreateMemberRequestObject) (apigen.CreateMemberResponseObject, error) {
	var out apigen.CreateMember201JSONResponse
	err := s.write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		grant, err := grantFor(ctx, tx, *req.Body)
		if err != nil {
			return "", err
		}
		account, err := tx.InsertAccount(ctx, ctldb.InsertAccountParams{
			ID: id.New(id.Account), Kind: string(req.Body.Kind), Name: req.Body.Name, Email: req.Body.Email,
		})
		if err != nil {
			return "", err
		}
		grant.ID, grant.AccountID, grant.CreatedBy = id.New(id.Grant), account.ID, optional.Of(auth.PrincipalOf(ctx).AccountName)
		row, err := tx.InsertGrant(ctx, grant)
		out = apigen.CreateMember201JSONResponse(memberView(account, []ctldb.Grant{row}))
		return "add member " + account.Name + " as " + row.Role, err
	})
	return out, err
}

// grantFor finds what the role of a new member is limited to.
func grantFor(ctx context.Context, tx *database.Tx, req apigen.MemberRequest) (ctldb.InsertGrantParams, error) {
	grant := ctldb.InsertGrantParams{Role: string(req.Role)}
	scopes := 0
	if ref := optional.Value(req.Customer); ref != "" {
		row, err := tx.FindCustomer(ctx, ref)
		if err != nil {
			return grant, missing(err, "there is no customer %q", ref)
		}
		grant.CustomerID, scopes = &row.ID, scopes+1
	}
	if ref := optional.Value(req.App); ref != "" {
		row, err := tx.FindApp(ctx, ref)
		if err != nil {
			return grant, missing(err, "there is no app %q", ref)
		}
		grant.AppID, scopes = &row.ID, scopes+1
	}
	if ref := optional.Value(req.Install); ref != "" {
		row, err := installs.Find(ctx, tx, ref)
		if err != nil {
			return grant, err
		}
		grant.InstallID, scopes = &row.ID, scopes+1
	}
	switch {
	case scopes > 1:
		return grant, fault.Newf(fault.ErrInvalid, "a grant can be limited to one customer, one app or one install, not to several")
	case auth.Role(req.Role) == auth.RoleCustomer && grant.CustomerID == nil:
		return grant, fault.Newf(fault.ErrInvalid, "a grant of the role customer must name the customer it is limited to")
	case auth.Role(req.Role) == auth.RoleAdmin && scopes > 0:
		return grant, fault.Newf(fault.ErrInvalid, "an admin grant covers the whole org")
	}
	return grant, nil
}

// RemoveMember disables an account and revokes its tokens.
func (s *Server) RemoveMember(ctx context.Context, req apigen.RemoveMemberRequestObject) (apigen.RemoveMemberResponseObject, error) {
	err := s.write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		account, err := findMember(ctx, tx, req.Member)
		if err != nil {
			return "", err
		}
		if account.DisabledAt != nil {
			return "", nil
		}
		admins, err := tx.CountOtherAdmins(ctx, account.ID)
		if err != nil {
			return "", err
		}
		if admins == 0 {
			return "", fault.Newf(fault.ErrConflict, "%s is the last admin of the org", account.Name)
		}
		if _, err := tx.DisableAccount(ctx, account.ID); err != nil {
			return "", err
		}
		if _, err := tx.RevokeTokensOfAccount(ctx, account.ID); err != nil {
			return "", err
		}
		s.revoked(tx, account.ID)
		return "remove member " + account.Name, nil
	})
	if err != nil {
		return nil, err
	}
	return apigen.RemoveMember204Response{}, nil
}

func findMember(ctx context.Context, tx *database.Tx, ref string) (ctldb.Account, error) {
	account, err := tx.FindAccount(ctx, ref)
	return account, missing(err, "there is no member %q", ref)
}

// missing gives a thing that is not there a name.
func missing(err error, format string, args ...any) error {
	if errors.Is(err, fault.ErrNotFound) {
		return fault.Newf(fault.ErrNotFound, format, args...)
	}
	return err
}

func memberView(a ctldb.Account, grants []ctldb.Grant) apigen.Member {
	m := apigen.Member{ID: a.ID, Name: a.Name, Kind: apigen.MemberKind(a.Kind), Email: a.Email, CreatedAt: a.CreatedAt, DisabledAt: a.DisabledAt, Grants: []apigen.Grant{}}
	for _, g := range grants {
		if g.AccountID == a.ID {
			m.Grants = append(m.Grants, apigen.Grant{Role: apigen.Role(g.Role), CustomerID: g.CustomerID, AppID: g.AppID, InstallID: g.InstallID})
		}
	}
	return m
}
