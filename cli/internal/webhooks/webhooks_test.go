package webhooks_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/webhooks"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

const secret = "whsec_c2VjcmV0"

// berth stands in for the control plane: it keeps what it was asked, and answers with
// one webhook and the deliveries of a test.
type berth struct {
	asked  []string
	result ctlapi.WebhookDelivery // of a test
	tested bool
}

// ServeHTTP implements http.Handler.
func (b *berth) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	line := strings.TrimSpace(r.Method + " " + r.URL.Path + " " + string(body))
	if strings.HasPrefix(r.URL.Path, "/webhooks") && !strings.HasSuffix(r.URL.Path, "/deliveries") {
		b.asked = append(b.asked, line)
	}
	hook := ctlapi.Webhook{ID: "whk_1", Name: "pager", URL: "https://hooks.example.com/berth", State: ctlapi.WebhookStateEnabled, Secrets: 1, Dead: 2}
	answer := func(status int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
	switch {
	case strings.HasPrefix(r.URL.Path, "/apps/"): // no app has the beginning of an id as its name
		answer(http.StatusNotFound, ctlapi.Problem{Status: http.StatusNotFound, Title: "not found"})
	case r.URL.Path == "/apps":
		answer(http.StatusOK, ctlapi.AppPage{Items: []ctlapi.App{{ID: "app_01jd2x7q9zr8w3v5k6m4n0tgha", Name: "hello"}, {ID: "app_01zz2x7q9zr8w3v5k6m4n0tgha", Name: "shop"}}})
	case strings.HasSuffix(r.URL.Path, "/deliveries"):
		page := ctlapi.WebhookDeliveryPage{Items: []ctlapi.WebhookDelivery{{ID: "dlv_old", Cause: ctlapi.WebhookDeliveryCauseTest, State: ctlapi.WebhookDeliveryStateDelivered, Attempts: 1}}}
		if b.tested {
			page.Items = append([]ctlapi.WebhookDelivery{b.result}, page.Items...)
		}
		answer(http.StatusOK, page)
	case strings.HasSuffix(r.URL.Path, "/test"), strings.HasSuffix(r.URL.Path, "/replay"):
		b.tested = true
		answer(http.StatusAccepted, ctlapi.WebhookReplayed{Events: 2})
	case r.Method == http.MethodDelete:
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodPost:
		s := secret
		hook.Secret = &s
		answer(http.StatusCreated, hook)
	default:
		if strings.Contains(string(body), "rotate_secret") {
			s := secret
			hook.Secret = &s
		}
		answer(http.StatusOK, hook)
	}
}

// types runs `berth webhooks …`; format is what -o or --json says.
func (b *berth) types(t *testing.T, output, fields string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	server := httptest.NewServer(b)
	defer server.Close()
	var out, errOut bytes.Buffer
	c := &command.CLI{
		Streams: command.Streams{In: strings.NewReader(""), Out: &out, Err: &errOut}, Now: time.Now, OutputFlag: output, JSONFlag: fields,
		Getenv: func(name string) string {
			return map[string]string{"BERTH_URL": server.URL, "BERTH_TOKEN": "brt_x", "HOME": t.TempDir()}[name]
		},
	}
	cmd := webhooks.Command(c)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(t.Context())
	return out.String(), errOut.String(), err
}

func TestRequests(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"create pager --url https://a.example.com --kind change.*,workflow.failed --app hello --label tier=gold": `POST /webhooks {"apps":["hello"],"kinds":["change.*","workflow.failed"],"labels":{"tier":"gold"},"name":"pager","url":"https://a.example.com"}`,
		"update pager --kind= --disable":       `PATCH /webhooks/pager {"enabled":false,"kinds":[]}`,
		"update pager --label= --enable":       `PATCH /webhooks/pager {"enabled":true,"labels":{}}`,
		"update pager --install acme,globex":   `PATCH /webhooks/pager {"installs":["acme","globex"]}`,
		"update pager --app app_01jd,app_01zz": `PATCH /webhooks/pager {"apps":["app_01jd2x7q9zr8w3v5k6m4n0tgha","app_01zz2x7q9zr8w3v5k6m4n0tgha"]}`, // beginnings of ids
		"update pager --retire-secret":         `PATCH /webhooks/pager {"retire_secret":true}`,
		"replay pager --dead":                  `POST /webhooks/pager/replay {"dead":true}`,
		"replay pager --after 0 --up-to 9":     `POST /webhooks/pager/replay {"after":0,"up_to":9}`,
		"replay pager --delivery dlv_1":        `POST /webhooks/pager/replay {"delivery":"dlv_1"}`,
		"update pager":                         "", // refused, nothing is asked
		"update pager --label tier":            "",
		"replay pager":                         "",
		"replay pager --after -1":              "",
		"create UPPER --url https://a.b":       "",
		"create pager --url https://a -l tier": "",
	} {
		b := &berth{}
		_, _, err := b.types(t, "table", "", strings.Fields(line)...)
		var wants []string
		if want != "" {
			wants = []string{want}
		}
		if diff := cmp.Diff(wants, b.asked); diff != "" || (err != nil) != (want == "") {
			t.Errorf("%s: %v\n%s", line, err, diff)
		}
	}
}

