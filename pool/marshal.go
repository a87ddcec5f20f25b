package pool

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"sync"
	"unicode/utf8"
)

// mostItems bounds the items of a list or map in a record, as the decoders of records do.
const mostItems = 1 << 24

// Marshal returns a record of any kind but a message's, for which there is Encode: deterministic CBOR. All records are written through it, so it refuses
// what could be written but not read back: text that is not UTF-8, a time outside the years 1 to 9999, too many items. The error is an ErrInvalid that
// names the field.
func Marshal(v any) ([]byte, error) {
	if err := flaw("", reflect.ValueOf(v)); err != nil {
		return nil, err
	}
	return encMode.Marshal(v)
}

// textError says what is wrong with one text. It is an ErrInvalid.
type textError string

func (e textError) Error() string { return string(e) }
func (e textError) Unwrap() error { return ErrInvalid }

// CheckText returns an ErrInvalid if a text is not UTF-8, since neither JSON nor a record could hold it. what names the text in the error.
func CheckText(what, text string) error {
	if utf8.ValidString(text) {
		return nil
	}
	return textError(fmt.Sprintf("%s: %.40q is not UTF-8", what, text))
}

var (
	timeType = reflect.TypeFor[Time]()
	jsonType = reflect.TypeFor[json.RawMessage]()
)

// flaw returns what keeps a value from being read back, nil for nothing. path names the value.
func flaw(path string, v reflect.Value) error {
	if !v.IsValid() || !mayFail(v.Type()) {
		return nil
	}
	switch kind := v.Kind(); {
	case v.Type() == timeType:
		if t := Time(v.Int()); t < minTime || t > maxTime {
			return textError(path + ": a time outside the years 1 to 9999")
		}
	case v.Type() == jsonType:
		if !utf8.Valid(v.Bytes()) {
			return CheckText(path, string(v.Bytes()))
		}
	case kind == reflect.String:
		return CheckText(path, v.String())
	case kind == reflect.Pointer:
		return flaw(path, v.Elem())
	case kind == reflect.Struct:
		if path == "" {
			path = v.Type().Name()
		}
		for _, i := range fieldsOf(v.Type()) {
			// the path is built only for an error
			if flaw("", v.Field(i)) != nil {
				return flaw(path+"."+v.Type().Field(i).Name, v.Field(i))
			}
		}
	case v.Len() > mostItems:
		return tooLarge{textError(fmt.Sprintf("%s: more than %d items", path, mostItems))}
	case kind == reflect.Map:
		return flawOfMap(path, v)
	default:
		for i := range v.Len() {
			if flaw("", v.Index(i)) != nil {
				return flaw(path+"["+strconv.Itoa(i)+"]", v.Index(i))
			}
		}
	}
	return nil
}

func flawOfMap(path string, v reflect.Value) error {
	for at := v.MapRange(); at.Next(); {
		if key := at.Key(); key.Kind() == reflect.String && !utf8.ValidString(key.String()) {
			return CheckText(path+": a name", key.String())
		}
		if flaw("", at.Value()) != nil {
			return flaw(fmt.Sprintf("%s[%.40q]", path, fmt.Sprint(at.Key())), at.Value())
		}
	}
	return nil
}

// mayFail reports whether values of a type can hold what cannot be read back.
func mayFail(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String:
		return true
	case reflect.Slice, reflect.Array, reflect.Pointer:
		return t == jsonType || mayFail(t.Elem())
	case reflect.Map:
		return mayFail(t.Key()) || mayFail(t.Elem())
	case reflect.Struct:
		return len(fieldsOf(t)) > 0
	}
	return t == timeType
}

// looked caches for each struct type the fields that may fail.
var looked sync.Map

func fieldsOf(t reflect.Type) []int {
	if known, is := looked.Load(t); is {
		return known.([]int)
	}
	var fields []int
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() && f.Tag.Get("cbor") != "-" && mayFail(f.Type) {
			fields = append(fields, i)
		}
	}
	looked.Store(t, fields)
	return fields
}
