module dev/tools/operator-sdk

go 1.26.3

require github.com/operator-framework/operator-sdk v1.42.3

replace github.com/operator-framework/ansible-operator-plugins => ./ansible-plugin
