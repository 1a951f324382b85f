package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// chosen has the rules of the documentation, the limits of each number type, and spellings that the parser reads in an unexpected way.
var chosen = strings.Fields(`
	0 0.0 1 1.5 0.1 1000m 64Mi 1.5Gi 0.5Ki 1e3 1E 12e6 1000 100 +5 1.500 1.50 0.500 01 -1024Ki .5 1. 2048 0.0000000001 1e1
	1Gi 1024Mi 500m 1G 1k 1000k 1M 0Mi 128974848 129e6 129M 123Mi 128974848000m 0.3 0.25 3.14 1.1Ki 0.1Gi 0.001Ki
	Gi Ti Pi Ei . + - -. e5 e-10 .Gi .Pi E -Mi 00 007 0e400 1e1000 1e-1000 -1e-1000 1e4294967296 1e4294967299 1E-3 1e+3
	100m 1.2.3 true 1Gib ..5 1E5E 1GI 1KI abc 1mm 1e 5e+ 1e99999999999999999999 1_0 0x10 1,5 ٣
	9223372036854775807 9223372036854775808 -9223372036854775808 999999999999999999 1000000000000000000 9.223372036854775807E
	7Ei 8Ei 9Ei -9Ei 1000Ei 1024Pi 1023Pi 12345678901234567890 123456789012345678901234567890 0.12345678901234567890 1n 1.5n 0.5n -0.5n 999999999n
	1000E 1000000E 1e21 1e24 1023 1024 1025 -1023 -1024 1023.5 1024.5 1.0 2.0Mi 1024Ki 1000Ki 7Ki 8Ki 9Ki
`)

// quantities prints what resource.Quantity does with texts and with pairs of them.
func quantities(out *bufio.Writer) {
	random := rand.New(rand.NewSource(1))
	texts := append([]string{"", " 1", "1 Gi"}, chosen...)
	for range 600 {
		texts = append(texts, randomQuantity(random))
	}
	single := []array{}
	var valid []string
	for _, text := range texts {
		quantity, err := resource.ParseQuantity(text)
		if err != nil {
			single = append(single, array{text, err.Error()})
			continue
		}
		valid = append(valid, text)
		whole, isWhole := quantity.AsInt64()
		float := strconv.FormatFloat(quantity.AsApproximateFloat64(), 'g', -1, 64)
		row := array{text, nil, quantity.String(), quantity.Sign(), nil, float}
		if isWhole {
			row[4] = whole
		}
		single = append(single, row)
	}
	pairs := []array{}
	for range 600 {
		left, right := valid[random.Intn(len(valid))], valid[random.Intn(len(valid))]
		a, b := resource.MustParse(left), resource.MustParse(right)
		row := array{left, right, a.Cmp(b)}
		for _, negative := range []bool{false, true} {
			sum := resource.MustParse(left)
			if negative {
				sum.Sub(b)
			} else {
				sum.Add(b)
			}
			whole, isWhole := sum.AsInt64()
			if isWhole {
				row = append(row, sum.String(), whole)
			} else {
				row = append(row, sum.String(), nil)
			}
		}
		pairs = append(pairs, row)
	}
	print := func(rows []array) {
		for i, row := range rows {
			line, err := json.Marshal(row)
			if err != nil {
				panic(err)
			}
			separator := ","
			if i == len(rows)-1 {
				separator = ""
			}
			fmt.Fprintf(out, "%s%s\n", line, separator)
		}
	}
	fmt.Fprint(out, "{\"single\": [\n")
	print(single)
	fmt.Fprint(out, "], \"pairs\": [\n")
	print(pairs)
	fmt.Fprint(out, "]}\n")
}

func randomQuantity(random *rand.Rand) string {
	digits := func(most int) string {
		var text strings.Builder
		for range random.Intn(most + 1) {
			// Many zeros, because they decide the spelling.
			text.WriteByte("00001234567895"[random.Intn(14)])
		}
		return text.String()
	}
	most := []int{3, 6, 12, 20}[random.Intn(4)]
	text := []string{"", "", "", "-", "+"}[random.Intn(5)] + digits(most)
	if random.Intn(3) == 0 {
		text += "." + digits([]int{3, 3, 12}[random.Intn(3)])
	}
	suffixes := []string{"", "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e", "E"}
	suffix := suffixes[random.Intn(len(suffixes))]
	if suffix == "e" || suffix == "E" && random.Intn(2) == 0 {
		suffix += strconv.Itoa(random.Intn(30) - 14)
	}
	return text + suffix
}
