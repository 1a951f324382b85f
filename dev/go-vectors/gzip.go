package main

import (
	"bytes"
	"compress/gzip"
	"log"
)

// gzipSizes compresses made-up data: random letters, and with `copies` also random pieces of what came before, some from so far back
// that no match may reach them.
func gzipSizes() (rows []array) {
	for _, letters := range []uint32{1, 2, 20, 90, 256} {
		for _, copies := range []bool{false, true} {
			for _, size := range []int{0, 1, 4, 5, 1000, 20_000, 65_535, 65_537, 98_400, 300_000} {
				var packed bytes.Buffer
				writer := gzip.NewWriter(&packed)
				if _, err := writer.Write(madeUp(size, letters, copies)); err != nil {
					log.Fatal(err)
				}
				if err := writer.Close(); err != nil {
					log.Fatal(err)
				}
				rows = append(rows, array{array{size, letters, copies}, packed.Len()})
			}
		}
	}
	return rows
}

func madeUp(size int, letters uint32, copies bool) []byte {
	state := uint32(1)
	next := func() uint32 {
		state = state*1664525 + 1013904223
		return state >> 8
	}
	var data []byte
	for len(data) < size {
		chance := next()
		if !copies || len(data) < 8 || chance%8 != 0 {
			data = append(data, byte(chance/8%letters))
			continue
		}
		distance, length := 1+int(next())%min(len(data), 70_000), 3+int(next())%400
		for i := 0; i < length && len(data) < size; i++ {
			data = append(data, data[len(data)-distance])
		}
	}
	return data
}
