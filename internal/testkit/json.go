package testkit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// UniqueNames returns an error if raw is not a sequence of JSON values, or if an object in it has a name twice: strict readers refuse such objects, and others
// differ about which of the two counts.
func UniqueNames(raw []byte) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	for {
		first, err := d.Token()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = uniqueRest(d, first)
		}
		if err != nil {
			return err
		}
	}
}

// uniqueRest reads a value to its end after its first token.
func uniqueRest(d *json.Decoder, first json.Token) error {
	if first != json.Delim('{') && first != json.Delim('[') {
		return nil
	}
	seen := map[json.Token]bool{}
	for d.More() {
		next, err := d.Token()
		if err == nil && first == json.Delim('{') {
			if seen[next] {
				return fmt.Errorf("an object has the name %q twice", next)
			}
			seen[next] = true
			next, err = d.Token()
		}
		if err == nil {
			err = uniqueRest(d, next)
		}
		if err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return fmt.Errorf("a value has no end: %v", err)
	}
	return nil
}
