package api_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

func TestSaveChain(t *testing.T) {
	t.Parallel()
	record := func(seq int64) ctlapi.ChainRecord {
		return ctlapi.ChainRecord{Seq: seq, Body: base64.StdEncoding.EncodeToString([]byte("record " + strconv.FormatInt(seq, 10)))}
	}
	damaged := record(2)
	damaged.Body = "no base64!"
	for _, tc := range []struct {
		name    string
		records []ctlapi.ChainRecord
		want    string
		wrong   string
	}{
		{"none", nil, "", ""},
		{"several pages", []ctlapi.ChainRecord{record(1), record(2), record(3)}, "record 1\nrecord 2\nrecord 3\n", ""},
		{"one is left out", []ctlapi.ChainRecord{record(1), record(3)}, "record 1\n", "record 2 of the chain is missing"},
		{"one is damaged", []ctlapi.ChainRecord{record(1), damaged}, "record 1\n", "record 2 of the chain is missing"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			client := service(t, func(w http.ResponseWriter, r *http.Request) {
				after, _ := strconv.ParseInt(r.URL.Query().Get("after_seq"), 10, 64)
				page := ctlapi.ChainRecords{Items: []ctlapi.ChainRecord{}, HeadSeq: int64(len(tc.records))}
				for _, each := range tc.records { // two to a page
					if each.Seq > after && len(page.Items) < 2 {
						page.Items = append(page.Items, each)
					}
				}
				w.Header().Set("Content-Type", "application/json")
				_ = json.NewEncoder(w).Encode(page)
			})
			var got strings.Builder
			_, err := client.SaveChain(t.Context(), "org", &got)
			if got.String() != tc.want {
				t.Errorf("wrote %q, want %q", got.String(), tc.want)
			}
			if tc.wrong == "" && err != nil || tc.wrong != "" && (err == nil || !strings.Contains(err.Error(), tc.wrong)) {
				t.Errorf("got error %v, want %q", err, tc.wrong)
			}
		})
	}
}
