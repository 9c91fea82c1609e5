package api

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// SaveChain writes all records of a chain, as they are stored, one per line. It
// returns the number of the last; a gap between them is an error.
func (c *Client) SaveChain(ctx context.Context, chain string, w io.Writer) (int64, error) {
	var last int64
	for {
		after, limit := last, PageSize
		resp, err := c.ListChainRecordsWithResponse(ctx, chain, &ctlapi.ListChainRecordsParams{AfterSeq: &after, Limit: &limit})
		if err != nil {
			return last, err
		}
		page, err := Body(resp.JSON200)
		if err != nil {
			return last, err
		}
		for _, record := range page.Items {
			line, err := base64.StdEncoding.DecodeString(record.Body)
			if err != nil || record.Seq != last+1 {
				return last, fmt.Errorf("record %d of the chain is missing from the answer, or damaged", last+1)
			}
			if _, err := w.Write(append(line, '\n')); err != nil {
				return last, err
			}
			last = record.Seq
		}
		if len(page.Items) == 0 || last >= page.HeadSeq {
			return last, nil
		}
	}
}
