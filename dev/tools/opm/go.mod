module dev/tools/opm

go 1.26.3

require github.com/operator-framework/operator-registry v1.73.0
