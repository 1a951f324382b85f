// Prints what Go's standard library and Kubernetes' quantities do with text, and kstatus with workloads:
//
//	go run . vectors > ../../crates/go/tests/vectors.json
//	go run . patterns > ../../crates/cel/tests/patterns.json
//	go run . quantities > ../../crates/go/tests/quantities.json
//	go run . orders > ../../crates/go/tests/orders.txt
//	go run . tables > ../../crates/go/src/unicode/tables.rs
//	go run . readiness > ../../crates/manager/tests/readiness.txt
//
// cargo xtask go-files runs them and compares.
package main

import (
	"bufio"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log"
	"math"
	"net/mail"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode"
)

func main() {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	switch strings.Join(os.Args[1:], " ") {
	case "vectors":
		vectors(out)
	case "tables":
		tables(out)
	case "patterns":
		patterns(out)
	case "quantities":
		quantities(out)
	case "readiness":
		readiness(out)
	case "orders":
		orders(out)
	default:
		log.Fatal("usage: go-vectors vectors|tables|patterns|quantities|orders|readiness")
	}
}

// tables prints the sets of characters as Rust arrays: the first character of each range and the first one behind it.
func tables(out *bufio.Writer) {
	fmt.Fprintf(out, "//! Printed by dev/go-vectors: Unicode %s, as in Go. Alternates between the first character of each range and the\n//! first one after it.\n", unicode.Version)
	set := func(name, what string, is func(rune) bool) {
		var bounds []rune
		inside := false
		for r := rune(0); r <= unicode.MaxRune+1; r++ {
			if is(r) != inside {
				inside = !inside
				bounds = append(bounds, r)
			}
		}
		fmt.Fprintf(out, "\n/// `unicode.%s`\n#[rustfmt::skip]\npub const %s: [u32; %d] = [", what, name, len(bounds))
		for i, r := range bounds {
			if i%12 == 0 {
				fmt.Fprint(out, "\n   ")
			}
			fmt.Fprintf(out, " %#x,", r)
		}
		fmt.Fprint(out, "\n];\n")
	}
	set("PRINT", "IsPrint", unicode.IsPrint)
	set("LETTER", "IsLetter", unicode.IsLetter)
	set("DIGIT", "IsDigit", unicode.IsDigit)
}

type array = []any

// text is the error's text, or nil.
func text(err error) any {
	if err == nil {
		return nil
	}
	return err.Error()
}

func vectors(out *bufio.Writer) {
	fmt.Fprintln(out, "{")
	first := true
	section := func(name string, rows []array) {
		if !first {
			fmt.Fprintln(out, ",")
		}
		first = false
		fmt.Fprintf(out, "%q: [", name)
		for i, row := range rows {
			if i > 0 {
				fmt.Fprint(out, ",")
			}
			line, err := json.Marshal(row)
			if err != nil {
				log.Fatal(err)
			}
			fmt.Fprintf(out, "\n%s", line)
		}
		fmt.Fprint(out, "\n]")
	}
	section("quote", quotes())
	section("quote_bytes", quotesOfBytes())
	section("quote_rune", quotesOfRunes())
	section("unicode", classes())
	section("floats", floats())
	section("parse_int", integers())
	section("fmt", formats())
	section("json_text", jsonTexts())
	section("json_indent", jsonIndents())
	section("json_syntax", jsonSyntax())
	section("json_fields", jsonFields())
	section("base64", base64s())
	section("url", urls())
	section("netip", addresses())
	section("mail", mails())
	section("time", times())
	section("duration", durations())
	section("filepath", paths())
	fmt.Fprintln(out, "\n}")
}

