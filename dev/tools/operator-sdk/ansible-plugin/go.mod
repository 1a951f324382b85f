module github.com/operator-framework/ansible-operator-plugins

go 1.26.0
