package cli

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// megas is a value with a form of its own.
type megas int

func (s *megas) UnmarshalText(b []byte) error {
	if len(b) == 0 || b[len(b)-1] != 'M' {
		return errNoSize
	}
	*s = megas(len(b) - 1)
	return nil
}

var errNoSize = errors.New("a size such as 5M")

// probe has a parameter of each kind.
type probe struct {
	Name   string        `arg:"NAME"`
	Size   megas         `arg:"[SIZE]"`
	Rest   []string      `arg:"[REST…]"`
	T      string        `flag:"t"`
	Note   *string       `flag:"note,empty"`
	Label  []string      `flag:"label"`
	Sizes  []megas       `flag:"sizes"`
	Yes    bool          `flag:"yes,y"`
	N      int           `flag:"n" default:"20"`
	Limit  *int          `flag:"limit,l"`
	Expect uint64        `flag:"expect"`
	Hold   time.Duration `flag:"hold" default:"1m0s"`
	Place  string        `flag:"place" env:"CHATCTX_TEST_PLACE"`
	Old    bool          `flag:"new" old:"old"`
	dryRunFlag
}

// probed reads a command line of a command with these parameters.
func probed(words ...string) (*probe, error) {
	table := []*command{{name: "probe", run: in(func(*run, *probe) error { return nil })}}
	table[0].complete("probe")
	p, err := split(table, append([]string{"probe"}, words...))
	if err != nil {
		return nil, err
	}
	return p.in.(*probe), nil
}

// TestFlagValues reads each kind of value, and refuses what is none.
func TestFlagValues(t *testing.T) {
	_, err := probed("name", "--t=a", "--t=b=c", "--label=x, y", "--label= z", "-y", "--n=-0x10", "--expect=18446744073709551615", "--hold=90s", "--sizes=1M", "--sizes", "22M",
		"--old", "--dry-run", "333M", "--note=", "-l5", "--", "r1", "-r2", "")
	if err == nil {
		t.Fatal("an empty argument is taken")
	}
	got, err := probed("name", "--t=a", "--t=b=c", "--label=x, y", "--label= z", "-y", "--n=-0x10", "--expect=18446744073709551615", "--hold=90s", "--sizes=1M", "--sizes", "22M",
		"--old", "--dry-run", "333M", "--note=", "-l5", "--", "r1", "-r2")
	if err != nil {
		t.Fatal(err)
	}
	if got.T != "b=c" || !slices.Equal(got.Label, []string{"x, y", " z"}) || !got.Yes || got.N != -16 || got.Expect != 1<<64-1 || got.Hold != 90*time.Second ||
		!slices.Equal(got.Sizes, []megas{1, 2}) || !got.Old || !got.DryRun || got.Note == nil || *got.Note != "" || got.Limit == nil || *got.Limit != 5 {
		t.Errorf("read %+v", got)
	}
	if got.Name != "name" || got.Size != 3 || !slices.Equal(got.Rest, []string{"r1", "-r2"}) {
		t.Errorf("read the arguments %q, %d, %q", got.Name, got.Size, got.Rest)
	}
	for _, place := range []string{"", "here"} { // an empty variable is unset
		t.Setenv("CHATCTX_TEST_PLACE", place)
		if got, err = probed("x", "--n=0"); err != nil || got.Place != place {
			t.Errorf("place is %q, not %q, error %v", got.Place, place, err)
		}
	}
	if got.N != 0 || got.Hold != time.Minute || got.Yes || got.Label != nil || got.T != "" || got.Note != nil || got.Limit != nil || got.Size != 0 || got.Rest != nil {
		t.Errorf("without flags: %+v", got)
	}
	if got, err = probed("x", "--place=there"); err != nil || got.Place != "there" || got.N != 20 {
		t.Errorf("a flag stands beside its variable: %+v, %v", got, err)
	}
	for kept, want := range map[string]string{
		"--n=1.5":                    `-n takes a whole number, not "1.5"`,
		"--n=9223372036854775808":    `-n takes a whole number, not "9223372036854775808"`,
		"--limit=x":                  `--limit takes a whole number, not "x"`,
		"--expect=-1":                `--expect takes a whole number, not "-1"`,
		"--hold=90":                  `--hold takes a time such as 90s, 5m or 2h, not "90"`,
		"--yes=maybe\x1b":            `--yes takes true or false, or stands alone, not "maybe\x1b"`,
		"--expect=\u0661":            `--expect takes a whole number, not "` + "\u0661" + `"`,
		"--hold=10000000000000000ns": "",
		"--sizes=5":                  `--sizes takes a size such as 5M, not "5"`,
		"5":                          `SIZE takes a size such as 5M, not "5"`,
		"--t=":                       "--t is empty",
	} {
		if want != "" {
			want = "probe: " + want
		}
		if _, err := probed("x", kept); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%q: %v, want %q", kept, err, want)
		}
	}
}