// characters of interest beyond ASCII: blanks, controls, formats, marks, surrogate neighbours, private use, unassigned.
var special = []rune{
	0x80, 0x85, 0x9f, 0xa0, 0xa1, 0xad, 0xae, 0xb5, 0xe9, 0xff, 0x17f, 0x300, 0x378, 0x379, 0x3bc, 0x600, 0x61c, 0x6dd,
	0x70f, 0x8e2, 0x1680, 0x180e, 0x1d15, 0x2000, 0x2001, 0x2002, 0x2003, 0x2004, 0x2005, 0x2006, 0x2007, 0x2008,
	0x2009, 0x200a, 0x200b, 0x200c, 0x200d, 0x200e, 0x200f, 0x2010, 0x2014, 0x2026, 0x2027, 0x2028, 0x2029, 0x202a,
	0x202e, 0x202f, 0x2030, 0x205f, 0x2060, 0x2061, 0x2064, 0x2065, 0x2066, 0x206f, 0x2070, 0x20ac, 0x212a, 0x2190,
	0x2400, 0x3000, 0x3001, 0x4e2d, 0x9fff, 0xa000, 0xac00, 0xd7ff, 0xe000, 0xf8ff, 0xf900, 0xfb01, 0xfdd0, 0xfe00,
	0xfe0f, 0xfeff, 0xff01, 0xffa0, 0xfff9, 0xfffb, 0xfffc, 0xfffd, 0xfffe, 0xffff, 0x10000, 0x1000c, 0x110bd, 0x1bca0,
	0x1d173, 0x1f600, 0x1fae8, 0x1fae9, 0x1f9d1, 0x20000, 0x2ebf0, 0x2fffe, 0x31350, 0x323b0, 0xe0001, 0xe0020,
	0xe0100, 0xe01f0, 0xf0000, 0xffffd, 0x100000, 0x10fffd, 0x10ffff,
}

func quotes() (rows []array) {
	add := func(s string) { rows = append(rows, array{s, strconv.Quote(s), strconv.QuoteToASCII(s)}) }
	for r := rune(0); r < 0x80; r++ {
		add(string(r))
	}
	for _, r := range special {
		add(string(r))
	}
	for _, s := range []string{
		"", "plain", "two words", "a\"b\\c'd`e", "tab\tline\nreturn\rbell\a", "Ünïcödé 中文 😀", "e\u0301", "x\u200dy",
		"\u2028\u2029\ufeff", "%q %v %%", "operator.v1.0.0", "a\u2003b\u3000c\u2060d", "👩\u200d💻", "\x00\x1f\x7f\u0080",
	} {
		add(s)
	}
	return rows
}

func quotesOfBytes() (rows []array) {
	for _, s := range []string{
		"\x80", "\xff", "a\xffb", "\xc3", "\xc3(", "\xe2\x82", "\xe2\x82\xac", "\xed\xa0\x80", "\xed\xbf\xbf",
		"\xf0\x9f\x98", "\xf0\x9f\x98\x80", "\xf4\x90\x80\x80", "\xc0\xaf", "\xef\xbf\xbd", "ok\xe2\x28\xa1", "%a\xc3",
		"\xfe\xff\x00", "é\xe9é",
	} {
		rows = append(rows, array{hex.EncodeToString([]byte(s)), strconv.Quote(s)})
	}
	return rows
}

func quotesOfRunes() (rows []array) {
	for r := rune(0); r < 0x80; r++ {
		rows = append(rows, array{string(r), strconv.QuoteRune(r)})
	}
	for _, r := range special {
		rows = append(rows, array{string(r), strconv.QuoteRune(r)})
	}
	return rows
}

// classes prints each character at which one of the three classes changes in steps, and those of interest.
func classes() (rows []array) {
	add := func(r rune) {
		if r >= 0xd800 && r < 0xe000 {
			return
		}
		rows = append(rows, array{r, unicode.IsPrint(r), unicode.IsLetter(r), unicode.IsDigit(r)})
	}
	for r := rune(0); r < 0x300; r += 7 {
		add(r)
	}
	for r := rune(0x300); r <= unicode.MaxRune; r += 2003 {
		add(r)
	}
	for _, r := range special {
		add(r)
	}
	for _, r := range []rune{0x660, 0x6f0, 0x966, 0xff10, 0x1d7ce, 0xb2, 0x2160, 0x345, 0x24b6, 0x1e950} {
		add(r)
	}
	return rows
}

