package enginepod

import (
	"errors"
	"os"
	"testing"
)

// An engine is started once, and not at all after it was given up.
func TestMarker(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		steps string // b: a pod begins, e: its engine ends, g: the agent gives up
		began bool   // what the last g says
		fails error  // of the last step
	}{
		{name: "given up before it began", steps: "g", began: false},
		{name: "given up twice", steps: "gg", began: false},
		{name: "ended", steps: "beg", began: true},
		{name: "ended, asked again", steps: "begg", began: true},
		{name: "given up while it runs", steps: "bg", fails: errAlive},
		{name: "begun while it runs", steps: "bb", fails: errAlive},
		{name: "begun again", steps: "beb", fails: errUsed},
		{name: "begun after it was given up", steps: "gb", fails: errUsed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := Folder(t.TempDir() + "/pod")
			if err := f.Make(Start{}, os.Getuid(), os.Getgid()); err != nil {
				t.Fatal(err)
			}
			var engine *os.File
			var began bool
			var err error
			for i, step := range tc.steps {
				if err != nil {
					t.Fatalf("step %d: %v", i, err)
				}
				switch step {
				case 'b':
					var held *os.File
					if held, err = begin(f.marker()); err == nil {
						engine = held
					}
				case 'e':
					err = engine.Close()
				case 'g':
					began, err = giveUp(f.marker())
				}
			}
			if !errors.Is(err, tc.fails) || began != tc.began {
				t.Errorf("%s: began %v, error %v; want %v, %v", tc.steps, began, err, tc.began, tc.fails)
			}
		})
	}
}
