package up

import "testing"

func TestStartIn(t *testing.T) {
	t.Parallel()
	const rest = " 1 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 "
	for name, tt := range map[string]struct {
		stat, want string
		ended      bool
	}{
		"it runs":                                {stat: "7 (a) S" + rest + "9 0 4711 0", want: "4711"},
		"a name with a parenthesis":              {stat: "7 (a) Z) S" + rest + "9 0 4711 0", want: "4711"},
		"a zombie":                               {stat: "7 (a) Z" + rest + "1 0 4711 0", ended: true},
		"a zombie whose threads are left":        {stat: "7 (a) Z" + rest + "3 0 4711 0", want: "4711"},
		"a zombie with many threads left":        {stat: "7 (a) Z" + rest + "12 0 4711 0", want: "4711"},
		"it is being removed":                    {stat: "7 (a) X" + rest + "0 0 4711 0", ended: true},
		"an entry that nobody knows how to read": {stat: "7 (a) S 1", ended: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := startIn([]byte(tt.stat))
			if got != tt.want || (err != nil) != tt.ended {
				t.Errorf("started at %q, %v; want %q, ended %v", got, err, tt.want, tt.ended)
			}
		})
	}
}