func floats() (rows []array) {
	values := []float64{
		0, math.Copysign(0, -1), 1, -1, 0.1, 0.5, 1.5, 4.10, 3.14159265358979, 1.0 / 3, 100000, 999999, 1000000,
		1234567.5, 12345678, 123456789012, 0.0001, 0.00001, 0.000099999, 0.000001, 0.0000009, 1e-7, -2.5e-9, 1e20, 1e21,
		999999999999999999999, 123456789012345678901234, 1 << 24, 1<<24 + 1, 1 << 53, 1<<53 + 2, 1 << 62, 1 << 63, 1 << 64,
		-(1 << 63), math.MaxFloat64, math.SmallestNonzeroFloat64, math.MaxFloat32, math.SmallestNonzeroFloat32, 1e100,
		1e-100, 1e300, -1e300, 5e-324, 2.2250738585072014e-308, 16777216.5, 0.3, 2.675, 1.005, 9007199254740993, 33554433,
		65504, 1e15, 1e16, 1e17, 123456.7, 999999.5, 0.1 + 0.2, 1e5, 1e6, 1e-4, 1e-5, 1e-6, math.Inf(1), math.Inf(-1),
		math.NaN(), 1e39, -1e39,
	}
	for i := -30; i <= 30; i++ {
		values = append(values, 1.25*math.Pow(10, float64(i)))
	}
	x := uint64(88172645463325252)
	for range 100 {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		if v := math.Float64frombits(x); !math.IsNaN(v) && !math.IsInf(v, 0) {
			values = append(values, v)
		}
	}
	for _, v := range values {
		var encoded any
		if b, err := json.Marshal(v); err == nil {
			encoded = string(b)
		}
		rows = append(rows, array{
			fmt.Sprintf("%016x", math.Float64bits(v)), fmt.Sprint(v), strconv.FormatFloat(v, 'g', -1, 64),
			strconv.FormatFloat(v, 'g', -1, 32), encoded,
		})
	}
	return rows
}

func integers() (rows []array) {
	for _, s := range []string{
		"", "0", "1", "-1", "+1", "00", "007", "08", "0644", "0o17", "0O17", "0x1F", "0X1f", "0xg", "0x", "0b101", "0b", "0b12",
		"-0x10", "+0x10", "1_000", "1__000", "_1", "1_", "0_7", "0x_1", "0x1_f", "0x_", "0_", "-", "+", "--1", "+-1", " 1", "1 ",
		"9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
		"18446744073709551615", "18446744073709551616", "99999999999999999999999x", "1e3", "1.0", "abc", "١", "0x7fffffffffffffff",
		"0xffffffffffffffff", "0x10000000000000000", "a\"b", "1\u2003",
	} {
		row := array{s}
		for _, base := range []int{0, 10} {
			i, err := strconv.ParseInt(s, base, 64)
			if err != nil {
				row = append(row, err.Error())
			} else {
				row = append(row, i)
			}
			u, err := strconv.ParseUint(s, base, 64)
			if err != nil {
				row = append(row, err.Error())
			} else {
				row = append(row, u)
			}
		}
		rows = append(rows, row)
	}
	return rows
}

func formats() (rows []array) {
	for _, s := range []string{
		`null`, `true`, `false`, `1`, `-5`, `1.5`, `1000000`, `1e21`, `"text"`, `""`, `[]`, `{}`, `["a","b c",null,true,1.25]`,
		`{"b":1,"a":{"c":[1,2,{"d":null}]}}`, `{"":0,"é":"ü","Z":false,"a":1e-7}`, `[[[]],{}]`, `[null]`,
	} {
		var v any
		if err := json.Unmarshal([]byte(s), &v); err != nil {
			log.Fatal(err)
		}
		rows = append(rows, array{s, fmt.Sprintf("%v", v), fmt.Sprintf("%t", v)})
	}
	return rows
}

func jsonTexts() (rows []array) {
	add := func(v any) {
		escaped, err := json.Marshal(v)
		if err != nil {
			log.Fatal(err)
		}
		var plain strings.Builder
		encoder := json.NewEncoder(&plain)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(v); err != nil {
			log.Fatal(err)
		}
		rows = append(rows, array{v, string(escaped), strings.TrimSuffix(plain.String(), "\n")})
	}
	for r := rune(0); r < 0x80; r++ {
		add(string(r))
	}
	for _, r := range special {
		add(string(r))
	}
	add("a\"b\\c/d\n<tag attr='x'>&amp;</tag>\u2028 \u2029 \u2027 \u20ac 😀 \u0001\u001f\u007f")
	add([]any{})
	add(map[string]any{})
	add([]any{nil, true, false, "x", []any{[]any{}}, map[string]any{"k": "<v>"}})
	add(map[string]any{"b": 1, "a": "x", "B": []any{}, "é": nil, "<&>": map[string]any{}, "": ""})
	return rows
}

func jsonIndents() (rows []array) {
	for _, s := range []string{
		`1`, `"a{b[c,d:e"`, `[]`, `{}`, `[1]`, `[[],{}]`, `{"a":[],"b":{"c":"x,\"y"},"d":[1,2]}`, `[{"a":1},{"b":[{"c":null}]}]`,
		`{"k\\":"v\\\\"}`,
	} {
		var v json.RawMessage = []byte(s)
		b, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			log.Fatal(err)
		}
		rows = append(rows, array{s, string(b)})
	}
	return rows
}

