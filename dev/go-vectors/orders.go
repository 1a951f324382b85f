package main

import (
	"bufio"
	"fmt"
	"sort"
)

// orders prints fingerprints of the orders in which sort.Slice leaves equal items. The keys follow from the other columns.
func orders(out *bufio.Writer) {
	fmt.Fprintln(out, "# Printed by dev/go-vectors: SHAPE SEED LENGTH DIFFERENT-KEYS FINGERPRINT")
	lengths := []int{0, 1, 2, 5, 11, 12, 13, 14, 17, 20, 26, 31, 49, 50, 51, 64, 100, 127, 128, 200, 500, 1000, 5000}
	seed := uint64(0)
	for _, shape := range []string{"random", "ascending", "descending", "sawtooth"} {
		for _, length := range lengths {
			for _, different := range []uint64{1, 2, 7, 40, 1000000} {
				seed++
				fmt.Fprintln(out, shape, seed, length, different, fingerprint(keysOf(shape, seed, length, different)))
			}
		}
	}
}

func keysOf(shape string, seed uint64, length int, different uint64) []uint64 {
	keys := make([]uint64, length)
	state := seed
	for i := range keys {
		state = state*6364136223846793005 + 1442695040888963407
		keys[i] = (state >> 33) % different
	}
	switch shape {
	case "ascending":
		sort.Slice(keys, func(i, j int) bool { return keys[i] < keys[j] })
	case "descending":
		sort.Slice(keys, func(i, j int) bool { return keys[i] > keys[j] })
	case "sawtooth":
		for i := range keys {
			keys[i] = uint64(i) % (keys[i] + 1)
		}
	}
	return keys
}

func fingerprint(keys []uint64) uint64 {
	order := make([]int, len(keys))
	for i := range order {
		order[i] = i
	}
	sort.Slice(order, func(i, j int) bool { return keys[order[i]] < keys[order[j]] })
	hash := uint64(14695981039346656037)
	for _, at := range order {
		hash = (hash ^ uint64(at)) * 1099511628211
	}
	return hash
}
