// Package cost computes what replies cost: the tokens that a provider reported, times the prices of their model.
//
// Money is counted in whole units of 10⁻⁹ of a currency and rounded once for each reply, so sums are exact. Prices come from a table with source and date
// (priceTable), or from the setting prices, which takes precedence. A model without a price has an unknown cost, never none: sums say how many replies they
// leave out. Prices are those of the model's maker for single requests. They do not include what a plan, a batch, another host of the model or a tool of
// the provider costs.
//
// It reads stores and never changes them.
//
// Read first: Prices.Reply, for one message, and Spent, for a store.
package cost

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// Money is an amount in units of 10⁻⁹ of a currency.
type Money int64

// Unit is one unit of a currency, such as one dollar.
const Unit Money = 1e9

// String returns the amount as a decimal number with at least two digits behind the point: 12.50, 0.0123.
func (m Money) String() string {
	sign, n := "", uint64(m)
	if m < 0 {
		sign, n = "-", -n
	}
	behind := strings.TrimRight(fmt.Sprintf("%09d", n%uint64(Unit)), "0")
	for len(behind) < 2 {
		behind += "0"
	}
	return sign + strconv.FormatUint(n/uint64(Unit), 10) + "." + behind
}

// Short returns the amount for people: rounded to a hundredth from ten on, to a ten-thousandth below, and not rounded if that gives zero.
func (m Money) Short() string {
	step := Unit / 100
	if m > -10*Unit && m < 10*Unit {
		step = Unit / 10_000
	}
	rounded := (m + step/2) / step * step
	if m < 0 {
		rounded = -((-m + step/2) / step * step)
	}
	if rounded == 0 {
		return m.String()
	}
	return rounded.String()
}

// plus adds amounts. It stops at the largest amount, since the figures of a file may be anything.
func (m Money) plus(more Money) Money {
	if sum := m + more; more <= 0 || sum > m {
		return sum
	}
	return math.MaxInt64
}

// perMillion is a sum of counts times prices per million, to be rounded once.
type perMillion struct{ high, low uint64 }

func (s *perMillion) add(n int64, price Money) {
	if n <= 0 || price <= 0 {
		return
	}
	high, low := bits.Mul64(uint64(n), uint64(price))
	var carry uint64
	s.low, carry = bits.Add64(s.low, low, 0)
	s.high += high + carry
}

// money returns the sum, rounded to the nearest unit.
func (s *perMillion) money() Money {
	const million = 1_000_000
	low, carry := bits.Add64(s.low, million/2, 0)
	high := s.high + carry
	if high >= million {
		return math.MaxInt64
	}
	q, _ := bits.Div64(high, low, million)
	if q > math.MaxInt64 {
		return math.MaxInt64
	}
	return Money(q)
}

// parseMoney parses a decimal number exactly. It refuses more than nine digits on either side of the point.
func parseMoney(s string) (Money, error) {
	whole, behind, _ := strings.Cut(s, ".")
	if whole == "" || len(whole) > 9 || len(behind) > 9 || strings.Trim(whole+behind, "0123456789") != "" {
		return 0, fmt.Errorf("%q is not a price: write a number like 3 or 0.25, with at most nine digits after the point", s)
	}
	n, err := strconv.ParseInt(whole+behind+strings.Repeat("0", 9-len(behind)), 10, 64)
	return Money(n), err
}