func jsonSyntax() (rows []array) {
	texts := []string{
		"", " ", "\n\t\r ", "{}", "[]", " {\"a\": [1, -0.5e+3, \"\\u00e9\\/\"], \"b\": {}} ", "null", "true", "false", "\"\u007f\"", "1",
		"-", "- a", "-1", "01", "-01", "1.", "1.x", "1e", "1e+", "1e+x", "1E5", "1.5e-7 ", "+1", ".5", "0x1", "NaN", "Infinity", "1 2",
		"[1] x", "{\"a\" 1}", "{\"a\": 1 \"b\": 2}", "{\"a\": [1 2]}", "{\"a\": [1,]}", "{\"a\":1,}", "[1,]", "[,1]", "{,}", "{a:1}",
		"{'a':1}", "'a'", "\"a", "\"a\\", "\"\\x\"", "\"\\u12\"", "\"\\u00g0\"", "\"\\u\n", "[\"\t\"]", "\"\n\"", "\"\x00\"", "\"\x1f\"",
		"nul", "nulL", "nxll", "tru", "trux", "txue", "truex", "fals", "falsy", "f", "{\"a\": nul}", "{\"a\": -x}", "{\"a\": 01}", "{\"a\": x}",
		"{\"a\": é}", "é", "😀", "\u00a0", "\ufeff{}", "[", "{", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":1,", "[1", "[1,", "[[[", "{\"a\":{\"b\":[",
		"]", "}", ":", ",", "\"", "\\", "'", "[1}", "{\"a\":1]", "{]", "[}", "{1:2}", "{null:1}", "{\"a\":1}}", "[]]", "// c", "/* c */1", "[1]//",
		"a", "\x7f", "\x01", "\"\\u00e9\" ", "{\"a\":\"b\" : 1}", "{\"a\"}", "{\"a\",", "[1:2]", "\u2028", "`", "<", "\t", "[1\u0085]", "\"a\"b",
		"key: value", "- item", "{\"a\": 1}\n---\n", "{} {}", "[] \x00", "1.5.5", "1e5e5", "--1", "tRue", "\"\\'\"", "\"\\", "\"\\u1", "\"\\u123",
	}
	deep := func(n int, open string) string { return strings.Repeat(open, n) }
	check := func(name, s string) {
		var v any
		err := json.Unmarshal([]byte(s), &v)
		var offset any
		if e, ok := err.(*json.SyntaxError); ok {
			offset = e.Offset
		} else if err != nil {
			log.Fatal(err)
		}
		var raw json.RawMessage
		rows = append(rows, array{name, text(err), offset, text(json.NewDecoder(strings.NewReader(s)).Decode(&raw))})
	}
	for _, s := range texts {
		check(s, s)
	}
	// The name stands for the text: @, a count and what is repeated.
	for _, n := range []int{10000, 10001} {
		check(fmt.Sprintf("@%d[", n), deep(n, "["))
		check(fmt.Sprintf("@%d{\"a\":", n), deep(n, "{\"a\":"))
	}
	return rows
}

func jsonFields() (rows []array) {
	for _, key := range []string{
		"schema", "Schema", "SCHEMA", "\u017fchema", "schemas", "schem", "", "skips", "\u017f\u212aip\u017f", "s\u212aips", "ſKIPS", "ſchemä", "schemа",
	} {
		var v struct {
			Schema *bool `json:"schema"`
			Skips  *bool `json:"skips"`
		}
		name, _ := json.Marshal(key)
		if err := json.Unmarshal([]byte("{"+string(name)+":true}"), &v); err != nil {
			log.Fatal(err)
		}
		rows = append(rows, array{key, v.Schema != nil, v.Skips != nil})
	}
	return rows
}

func base64s() (rows []array) {
	for _, s := range []string{
		"", "YQ==", "YWI=", "YWJj", "YWJjZA==", "YQ", "YQ=", "Y", "Y=", "Y===", "=", "==", "====", "YWJ", "YWJjZ", "YWJjZA", "YWJjZA=",
		"YR==", "YWK=", "Y\nQ==", "YQ\n==", "YQ=\n=", "YQ==\n", "\nYQ==", "YW\r\nJj", "YQ==YQ==", "YQ==x", "YWI=x", "YWI=\nx", "YQ=x",
		"YQ=\nx", "YQ=\n", "YW Jj", " YWJj", "YWJj ", "YW-_", "YW+/", "YW.j", "YWéj", "é", "YWJj=", "YWJj==", "YWJjYQ=", "YWJj\nY", "Y\nW\nJ",
		"YWJj\n\nYW\n", "!", "A!", "AA!", "AAA!", "AAAA!", "AAAAAAAAAAA=AAAA", "\n", "\r\n\r\n", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA*AAAA",
		"AAAAAAAAAAAAAAAAAAAAAAAAAAAAA\nAAA*AAAA", "AA==\n\n=", "A\n=", "AA\n=A",
	} {
		b, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			rows = append(rows, array{s, nil, err.Error()})
		} else {
			rows = append(rows, array{s, hex.EncodeToString(b), nil})
		}
	}
	return rows
}

