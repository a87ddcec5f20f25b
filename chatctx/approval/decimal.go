package approval

import (
	"cmp"
	"math/big"
	"strings"
)

// maxExponent bounds the exponents of numbers that are compared: beyond it programs differ.
const maxExponent = 400

// decimal is an exact number, digits × 10^exp, without zeros at either end of digits. Zero has no digits.
type decimal struct {
	negative bool
	digits   string
	exp      int
}

// number parses a JSON number. ok is false if s is none or has too large an exponent.
func number(s string) (d decimal, ok bool) {
	if !isNumber(s) {
		return d, false
	}
	rest, negative := strings.CutPrefix(s, "-")
	mantissa, exponent := rest, ""
	if i := strings.IndexAny(rest, "eE"); i >= 0 {
		mantissa, exponent = rest[:i], rest[i+1:]
	}
	exp := new(big.Int)
	if exponent != "" {
		exp.SetString(strings.TrimPrefix(exponent, "+"), 10)
	}
	if !exp.IsInt64() || exp.Int64() > maxExponent || exp.Int64() < -maxExponent {
		return d, false
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	short := strings.TrimRight(digits, "0")
	if short == "" {
		return decimal{}, true
	}
	return decimal{negative, short, int(exp.Int64()) - len(fraction) + len(digits) - len(short)}, true
}

// isNumber reports whether a text is a JSON number.
func isNumber(s string) bool {
	s = strings.TrimPrefix(s, "-")
	whole := digitsOf(s)
	if whole == 0 || whole > 1 && s[0] == '0' {
		return false
	}
	s = s[whole:]
	if strings.HasPrefix(s, ".") {
		n := digitsOf(s[1:])
		if n == 0 {
			return false
		}
		s = s[1+n:]
	}
	if s == "" {
		return true
	}
	if s[0] != 'e' && s[0] != 'E' {
		return false
	}
	s = s[1:]
	if s != "" && (s[0] == '+' || s[0] == '-') {
		s = s[1:]
	}
	return s != "" && digitsOf(s) == len(s)
}

func digitsOf(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// compare returns -1, 0 or 1.
func (d decimal) compare(e decimal) int {
	switch {
	case d.negative != e.negative:
		if d.negative {
			return -1
		}
		return 1
	case d.negative:
		return e.size(d)
	}
	return d.size(e)
}

// size compares without the sign.
func (d decimal) size(e decimal) int {
	if d.digits == "" || e.digits == "" {
		return cmp.Compare(len(d.digits), len(e.digits))
	}
	if by := cmp.Compare(len(d.digits)+d.exp, len(e.digits)+e.exp); by != 0 {
		return by
	}
	return strings.Compare(d.digits, e.digits) // both begin at the same place; the longer one has more digits
}
