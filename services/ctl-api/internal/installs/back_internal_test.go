package installs

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
)

func TestReturned(t *testing.T) {
	t.Parallel()
	defined := []appconfig.Input{{Name: "size"}, {Name: "zone"}, {Name: "token", Sensitive: true}}
	for _, tt := range []struct {
		name      string
		now, was  Inputs
		plain     Values
		sensitive Values
	}{
		{"as it was", Inputs{Plain: Values{"size": "2", "zone": "b"}}, Inputs{Plain: Values{"size": "1"}}, Values{"size": "1"}, Values{}},
		{
			"what the release of then does not know stays", Inputs{Plain: Values{"size": "2", "speed": "9"}, Sensitive: Values{"pin": "x"}}, Inputs{Plain: Values{"size": "1", "old": "o"}},
			Values{"size": "1", "speed": "9"}, Values{"pin": "x"},
		},
		{"sensitive then", Inputs{}, Inputs{Plain: Values{"token": "t"}}, Values{}, Values{"token": "t"}},
		{"sensitive now", Inputs{Sensitive: Values{"zone": "b"}}, Inputs{Plain: Values{"zone": "a"}}, Values{}, Values{"zone": "a"}},
		{"none then", Inputs{Plain: Values{"size": "2"}}, Inputs{}, Values{}, Values{}},
	} {
		got := returned(defined, tt.now, tt.was)
		if diff := cmp.Diff(Inputs{Plain: tt.plain, Sensitive: tt.sensitive}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}