func urls() (rows []array) {
	texts := []string{
		"", "*", "/", "//", "///", "////a", "?", "??", "#", "a", "a/b", "a:b", "a/b:c", ":", ":a", "://a", "http:", "http:/", "http://", "http:///",
		"http://a", "http://a/", "HTTP://A/b", "hTTps://Example.COM:443/Path?Q=1#F", "https://example.com/#frag", "https://x#y", "mailto:x@y.z",
		"mailto:x?subject=a%20b", "urn:isbn:1", "data:text/plain,hi", "file:///etc/passwd", "localhost:8080", "1.2.3.4:80", "www.example.com",
		"example.com:80/a", "1http://a", "h1ttp://a", "h-t+p.s://a", "-a://b", "ä://b", "ht tp://a", " https://x", "https://x ", "https://exa mple.com",
		"https://例え.jp/", "https://例え.jp/例え?例=え#え", "https://x/%zz", "https://x/%", "https://x/%4", "https://x/%41", "https://x/%é", "https://x/%aé",
		"https://x/%ff%fe", "https://x/%e4%b8%ad", "https://x/%c3(", "https://x/a%2fb", "https://x/a+b", "https://%41/", "https://%e4/", "https://%25/",
		"https://a%20b/", "https://%zz/", "https://a%", "https://a%4", "https://a%é", "https://[::1]", "https://[::1]:80", "https://[::1]:", "https://[::1]x",
		"https://[::1]:x", "https://[::1", "https://::1]", "https://[]", "https://[1.2.3.4]", "https://[::ffff:1.2.3.4]/", "https://[fe80::1%25eth0]/",
		"https://[fe80::1%25]/", "https://[fe80::1%eth0]/", "https://[fe80::1%25%41]/", "https://[fe80::1%25a%20b]/", "https://[fe80::1%25a%2fb]/",
		"https://[fe80::1%25%zz]/", "https://[a]/", "https://[g::1]/", "https://[1:2]/", "https://x[::1]/", "https://[::1]]/", "https://[[::1]]/", "https://[::1 ]/",
		"https://[::%31]/", "https://[:%e4:1]/", "https://example.com:port", "https://example.com:", "https://example.com:80", "https://example.com:80a", "https://example.com:-1",
		"https://example.com:99999999", "https://a:b:80", "https://a:1:2", "ftp://a:1:2", "ftp://a:b:2", "ftp://a:1:b", "http://::1/", "ws://::1/", "https://a:80:",
		"https://user@host", "https://user:pass@host:1/p", "https://:pass@host", "https://user:@host", "https://a!b$c&d'e(f)g*h+i,j;k=l~m:n%2fo%3ap@host", "https://@host", "https://@", "https://u@v@host",
		"https://us er@host", "https://us%20er:p%40@host", "https://us%zz@host", "https://us%4@host", "https://u:%zz@host", "https://ü@host", "https://u\"@host", "https://u/@host",
		"https://u@ho st", "https://u[@host", "https://us er@host:x", "https://a<b>c\"d/", "https://a\\b/", "https://a^b/", "https://a`b/", "https://a{b}/", "https://a|b/",
		"https://a!$&'()*+,;=b/", "https://a~_-.b/", "https://a?b", "https://a?b#c", "https://a#b?c", "https://a?", "https://a??", "https://a?b?", "https://a/?", "https://a?#",
		"https://a/#", "https://a/##", "https://a/#%zz", "https://a/#%41", "https://a/#a b", "https://a/b c", "https://a/?b c", "https://a/?%zz", "https://a\tb", "https://a\nb",
		"https://a/\x7f", "https://a/#\x01", "https://a/\u0080", "https://a\u2003b/", "https://a/\u2003", "\u2003", "\u3000:", "a\u2060:b", "../a", "./a:b", "a?b:c", "a:?b", "a:#b", "a:b?c?d",
		"a:b%zz", "a:/b%zz", "a:%zz", "A:b", "//a", "//a/b", "//a:b", "//u@a:1/", "///a:b", "//[::1", "//%zz", "/a:b", "/a%zz", "/%", "/a?b#c", "*a", "**", "#*", "https://*", "https://*.a.b/",
		"oci://quay.io/a/b:v1", "docker://x@sha256:0", "quay.io/a/b:v1", "quay.io/a@sha256:0", "git@github.com:a/b.git", "ssh://git@github.com:a/b.git", "https://a.b/c.git//d?ref=e",
		"C:\\path", "c:/path", "\\\\host\\share", "javascript:alert(1)", "http://a.b.c.d.e/f;g=h?i=j&k=l#m", "https://xn--nxasmq6b/", "https://a..b/", "https://.a/", "https://a./",
		"https://a_b/", "https://a,b:1/", "https://-/", "http://[v1.a]/", "https://a/b/../c", "https://a/./b", "https://a//b", "https://a/%2e%2e", "https://a:0", "https://a:0080/",
		"https://1.2.3.4/", "https://256.1.1.1/", "https://0x7f.1/", "https://a/😀", "https://😀/", "https://a?😀", "https://a/'\"<>", "https://a/|^`{}\\", "https://a/[b]", "https://a/?[b]",
	}
	part := func(u *url.URL, err error) any {
		if err != nil {
			return err.Error()
		}
		var user any
		if u.User != nil {
			password, set := u.User.Password()
			if set {
				user = array{u.User.String(), u.User.Username(), password}
			} else {
				user = array{u.User.String(), u.User.Username()}
			}
		}
		return array{u.Scheme, u.Opaque, user, u.Host, u.Path, u.RawQuery, u.ForceQuery, u.Fragment}
	}
	for _, s := range texts {
		plain := part(url.Parse(s))
		request := part(url.ParseRequestURI(s))
		rows = append(rows, array{s, plain, request})
	}
	return rows
}

