// Prints the table of Go types that crates/olmkit/src/types/structs.txt holds: how encoding/json sees the structs that
// operator-sdk decodes bundle manifests into. Run: go run . > ../../crates/olmkit/src/types/structs.txt
package main

import (
	"encoding/json"
	"fmt"
	"path"
	"reflect"
	"sort"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
)

var unmarshaler = reflect.TypeOf((*json.Unmarshaler)(nil)).Elem()

// structs maps a type's key to its printed block.
var structs = map[string][]string{}

// key is the name that the table uses: the bare type name, with the package in front for the two versions of CRDs, whose
// type names are equal.
func key(t reflect.Type) string {
	pkg := t.PkgPath()
	if strings.Contains(pkg, "apiextensions-apiserver") {
		return path.Base(pkg) + "." + t.Name()
	}
	return t.Name()
}

func describe(t reflect.Type) string {
	if t.Kind() == reflect.Ptr {
		return "*" + describe(t.Elem())
	}
	if reflect.PointerTo(t).Implements(unmarshaler) {
		return "!" + key(t)
	}
	switch t.Kind() {
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		return "[]" + describe(t.Elem())
	case reflect.Map:
		return "{}" + describe(t.Elem())
	case reflect.Struct:
		visit(t)
		return key(t)
	case reflect.String, reflect.Bool, reflect.Int32, reflect.Int64, reflect.Float64:
		if kind := t.Kind().String(); t.String() != kind {
			return kind + ":" + t.String()
		}
		return t.Kind().String()
	}
	panic("no description for " + t.String())
}

func visit(t reflect.Type) {
	k := key(t)
	if _, done := structs[k]; done {
		return
	}
	structs[k] = []string{k + " " + t.String()}
	for i := 0; i < t.NumField(); i++ {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-" || !field.IsExported():
		case field.Anonymous && name == "":
			structs[k] = append(structs[k], " <"+field.Name+" "+describe(field.Type))
		default:
			if name == "" {
				name = field.Name
			}
			structs[k] = append(structs[k], " "+name+" "+describe(field.Type))
		}
	}
}

func main() {
	visit(reflect.TypeOf(v1alpha1.ClusterServiceVersion{}))
	visit(reflect.TypeOf(apiextensionsv1.CustomResourceDefinition{}))
	visit(reflect.TypeOf(apiextensionsv1beta1.CustomResourceDefinition{}))
	keys := make([]string, 0, len(structs))
	for k := range structs {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		fmt.Println(strings.Join(structs[k], "\n"))
	}
}
