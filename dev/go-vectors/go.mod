module go-vectors

go 1.26