func addresses() (rows []array) {
	for _, s := range []string{
		"", "a", "1", "1.2.3.4", "0.0.0.0", "255.255.255.255", "256.1.1.1", "1.2.3", "1.2.3.4.5", "1..2.3", ".1.2.3", "1.2.3.", "01.2.3.4", "1.2.3.00", "1.2.3.4a", "a.b", "1.2.3.4%a", "%", "a%b",
		"::", "::1", "1::", "1::2", ":", ":1", "1:", "1:2", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7::", "::1:2:3:4:5:6:7", "::1:2:3:4:5:6:7:8", "1::2::3", ":::", "1:::2", "12345::",
		"fffff::", "g::", "::g", "1:2:3:4:5:6:7:", "::ffff:1.2.3.4", "::1.2.3.4", "1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:1.2.3.4", "1:2:3:4:5:6:7:1.2.3.4", "::1:2:3:4:5:6:7:1.2.3.4", "::ffff:1.2.3", "::ffff:256.2.3.4",
		"::ffff:1.2.3.4.5", "::ffff:1.2.3.4x", "::1.2.3.04", "fe80::1%eth0", "fe80::1%", "::%x", "::ffff:1.2.3.4%z", "fe80::1%a%b", "FE80::ABCD", " ::1", "::1 ", "1:2:3:4::5:6:7:8", "::é", "1.é.3.4",
		"1:2:3:4:5:6:7:8::", "0:0:0:0:0:0:0:0",
	} {
		addr, err := netip.ParseAddr(s)
		if err != nil {
			rows = append(rows, array{s, nil, nil, err.Error()})
			continue
		}
		rows = append(rows, array{s, hex.EncodeToString(addr.AsSlice()), addr.Zone(), nil})
	}
	return rows
}

