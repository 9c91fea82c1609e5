package sync

import "testing"

func TestUploading(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		sizes []int
		want  string
	}{
		{"nothing is missing", nil, ""},
		{"little", []int{1 << 19, 1<<19 - 1}, ""},
		{"one", []int{1 << 20}, "uploading 1 archive, 1.0 MiB"},
		{"several", []int{10 << 20, 5 << 19}, "uploading 2 archives, 12.5 MiB"},
	} {
		if got := uploading(tc.sizes); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}