func TestSecretIsShownOnceAndOnPurpose(t *testing.T) {
	t.Parallel()
	for _, line := range [][]string{{"create", "pager", "--url", "https://a.example.com"}, {"update", "pager", "--rotate-secret"}} {
		out, errOut, err := (&berth{}).types(t, "table", "", line...)
		if err != nil || out != secret+"\n" {
			t.Errorf("%v: %q, want the secret and nothing else; %v", line, out, err)
		}
		if strings.Contains(errOut, secret) || !strings.Contains(errOut, "receiver") {
			t.Errorf("%v says %q", line, errOut)
		}
		if out, _, err = (&berth{}).types(t, "json", "", line...); err != nil || !strings.Contains(out, secret) {
			t.Errorf("%v -o json: %s, %v", line, out, err)
		}
		for _, lost := range [][2]string{{"name", ""}, {"table", "id,name"}} { // nobody would ever see the secret
			b := &berth{}
			if _, _, err = b.types(t, lost[0], lost[1], line...); command.ExitCode(err) != command.ExitUsage || len(b.asked) > 0 {
				t.Errorf("%v %v: %v, asked %v", line, lost, err, b.asked)
			}
		}
	}
	out, errOut, err := (&berth{}).types(t, "table", "", "show", "pager")
	if err != nil || strings.Contains(out+errOut, secret) {
		t.Errorf("show: %q %q, %v", out, errOut, err)
	}
}

func TestDeleteAsks(t *testing.T) {
	t.Parallel()
	b := &berth{}
	_, errOut, err := b.types(t, "table", "", "delete", "pager")
	if command.ExitCode(err) != command.ExitUsage || len(b.asked) != 1 || !strings.Contains(errOut, "replayed: 2") {
		t.Errorf("%v, asked %v, said %q", err, b.asked, errOut)
	}
	b = &berth{}
	out, _, err := b.types(t, "table", "", "delete", "pager", "--confirm", "pager")
	if err != nil || out != "deleted webhook pager\n" || b.asked[len(b.asked)-1] != "DELETE /webhooks/whk_1" {
		t.Errorf("%q, %v, asked %v", out, err, b.asked)
	}
}

func TestTestTellsWhetherItArrived(t *testing.T) {
	t.Parallel()
	status, refused := http.StatusServiceUnavailable, "the receiver answered 503"
	for name, test := range map[string]struct {
		result ctlapi.WebhookDelivery
		err    string
	}{
		"taken":      {ctlapi.WebhookDelivery{ID: "dlv_1", Cause: "test", State: "delivered", Attempts: 1}, ""},
		"not taken":  {ctlapi.WebhookDelivery{ID: "dlv_1", Cause: "test", State: "pending", Attempts: 1, Status: &status, Error: &refused}, "answered 503"},
		"under way":  {ctlapi.WebhookDelivery{ID: "dlv_1", Cause: "test", State: "pending", Attempts: 1}, "not attempted within"},
		"an event":   {ctlapi.WebhookDelivery{ID: "dlv_1", Cause: "event", State: "delivered", Attempts: 1}, "not attempted within"},
		"an old one": {ctlapi.WebhookDelivery{ID: "dlv_old", Cause: "test", State: "delivered", Attempts: 1}, "not attempted within"},
	} {
		out, _, err := (&berth{result: test.result}).types(t, "table", "", "test", "pager", "--timeout", "100ms")
		switch {
		case test.err == "" && (err != nil || !strings.Contains(out, "delivered")):
			t.Errorf("%s: %q, %v", name, out, err)
		case test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)):
			t.Errorf("%s: %v, want %q", name, err, test.err)
		}
	}
}