func mails() (rows []array) {
	for _, s := range []string{
		"", " ", "a@b", " a@example.com", "a@example.com ", "\ta@b\t", "\"a b\"@example.com", "A Name <a@example.com>", "a@example.com (comment)", "<a@b.c>", "é@ü.de", "not-an-address", "a@@example.com", "a.@example.com",
		".a@b", "a..b@c", "a@.b", "a@b..c", "a@b.", "a@example.com, b@example.com", "a b@example.com", "a@", "@b", "<a@b", "<a@b>x", "<>", "<a>", "< a@b >", "a <b", "a <b>", "a b <c@d> e", "\"\"@b", "\"a", "\"a\"", "\"a\"b@c",
		"\"a\\\"b\"@c", "\"a\\", "\"a\nb\"@c", "\"a\\\nb\" <c@d>", "\"\" <a@b>", "\"Q\" <a@b>", "Q. Name <a@b>", "Q.. <a@b>", "x y", "x.y z", "x", "Jane", "a@[1.2.3.4]", "a@[::1]", "a@[IPv6:::1]", "a@[x]", "a@[", "a@[1.2.3.4", "a@[1.2.3.4]x",
		"a@[1 2]", "a@[[]", "a@[\\]", "a@[fe80::1%e]", "a@[01.2.3.4]", "a@[1.2.3.4] (c)", "g:;", "g: ;", "g:a@b;", "g:a@b,c@d;", "g:a@b", "g:", "g:a@b c@d;", "g:h:a@b;;", "g:<a@b>;", "g:;(c)", "g:;(c", "g:a@b;(c", "g:a@b(c;", "my group: x <a@b>;",
		"a@b (", "a@b ()", "a@b (a(b)c)", "a@b (a\\)b)", "a@b (a\\", "a@b (x) (y)", "a@b (x) (y", "(c) a@b", "a (c) <b@c>", "a (c <b@c>", "a (c) b <d@e> (f)", "(c)", "a(c)@b", "a@(c)b", "a@b(  two   words )", ",", ";", ":", "a,b", "a;b@c", "a:b@c", "a\\b@c",
		"a[b@c", "a>b", ">", "=?utf-8?q?J=C3=B6rg?= <a@b>", "=?utf-8?Q?a_b?= <a@b>", "=?UTF-8?B?SsO2cmc=?= <a@b>", "=?iso-8859-1?q?J=F6rg?= <a@b>", "=?us-ascii?q?a=80?= <a@b>", "=?koi8-r?q?a?= <a@b>", "=?KOI8-R?q?a?=", "=?utf-8?x?a?= <a@b>",
		"=?utf-8?q?=zz?= <a@b>", "=?utf-8?q?a?= =?utf-8?q?b?= <a@b>", "=?utf-8?q?a?= b =?utf-8?q?c?= <a@b>", "x =?koi8-r?q?a?= <a@b>", "a@b (=?koi8-r?q?a?=)", "a@b (=?utf-8?q?=C3=A9?= x)", "=?utf-8?q??= <a@b>", "=??q?a?= <a@b>", "=?utf-8?b?!?= <a@b>", "=?utf-8?q?a b?= <a@b>",
		"=?utf-8?q?a=e?= <a@b>", "a\x00@b", "a\x7f@b", "a\u00a0@b", "a\u2003b@c", "a@b\nc", "\u3000", "名 <a@b>", "\"名\" <a@b>", "a@b.c, ", "a@b.c,", "Jane Doe jane@example.com", "jane at example.com", "https://example.com", "mailto:a@b", "<mailto:a@b>", "<<a@b>>", "<a@b><c@d>",
	} {
		address, err := mail.ParseAddress(s)
		if err != nil {
			rows = append(rows, array{s, nil, nil, err.Error()})
		} else {
			rows = append(rows, array{s, address.Name, address.Address, nil})
		}
	}
	return rows
}

