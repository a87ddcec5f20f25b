package cli

import (
	"slices"
	"testing"
	"time"
)

// TestFlagValues reads each kind of value, and refuses what is none.
func TestFlagValues(t *testing.T) {
	flags := []*flag{{name: "t"}, {name: "label", kind: several}, {name: "yes", kind: onOff}, {name: "n", kind: number, otherwise: "20"},
		{name: "expect", kind: revision}, {name: "hold", kind: span, otherwise: "1m0s"}, {name: "place", env: "CHATCTX_TEST_PLACE"}}
	read := func(kept ...string) (*run, error) {
		v, err := readValues(flags, kept, nil)
		return &run{flags: v}, err
	}
	r, err := read("--t=a", "--t=b=c", "--label=x, y", "--label= z", "--yes=true", "--n=-0x10", "--expect=18446744073709551615", "--hold=90s")
	if err != nil {
		t.Fatal(err)
	}
	if r.flag("t") != "b=c" || !slices.Equal(r.texts("label"), []string{"x, y", " z"}) || !r.is("yes") || r.number("n") != -16 || r.revision("expect") != 1<<64-1 || r.span("hold") != 90*time.Second {
		t.Errorf("read %+v", r.flags.given)
	}
	for _, place := range []string{"", "here"} { // an empty variable is unset
		t.Setenv("CHATCTX_TEST_PLACE", place)
		if r, err = read("--n=0"); err != nil || r.flag("place") != place || r.given("place") != (place != "") {
			t.Errorf("place is %q, given %v, error %v", r.flag("place"), r.given("place"), err)
		}
	}
	if r.number("n") != 0 || r.span("hold") != time.Minute || r.given("hold") || r.is("yes") || r.texts("label") != nil || r.flag("none") != "" {
		t.Errorf("without flags: %+v", r.flags.given)
	}
	if r, err = read("--place=there"); err != nil || !slices.Equal(all[string](r.flags, "place"), []string{"there"}) {
		t.Errorf("a flag stands beside its variable: %q, %v", all[string](r.flags, "place"), err)
	}
	for kept, want := range map[string]string{
		"--n=1.5":                    `-n takes a whole number, not "1.5"`,
		"--n=9223372036854775808":    `-n takes a whole number, not "9223372036854775808"`,
		"--expect=-1":                `--expect takes a whole number, not "-1"`,
		"--hold=90":                  `--hold takes a time such as 90s, 5m or 2h, not "90"`,
		"--yes=maybe\x1b":            `--yes takes true or false, or stands alone, not "maybe\x1b"`,
		"--expect=\u0661":            `--expect takes a whole number, not "` + "\u0661" + `"`,
		"--hold=10000000000000000ns": "",
	} {
		if _, err := read(kept); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%q: %v, want %q", kept, err, want)
		}
	}
}

// TestFlagsAbove: a command's flag hides a shared one of its name, which hides that of the chat in which the command was typed.
func TestFlagsAbove(t *testing.T) {
	chat, err := readValues([]*flag{{name: "context"}, {name: "model"}}, []string{"--context=old", "--model=m"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	shared, err := readValues([]*flag{{name: "context"}, {name: "store"}}, []string{"--store=s"}, chat)
	if err != nil {
		t.Fatal(err)
	}
	own, err := readValues([]*flag{{name: "store", kind: onOff}}, nil, shared)
	if err != nil {
		t.Fatal(err)
	}
	r := &run{flags: own}
	if r.flag("context") != "" || r.flag("model") != "m" || r.flag("store") != "" || r.is("store") || r.given("context") || !r.given("model") {
		t.Errorf("context %q, model %q, store %q", r.flag("context"), r.flag("model"), r.flag("store"))
	}
	if r.shared("store") != "s" || r.shared("context") != "" {
		t.Errorf("shared: store %q, context %q", r.shared("store"), r.shared("context"))
	}
}
