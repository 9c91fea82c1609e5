package localpg

import "testing"

func TestMajorVersion(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]int{
		"postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)": 15,
		"postgres (PostgreSQL) 18beta1":                        18,
		"postgres (PostgreSQL) 17":                             17,
		"postgres":                                             0,
	} {
		if got := majorVersion(line); got != want {
			t.Errorf("%s: got %d, want %d", line, got, want)
		}
	}
}