func times() (rows []array) {
	for _, s := range []string{
		"", "2024-01-02T03:04:05Z", "2024-01-02T03:04:05z", "2024-01-02t03:04:05Z", "2024-01-02 03:04:05Z", "2024-01-02T03:04:05", "2024-01-02", "2024-01-02T03:04Z", "2024", "202", "24-01-02T03:04:05Z", "x", "2024-1-02T03:04:05Z", "2024-01-2T03:04:05Z",
		"2024-01-02T3:04:05Z", "2024-01-02T03:4:05Z", "2024-01-02T03:04:5Z", "2024-13-02T03:04:05Z", "2024-00-02T03:04:05Z", "2024-01-32T03:04:05Z", "2024-01-00T03:04:05Z", "2024-02-29T00:00:00Z", "2023-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2000-02-29T00:00:00Z",
		"2024-04-31T00:00:00Z", "2024-01-02T24:00:00Z", "2024-01-02T25:00:00Z", "2024-01-02T03:60:00Z", "2024-01-02T03:04:60Z", "2024-01-02T23:59:59Z", "2024-01-02T03:04:05.5Z", "2024-01-02T03:04:05.123456789Z", "2024-01-02T03:04:05.1234567899Z", "2024-01-02T03:04:05,5Z",
		"2024-01-02T03:04:05.Z", "2024-01-02T03:04:05.", "2024-01-02T03:04:05.xZ", "2024-01-02T03:04:05.000001+00:00", "2024-01-02T03:04:05+00:00", "2024-01-02T03:04:05+01:00", "2024-01-02T03:04:05-07:30", "2024-01-02T03:04:05+0100", "2024-01-02T03:04:05+01", "2024-01-02T03:04:05+1:00",
		"2024-01-02T03:04:05+24:00", "2024-01-02T03:04:05+25:00", "2024-01-02T03:04:05+23:60", "2024-01-02T03:04:05+23:61", "2024-01-02T03:04:05*01:00", "2024-01-02T03:04:05*25:00", "2024-01-02T03:04:05+xx:00", "2024-01-02T03:04:05+00:xx", "2024-01-02T03:04:05+99:xx", "2024-01-02T03:04:05ZZ",
		"2024-01-02T03:04:05Z ", " 2024-01-02T03:04:05Z", "2024-01-02T03:04:05Z07:00", "2024-01-02T03:04:05+01:00x", "2024-01-02T03:04:05Z\"\\\n\u00e9\u2003", "2024-01-02T03:04:05\u00e9", "\u00e9", "2024-01-02T03:04:0\u00e9Z", "0000-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z",
		"1969-12-31T23:59:59Z", "1970-01-01T00:00:00Z", "1582-10-15T00:00:00Z", "-024-01-02T03:04:05Z", "+024-01-02T03:04:05Z", "2+24-01-02T03:04:05Z", "20 4-01-02T03:04:05Z", "10000-01-02T03:04:05Z", "2024/01/02T03:04:05Z", "2024-01-02T03-04-05Z", "2024-01-02T:04:05Z", "2024-01-02T",
		"2024-01-", "2024-", "2024-01-02T03:04:05 UTC", "2024-01-02T03:04:05.5+01:00", "2024-01-02T03:04:05.5", "Tue, 02 Jan 2024 03:04:05 GMT", "1704164645", "now", "2024-01-02T3:04:05+24:60", "2024-12-31T23:59:59.999999999-23:59", "2024-02-30T25:00:00Z", "2024-99-99T99:99:99Z", "2024-01-02T99:99:99",
		"2024-06-15T12:00:00Z\x7f", "2024-01-02T03:04:05.12345678901234567890Z", "\"2024-01-02T03:04:05Z\"",
	} {
		t, err := time.Parse(time.RFC3339, s)
		if err != nil {
			rows = append(rows, array{s, nil, nil, err.Error()})
		} else {
			rows = append(rows, array{s, t.Unix(), t.Nanosecond(), nil})
		}
	}
	return rows
}

func durations() (rows []array) {
	for _, s := range []string{
		"", "0", "+0", "-0", "00", "5", "1s", "-1s", "+1s", "1m30s", "1.5h", "300ms", "2h45m", "1us", "1µs", "1μs", "1ns", ".5s", "5.s", ".s", "-.s", "1.", "1..5s", "1d", "1 s", " 1s", "1s ", "1S", "s", "-", "+", "1h1", "1h-1m", "1é", "é", "9223372036854775807ns", "9223372036854775808ns",
		"-9223372036854775808ns", "-9223372036854775809ns", "2562047h47m16.854775807s", "2562047h47m16.854775808s", "3000000h", "99999999999999999999s", "0.3333333333333333333h", "0.100000000000000000000h", "0.9223372036854775807h", "1.0000000001s", "0.000000001s", "0.0000000001s", "1h\"m",
		"1e3s", "0x1s", "1m1m1m", "1_000s", "9223372036854775.807us", "0.12345678901234567890123s", "39h9m14.425s", "1.1.1s", "1s\n",
	} {
		d, err := time.ParseDuration(s)
		if err != nil {
			rows = append(rows, array{s, nil, err.Error()})
		} else {
			rows = append(rows, array{s, int64(d), nil})
		}
	}
	return rows
}

func paths() (rows []array) {
	texts := []string{"", ".", "/", "..", "a", "a/", "/a", "a//b", "a/./b", "a/../b", "../a", "../../a", "/../a", "a/..", "a/../..", "./", "./a", "a/b/../../..", "/a/b/./../c//", "...", "a/...", "é/ü", "a b", "//", "///a"}
	for _, a := range texts {
		for _, b := range []string{"", ".", "b", "../b", "/b"} {
			rel, err := filepath.Rel("/x/"+a, "/x/y/"+b)
			if err != nil {
				log.Fatal(err)
			}
			rows = append(rows, array{a, b, filepath.Clean(a), filepath.Join(a, b), rel})
		}
	}
	return rows
}
