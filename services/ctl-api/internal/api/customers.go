package api

import (
	"context"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/paging"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// ListCustomers answers customers by name.
func (s *Server) ListCustomers(ctx context.Context, req apigen.ListCustomersRequestObject) (apigen.ListCustomersResponseObject, error) {
	limit := paging.Limit(req.Params.Limit)
	var out apigen.ListCustomers200JSONResponse
	err := s.read(ctx, func(ctx context.Context, tx *database.Tx) error {
		rows, err := tx.ListCustomers(ctx, ctldb.ListCustomersParams{After: optional.Value(req.Params.After), Most: int32(limit + 1)})
		rows, out.Next = paging.Page(rows, limit, func(c ctldb.Customer) string { return c.Name })
		if err != nil {
			return err
		}
		out.Items, err = convertAll(rows, customerView)
		return err
	})
	return out, err
}

// CreateCustomer adds a customer.
func (s *Server) CreateCustomer(ctx context.Context, req apigen.CreateCustomerRequestObject) (apigen.CreateCustomerResponseObject, error) {
	var out apigen.CreateCustomer201JSONResponse
	err := s.write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		row, err := tx.InsertCustomer(ctx, ctldb.InsertCustomerParams{ID: id.New(id.Customer), Name: req.Body.Name, Labels: labelsJSON(req.Body.Labels)})
		if err != nil {
			return "", err
		}
		view, err := customerView(row)
		out = apigen.CreateCustomer201JSONResponse(view)
		return "add customer " + row.Name, err
	})
	return out, err
}

// GetCustomer answers one customer.
func (s *Server) GetCustomer(ctx context.Context, req apigen.GetCustomerRequestObject) (apigen.GetCustomerResponseObject, error) {
	var out apigen.GetCustomer200JSONResponse
	err := s.read(ctx, func(ctx context.Context, tx *database.Tx) error {
		row, err := tx.FindCustomer(ctx, req.Customer)
		if err != nil {
			return missing(err, "there is no customer %q", req.Customer)
		}
		view, err := customerView(row)
		out = apigen.GetCustomer200JSONResponse(view)
		return err
	})
	return out, err
}

func customerView(c ctldb.Customer) (apigen.Customer, error) {
	labels, err := labelsOf(c.Labels)
	return apigen.Customer{ID: c.ID, Name: c.Name, Labels: labels, CreatedAt: c.CreatedAt}, err
}
