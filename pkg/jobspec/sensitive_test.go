package jobspec_test

import (
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/jobspec"
)

func TestDigestsOfSensitiveValues(t *testing.T) {
	key := jobspec.DigestKey("key of an install")
	shown := key.Show([]byte(`"hunter2"`), "aws_db_instance.main", "password")
	if digest, is := jobspec.IsSensitive(shown); !is || len(digest) != 12 || strings.Contains(shown, "hunter2") {
		t.Fatalf("got %q: digest %q, sensitive %t", shown, digest, is)
	}
	if again := key.Show([]byte(`"hunter2"`), "aws_db_instance.main", "password"); again != shown {
		t.Errorf("the same value in its place: %q, then %q", shown, again)
	}
	for what, other := range map[string]string{
		"another value":                      key.Show([]byte(`"hunter3"`), "aws_db_instance.main", "password"),
		"another attribute":                  key.Show([]byte(`"hunter2"`), "aws_db_instance.main", "passphrase"),
		"another object":                     key.Show([]byte(`"hunter2"`), "aws_db_instance.copy", "password"),
		"the same letters, parted elsewhere": key.Show([]byte(`"hunter2"`), "aws_db_instance.mainp", "assword"),
		"a place that the value continues":   key.Show([]byte(`d"hunter2"`), "aws_db_instance.main", "passwor"),
		"another key":                        jobspec.DigestKey("another").Show([]byte(`"hunter2"`), "aws_db_instance.main", "password"),
	} {
		if other == shown {
			t.Errorf("%s has the same digest", what)
		}
	}
	if got := jobspec.DigestKey(nil).Show([]byte(`"hunter2"`), "a", "b"); got != jobspec.Sensitive {
		t.Errorf("without a key: %q", got)
	}
}

func TestWhatStandsForSensitiveValues(t *testing.T) {
	for shown, want := range map[string]string{
		"(sensitive)": "", "(sensitive, digest 0123456789ab)": "0123456789ab",
	} {
		if digest, is := jobspec.IsSensitive(shown); !is || digest != want {
			t.Errorf("%q: %q %t", shown, digest, is)
		}
	}
	for _, shown := range []string{"", `"(sensitive)"`, "(known after apply)", "(sensitive, digest 01", `"(sensitive, digest 01)"`, "{}"} {
		if _, is := jobspec.IsSensitive(shown); is {
			t.Errorf("%q counts as sensitive", shown)
		}
	}
}
