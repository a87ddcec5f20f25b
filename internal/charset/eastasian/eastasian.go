// Package eastasian lets package charset read the encodings of Chinese, Japanese and Korean where a media type names them: GBK and GB18030, Big5, Shift-JIS, EUC-JP and
// EUC-KR. It is linked by the command alone, since its tables are 600 KB. It owns the names of these encodings, and decides nothing else.
package eastasian

import (
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"

	"github.com/chatctx/chatctx/internal/charset"
)

func init() { charset.Register(named) }

// longest is the most bytes that a character has in one of the encodings.
const longest = 4

// named returns how to read and write a character of the encoding with a name as charset.Register has it.
func named(name string) (next func([]byte) (rune, int), put func([]byte, rune) []byte, known bool) {
	e := encodingOf(name)
	if e == nil {
		return nil, nil, false
	}
	in, out := e.NewDecoder(), e.NewEncoder()
	next = func(b []byte) (rune, int) {
		var text [utf8.UTFMax]byte
		for n := 1; n <= min(longest, len(b)); n++ {
			if got, used, _ := in.Transform(text[:], b[:n], n == len(b)); got > 0 {
				r, _ := utf8.DecodeRune(text[:got])
				return r, used
			}
		}
		return utf8.RuneError, 1
	}
	put = func(b []byte, r rune) []byte {
		text, err := out.Bytes(utf8.AppendRune(nil, r))
		if err != nil { // the encoding has no such character
			text = []byte("?")
		}
		return append(b, text...)
	}
	return next, put, true
}

func encodingOf(name string) encoding.Encoding {
	switch name {
	case "gbk", "cp936", "windows936", "gb2312":
		return simplifiedchinese.GBK
	case "gb18030":
		return simplifiedchinese.GB18030
	case "big5", "cp950", "windows950", "big5hkscs":
		return traditionalchinese.Big5
	case "shiftjis", "sjis", "cp932", "windows31j", "mskanji":
		return japanese.ShiftJIS
	case "eucjp":
		return japanese.EUCJP
	case "euckr", "cp949", "windows949", "uhc", "ksc56011987":
		return korean.EUCKR
	}
	return nil
}
