package eastasian

import (
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"

	"github.com/chatctx/chatctx/internal/charset"
)

var texts = map[string]struct {
	text  string
	codec encoding.Encoding
}{
	"GBK":         {"密码是 ZZ4411，请勿外传。", simplifiedchinese.GBK},
	"gb2312":      {"密码是 ZZ4411。", simplifiedchinese.GBK},
	"GB18030":     {"密码是 ZZ4411，\U0001f680 éè。", simplifiedchinese.GB18030},
	"Big5":        {"密碼是 ZZ4411，請勿外傳。", traditionalchinese.Big5},
	"Shift_JIS":   {"パスワードは ZZ4411 です。ｶﾅ表", japanese.ShiftJIS},
	"windows-31j": {"表は ZZ4411 です。", japanese.ShiftJIS},
	"EUC-JP":      {"パスワードは ZZ4411 です。", japanese.EUCJP},
	"EUC-KR":      {"비밀번호는 ZZ4411 입니다.", korean.EUCKR},
}

// TestNamedEncodings reads each encoding by its name, and replaces words in it: all other bytes stay, also those that are like ASCII in the middle of a character.
func TestNamedEncodings(t *testing.T) {
	for name, c := range texts {
		encoded, err := c.codec.NewEncoder().Bytes([]byte(c.text))
		if err != nil {
			t.Fatal(name, err)
		}
		read, ok := charset.Decode(encoded, `text/plain; charset="`+name+`"`)
		if !ok || read.Text != c.text {
			t.Errorf("%s is read as %v, %v", name, read, ok)
			continue
		}
		at := strings.Index(c.text, "ZZ4411")
		got, err := c.codec.NewDecoder().Bytes(read.Replace([]charset.Span{{From: at, To: at + 6}}, "[redacted]"))
		if want := strings.Replace(c.text, "ZZ4411", "[redacted]", 1); err != nil || string(got) != want {
			t.Errorf("%s: replaced it is %q, %v", name, got, err)
		}
		next, _, known := named(strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(name)))
		if !known {
			t.Fatal(name)
		}
		for _, broken := range [][]byte{{0xff}, encoded[:1:1]} { // no character, and the half of one
			if r, size := next(broken); size != 1 || r < utf8.RuneSelf && r != 0 && broken[0] >= 0x80 {
				t.Errorf("%s: % x is read as %q, %d", name, broken, r, size)
			}
		}
	}
	if _, ok := charset.Decode([]byte("x"), "text/plain; charset=iso-2022-jp"); ok {
		t.Error("an encoding is read that nobody registered")
	}
}
