package testkit

import "testing"

func TestUniqueNames(t *testing.T) {
	for raw, unique := range map[string]bool{
		``: true, `1`: true, `{}`: true, `{"a":{"b":1},"b":{"a":1}}`: true, `[{"a":1},{"a":1}]`: true, "{\"a\":1}\n{\"a\":1}\n": true,
		`{"a":1,"a":1}`: false, `{"x":[{"a":1,"b":2,"\u0061":3}]}`: false, "{}\n{\"a\":1,\"a\":2}": false, `{"a":1`: false, `{"":1,"":2}`: false,
	} {
		if err := UniqueNames([]byte(raw)); (err == nil) != unique {
			t.Errorf("%s: %v", raw, err)
		}
	}
}
