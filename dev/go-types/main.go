// Prints the table of Go types that crates/go/src/structs/structs.txt holds: how encoding/json sees the structs that
// operator-sdk decodes bundle manifests into. Run: go run . > ../../crates/go/src/structs/structs.txt
package main

import (
	"encoding/json"
	"fmt"
	"path"
	"reflect"
	"sort"
	"strings"

	"github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
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
	if t.Name() == "" {
		return "Anonymous"
	}
	return t.Name()
}

// named is the name of a list or map type that has one.
func named(t reflect.Type) string {
	if t.Name() == "" {
		return ""
	}
	return t.String()
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
		// A distinct name, since error messages show it.
		return "[" + named(t) + "]" + describe(t.Elem())
	case reflect.Map:
		return "{" + named(t) + "}" + describe(t.Elem())
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
	if block, done := structs[k]; done {
		if block[0] != k+" "+t.String() {
			panic("two types are called " + k)
		}
		return
	}
	structs[k] = []string{k + " " + t.String()}
	for i := 0; i < t.NumField(); i++ {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-" || !field.IsExported():
		case field.Anonymous && name == "":
			structs[k] = append(structs[k], " <"+field.Name+" "+describe(field.Type))
		default:
			if name == "" {
				name = field.Name
			}
			// A question mark: an empty value is not printed.
			if strings.Contains(options, "omitempty") {
				name += "?"
			}
			structs[k] = append(structs[k], " "+name+" "+describe(field.Type))
		}
	}
}

func main() {
	for _, object := range []any{
		v1alpha1.ClusterServiceVersion{}, v1alpha3.Configuration{}, appsv1.Deployment{}, corev1.Service{}, corev1.ServiceAccount{},
		rbacv1.Role{}, rbacv1.ClusterRole{}, rbacv1.RoleBinding{}, rbacv1.ClusterRoleBinding{},
		admissionv1.ValidatingWebhookConfiguration{}, admissionv1.MutatingWebhookConfiguration{},
		corev1.ConfigMap{}, corev1.Secret{}, networkingv1.NetworkPolicy{}, policyv1.PodDisruptionBudget{}, schedulingv1.PriorityClass{},
	} {
		visit(reflect.TypeOf(object))
	}
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
