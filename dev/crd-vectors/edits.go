package main

import (
	"fmt"
	"math/rand"
	"sort"
)

// node is a schema with where it stands.
type node struct {
	schema map[string]any
	path   string
}

// change edits a definition in one place; it says what it did, or nothing when the place does not allow the edit.
func change(crd map[string]any, random *rand.Rand) string {
	var nodes []node
	spec, _ := crd["spec"].(map[string]any)
	versions, _ := spec["versions"].([]any)
	for at, version := range versions {
		version, _ := version.(map[string]any)
		holder, _ := version["schema"].(map[string]any)
		if root, ok := holder["openAPIV3Schema"].(map[string]any); ok {
			collect(root, fmt.Sprintf("versions[%d]", at), &nodes)
		}
	}
	if len(nodes) == 0 {
		return ""
	}
	place := nodes[random.Intn(len(nodes))]
	kinds := []func(map[string]any, *rand.Rand) string{rule, rule, rule, rule, twoRules, withDefault, keyword, keyword, wrongType, remove, existingRule, existingRule}
	kind := random.Intn(len(kinds))
	// Rules on rules are rare in real definitions, so they are looked for.
	if kind >= 10 {
		var ruled []node
		for _, node := range nodes {
			if rules, _ := node.schema["x-kubernetes-validations"].([]any); len(rules) > 0 {
				ruled = append(ruled, node)
			}
		}
		if len(ruled) == 0 {
			return ""
		}
		place = ruled[random.Intn(len(ruled))]
	}
	edit := kinds[kind](place.schema, random)
	if edit == "" {
		return ""
	}
	return place.path + ": " + edit
}

// focusedChange edits defaults with their types, formats and number bounds, and the metadata of the root.
func focusedChange(crd map[string]any, random *rand.Rand) string {
	spec, _ := crd["spec"].(map[string]any)
	versions, _ := spec["versions"].([]any)
	version, _ := pick(random, versions...).(map[string]any)
	holder, _ := version["schema"].(map[string]any)
	root, ok := holder["openAPIV3Schema"].(map[string]any)
	if !ok {
		return ""
	}
	properties, _ := root["properties"].(map[string]any)
	if properties == nil {
		return ""
	}
	if random.Intn(4) == 0 {
		metadata := map[string]any{"type": "object"}
		properties["metadata"] = metadata
		return "metadata " + rootMetadata(metadata, random)
	}
	added := map[string]any{}
	holderOf, edit := properties, "field "
	switch random.Intn(4) {
	case 0:
		// The default belongs to the object around the value.
		outer := map[string]any{"type": "object", "properties": map[string]any{"zzInner": added}}
		properties["zzAdded"] = outer
		outer["default"] = map[string]any{"zzInner": anyValue(random)}
		edit = fmt.Sprintf("outer default %v, ", outer["default"])
	case 1:
		outer := map[string]any{"type": "array", "items": added}
		properties["zzAdded"] = outer
		outer["default"] = []any{anyValue(random)}
		edit = fmt.Sprintf("list default %v, ", outer["default"])
	default:
		holderOf["zzAdded"] = added
		added["default"] = anyValue(random)
	}
	choose := func(chance int, name string, values ...any) {
		if random.Intn(chance) == 0 {
			added[name] = pick(random, values...)
		}
	}
	choose(2, "x-kubernetes-int-or-string", true, true, true, false)
	if added["x-kubernetes-int-or-string"] != true {
		choose(2, "x-kubernetes-preserve-unknown-fields", true)
	}
	choose(2, "type", "string", "integer", "number", "boolean", "object")
	choose(2, "format", "int32", "int64", "float", "double", "date", "date-time", "byte", "x", "int-or-string", "uuid", "float64", "duration", "")
	choose(3, "anyOf", []any{map[string]any{"type": "integer"}, map[string]any{"type": "string"}})
	choose(4, "nullable", true, false)
	choose(4, "multipleOf", 1, 2, 0, -2, 0.5, -0.5, 0.1, 3e9, 1e30, 1.5)
	choose(4, "minimum", 1, -1.5, 1e30, 5, -5e18, 9.3e18)
	choose(4, "maximum", 1, -1.5, 1e30, 5, 5e18, 9.3e18)
	choose(5, "exclusiveMinimum", true, false)
	choose(5, "exclusiveMaximum", true, false)
	choose(6, "enum", []any{"a", 1, 5}, []any{nil}, []any{true, 1.5, "10%"}, []any{1.0, 2.0}, []any{map[string]any{"a": 1}})
	choose(6, "pattern", "^[0-9]+%?$", "a")
	choose(6, "maxLength", 1, -1, 0)
	choose(6, "minLength", 1, 2, -1)
	choose(6, "maxProperties", 0, -1, 1)
	choose(8, "not", map[string]any{"enum": []any{1}}, map[string]any{"minimum": 3}, map[string]any{"multipleOf": -1}, map[string]any{"format": "date"})
	choose(8, "allOf", []any{map[string]any{"multipleOf": 2}}, []any{map[string]any{"format": "int32"}}, []any{map[string]any{"anyOf": []any{map[string]any{"type": "integer"}, map[string]any{"type": "string"}}}})
	choose(10, "x-kubernetes-validations", []any{map[string]any{"rule": "self == self"}}, []any{map[string]any{"rule": "type(self) == int ? self > 1 : true"}})
	return edit + fmt.Sprintf("%v", added)
}

// ruleChange adds rules and bounds, which decide the estimated costs.
func ruleChange(crd map[string]any, random *rand.Rand) string {
	var nodes []node
	spec, _ := crd["spec"].(map[string]any)
	versions, _ := spec["versions"].([]any)
	for at, version := range versions {
		version, _ := version.(map[string]any)
		holder, _ := version["schema"].(map[string]any)
		if root, ok := holder["openAPIV3Schema"].(map[string]any); ok {
			collect(root, fmt.Sprintf("versions[%d]", at), &nodes)
		}
	}
	if len(nodes) == 0 {
		return ""
	}
	place := nodes[random.Intn(len(nodes))]
	edit := rule(place.schema, random) + limit(place.schema, random)
	for count := random.Intn(3); count > 0; count-- {
		other := nodes[random.Intn(len(nodes))]
		edit += "; " + other.path + limit(other.schema, random)
	}
	return place.path + ": " + edit
}

// valuesOf has values that fit a format, or nearly.
var valuesOf = map[string][]string{
	"bsonobjectid": {"507f1f77bcf86cd799439011", "507F1F77BCF86CD799439011"}, "byte": {"YQ==", "YWI=", "YWJj", "+/+/", ""}, "cidr": {"10.0.0.0/8", "010.0.0.1/08", "fd00::/64", "::ffff:1.2.3.4/96", "1.2.3.4/32"},
	"creditcard": {"4111 1111 1111 1111", "4222222222222", "5500-0000-0000-0004", "378282246310005", "30569309025904", "6011111111111117", "3530111333300000", "213100000000001", "2221000000000009"},
	"date":       {"2020-02-29", "2021-12-31", "0000-01-01", "9999-12-31", "2020-1-1"}, "date-time": {"2020-01-01T10:00:00Z", "2020-01-01t10:00:00.5+01:00", "2020-01-01T23:59:59.999z", "2020-01-01T24:00:00Z", "2020-01-01 10:00:00Z", "2020-01-01T10:00:60Z"},
	"datetime": {"2020-01-01T10:00:00-99:99"}, "duration": {"1h", "10 days", "1.5h", "2 weeks 3 hr", "-3s", "1d", "3 µs", "5micros", "0", "+.5h", "9999999999999999999 s"},
	"email": {"a@b", "A B <a@b.c>", "\"a b\"@c.d", "a@[1.2.3.4]", "a.b+c@d-e.f", "<a@b>", "a@b (c)", "ä@ö.de", "=?utf-8?q?a?= <a@b>"}, "hexcolor": {"#fff", "#FFFFFF", "abc", "a1b2c3"},
	"hostname": {"example.com", "a.b-c.example.org", "localhost", "a-com", "ab", "abc", "x--y.example.com", "8.8.8.com", "日本.jp", "☃.net", "a.b.", "a_b.com", "-a.com", "a-.com", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.com", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.com"},
	"ipv4":     {"1.2.3.4", "010.0.0.1", "255.255.255.255", "256.1.1.1", "1.2.3", "::ffff:1.2.3.4", "::1.2.3.4", "::ffff:01.2.3.4"}, "ipv6": {"::1", "fe80::1%eth0", "1:2:3:4:5:6:7:8", "::ffff:1.2.3.4", "1::8", "2001:DB8::", "1:2:3:4:5:6:7::", "1::2:3:4:5:6:7:8"},
	"isbn": {"0321751043", "978-0321751041", "0-8044-2957-X", "080442957x", "978 3 16 148410 0"}, "isbn10": {"0321751043", "080442957X", "X321751043"}, "isbn13": {"9780321751041", "978-3-16-148410-0"},
	"k8s-long-name": {"a.b", "a-b.c", "a..b", "A"}, "k8s-short-name": {"a", "a-b", "a.b", "0"}, "mac": {"01:23:45:67:89:ab", "0123.4567.89ab", "01-23-45-67-89-AB-cd-ef", "01:23:45:67:89-ab"}, "password": {"a", ""},
	"rgbcolor": {"rgb(1,2,3)", "rgb( 0 , 10 , 255 )", "rgb(01,2,3)", "rgb(1,2,256)", "RGB(1,2,3)"}, "ssn": {"111-22-3333", "111 22-3333", "111223333"},
	"uri": {"/a", "http://a.b/c?d#e", "a", "mailto:a@b", "http://[::1]:80/", "//a", "http://a b", "/%zz", "urn:a:b", "http://a:b/", "?a"}, "uuid": {"123e4567-e89b-12d3-a456-426614174000", "123E4567e89b12d3a456426614174000"},
	"uuid3": {"123e4567-e89b-32d3-a456-426614174000"}, "uuid4": {"123e4567-e89b-42d3-a456-426614174000"}, "uuid5": {"123e4567-e89b-52d3-8456-426614174000"},
}

// formatChange adds a string with a format and a default that fits it, or nearly.
func formatChange(crd map[string]any, random *rand.Rand) string {
	spec, _ := crd["spec"].(map[string]any)
	versions, _ := spec["versions"].([]any)
	version, _ := pick(random, versions...).(map[string]any)
	holder, _ := version["schema"].(map[string]any)
	root, _ := holder["openAPIV3Schema"].(map[string]any)
	properties, _ := root["properties"].(map[string]any)
	if properties == nil {
		return ""
	}
	var formats []string
	for name := range valuesOf {
		formats = append(formats, name)
	}
	sort.Strings(formats)
	format := pick(random, formats...)
	value := []rune(pick(random, valuesOf[format]...))
	if random.Intn(8) == 0 {
		value = []rune(pick(random, valuesOf[pick(random, formats...)]...))
	}
	for count := random.Intn(4); count > 0; count-- {
		at := random.Intn(len(value) + 1)
		characters := []rune("0123456789abcdefXxzTZ .:-+/@%()[]#_\tA0ä☃\n")
		switch added := pick(random, characters...); {
		case random.Intn(3) == 0 || at == len(value):
			value = append(value[:at:at], append([]rune{added}, value[at:]...)...)
		case random.Intn(2) == 0:
			value[at] = added
		default:
			value = append(value[:at:at], value[at+1:]...)
		}
	}
	added := map[string]any{"type": "string", "format": format, "default": string(value)}
	properties["zzAdded"] = added
	return fmt.Sprintf("format %s, default %q", format, string(value))
}

func anyValue(random *rand.Rand) any {
	return pick[any](random, 0, 1, 2, 3, 5, -3, 1.0, 1.5, -2.5, 3000000000, 1e30, int64(9007199254740993), true, false, "a", "", "10%", "80", "2020-01-01", "2020-01-01T00:00:00Z", "YQ==", "10s", nil, []any{}, []any{1}, map[string]any{}, map[string]any{"a": 1})
}

// rootMetadata adds keywords to the metadata of the root, which may contain only name and generateName.
func rootMetadata(metadata map[string]any, random *rand.Rand) string {
	text := map[string]any{"type": "string"}
	values := map[string][]any{
		"additionalProperties": {true, false, map[string]any{}, map[string]any{"type": "string"}, nil}, "example": {"", "a", 0, 1, false, true, nil, map[string]any{}, []any{}},
		"externalDocs": {map[string]any{}, map[string]any{"url": ""}, map[string]any{"url": "a"}, nil}, "title": {"", "a"}, "description": {"", "a"}, "format": {"", "x"}, "pattern": {"", "a"},
		"nullable": {true, false}, "required": {[]any{}, []any{"name"}, nil}, "enum": {[]any{}, []any{nil}, nil}, "minimum": {0, 1, nil}, "maximum": {0}, "multipleOf": {0, -1}, "exclusiveMinimum": {true, false},
		"exclusiveMaximum": {false, true}, "minLength": {0, -1, nil}, "maxLength": {0}, "minItems": {0}, "maxItems": {0}, "minProperties": {0}, "maxProperties": {0, 1, nil}, "uniqueItems": {false},
		"items": {map[string]any{}, text, nil}, "allOf": {[]any{}, []any{map[string]any{}}, nil}, "anyOf": {[]any{}, []any{map[string]any{}}}, "oneOf": {[]any{}}, "not": {map[string]any{}, nil},
		"properties":                           {nil, map[string]any{}, map[string]any{"name": text}, map[string]any{"name": text, "generateName": text}, map[string]any{"labels": map[string]any{"type": "object"}}, map[string]any{"name": text, "uid": text}, map[string]any{"name": map[string]any{"type": "string", "default": "a"}}},
		"x-kubernetes-preserve-unknown-fields": {true, nil}, "x-kubernetes-embedded-resource": {true, false}, "x-kubernetes-int-or-string": {true, false}, "x-kubernetes-list-type": {"", "set", nil}, "x-kubernetes-map-type": {"", "atomic", "granular", nil},
		"x-kubernetes-list-map-keys": {[]any{}, nil}, "x-kubernetes-validations": {[]any{}, []any{map[string]any{"rule": "true"}}, nil}, "definitions": {map[string]any{}}, "patternProperties": {map[string]any{}}, "id": {""}, "default": {nil, map[string]any{}}, "$schema": {""},
		"type": {"object", "", nil, "string"}, "x-unknown": {1}, "dependencies": {nil}, "additionalItems": {nil, false}, "$ref": {nil, ""},
	}
	edit := ""
	for count := 1 + random.Intn(2); count > 0; count-- {
		name := pick(random, sortedLists(values)...)
		metadata[name] = pick(random, values[name]...)
		edit += fmt.Sprintf("%s: %v ", name, metadata[name])
	}
	return edit
}

func collect(schema map[string]any, path string, nodes *[]node) {
	*nodes = append(*nodes, node{schema, path})
	properties, _ := schema["properties"].(map[string]any)
	for _, name := range sorted(properties) {
		if below, ok := properties[name].(map[string]any); ok {
			collect(below, path+"."+name, nodes)
		}
	}
	for _, name := range []string{"items", "additionalProperties"} {
		if below, ok := schema[name].(map[string]any); ok {
			collect(below, path+"."+name, nodes)
		}
	}
}

func sorted(fields map[string]any) []string {
	var names []string
	for name := range fields {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

func pick[T any](random *rand.Rand, from ...T) T { return from[random.Intn(len(from))] }

var anyRules = []string{
	"true", "self == oldSelf", "self == self", "has(self.a)", "type(self) == string", "dyn(self) == dyn(1)", "self != null", "oldSelf == self || true",
	"[self].all(x, x == self)", "{'a': self}.size() == 1", "[self, self].exists(x, x != self)", "optional.of(self).hasValue()", "undefined == 1", "self ==", "1",
	"[self].map(x, x).size() > 0", "(true ? self : self) == self", "cel.bind(x, self, x == self)",
}

var rulesOf = map[string][]string{
	"string": {
		"self.size() > 1", "self.matches('^[a-z]+$')", "self.matches('(?!a)')", "self.matches('[')", "self.matches(self)", "self.contains('a')", "self.contains(self)",
		"self.startsWith('a') && self.endsWith('b')", "self in ['a', 'b']", "self.split(',').all(x, x.size() < 3)", "self.split(',', 3).all(x, x.matches('^a*$'))",
		"self.replace('a', 'bb') != self", "self.replace('', 'b').size() > 0", "self.lowerAscii() == self.upperAscii()", "self.trim().contains('b')", "self.substring(1) == 'a'",
		"self.find('[0-9]+') == '1'", "self.findAll('[0-9]+').size() > 1", "self.findAll('[0-9]+').all(x, int(x) < 3)", "self.find('(')== 'a'", "isURL(self) && url(self).getScheme() == 'https'", "url(self).getHost().contains('a')",
		"quantity(self).isLessThan(quantity('1Gi'))", "isQuantity(self)", "isIP(self) && ip(self).family() == 4", "cidr(self).containsIP('10.0.0.1')", "cidr(self).containsCIDR(cidr('10.0.0.0/8'))",
		"!format.dns1123Label().validate(self).hasValue()", "self + self == 'aa'", "(self + 'a').matches('a+')", "self < 'a'", "self >= self", "self.charAt(0) == 'a'", "self.indexOf('a') == 1", "self.lastIndexOf(self) > 1",
		"duration(self) > duration('1h')", "timestamp(self) > timestamp('2020-01-01T00:00:00Z')", "duration('x') > duration('1h')", "int(self) > 1", "bytes(self).size() > 3", "string(bytes(self)) == self", "'%s'.format([self]) == 'a'",
		"[self, 'b'].join(',').contains('a')", "semver(self).isGreaterThan(semver('1.0.0'))", "self == oldSelf", "oldSelf.size() < self.size()", "!oldSelf.hasValue() || oldSelf.value() == self",
		"has(oldSelf) == self", "self.size() == 1 ? self.contains('a') : self.contains('bbb')", "[1, 2].exists_one(x, x == self.size())", "self.split('').isSorted()", "self.split(' ').map(x, x + 'a').exists(x, x.contains('b'))",
		"self.split(' ').filter(x, x != '').map(x, x.size()).sum() > 3", "self.split(' ').transformList(i, v, v + self).size() > 1", "self.split(',').sort().join('') == 'a'", "self.split(',').distinct().size() == 2",
		"self.split(',').slice(0, 2).all(x, x.contains(self))", "[[self]].flatten().size() == 1", "lists.range(3).all(x, self.contains(string(x)))", "self.split(',').reverse()[0] == self",
		"sets.contains(self.split(','), ['a'])", "strings.quote(self) == 'a'", "self.matches('a' + 'b')", "self.matches(\"\\\\d\") == true", "matches(self, 'a)')",
	},
	"integer": {"self > 1", "self % 2 == 0", "self in [1, 2, 3]", "self >= oldSelf", "string(self).size() > 2", "self == oldSelf", "double(self) > 1.5", "[1,2,3].exists(x, x == self)", "self > 'a'", "lists.range(self).all(x, x > 1)"},
	"number":  {"self > 1.0", "self > 1", "self == oldSelf", "int(self) > 1", "self * 2.0 < 5.0", "string(self).matches('[0-9]')"},
	"boolean": {"self", "!self", "self == oldSelf", "self || oldSelf", "self ? true : oldSelf", "self == 1"},
	"array": {
		"self.size() > 1", "self.all(x, x == x)", "self.all(x, self.all(y, x == y))", "self.exists(x, self.exists_one(y, x == y))", "self.all(x, self.exists(y, self.exists(z, x == y && y == z)))",
		"self.all(x, x in self)", "self == oldSelf", "oldSelf.all(x, x in self)", "self.map(x, x).size() > 0", "self.filter(x, x == self[0]).size() < 2", "self[0] == self[1]", "self + self == self", "(self + self).all(x, x == self[0])",
		"self.isSorted()", "self.indexOf(self[0]) == 0", "self.map(x, [x, x]).all(y, y.size() == 2)", "sets.equivalent(self, self)", "self.all(i, x, i < 3)", "self.transformList(i, x, x).size() > 2",
		"self.map(x, string(x)).join(',').contains('a')", "self.exists(x, x.startsWith('a'))", "self.all(x, x.matches('^a$'))", "self.all(x, has(x.name) && x.name.size() < 3)", "self.filter(x, has(x.name)).all(x, self.exists_one(y, y.name == x.name))",
		"self.all(x, x.contains(x))", "self.slice(0, 3).all(x, x == x)", "self.reverse().size() > 0", "self.distinct().size() == self.size()", "self.flatten().size() > 0", "self.sortBy(x, x.name)[0] == self[0]", "self.first().hasValue()", "self[?0].orValue(self[1]) == self[0]",
		"self.transformMap(i, x, x).size() > 1", "self.map(x, x > 1, x).sum() > 3", "self.max() > self.min()", "cel.bind(x, self, x.all(y, y in x))", "self.exists(x, optional.of(x).optMap(y, y == x).orValue(false))",
		"(size(self) > 3 ? self : self + self).all(x, x == x)", "[self, self].all(x, x.all(y, y in x))", "{'a': self}['a'].all(x, x in self)", "{'a': self}.all(k, k in ['a'])", "dyn(self).all(x, x == 1)",
	},
	"object": {
		"self.size() > 1", "self.all(k, k.size() > 1)", "self.all(k, self[k].size() > 1)", "self.all(k, v, k.contains('a'))", "self.exists(k, k.matches('^a'))", "self == oldSelf", "self.all(k, self.all(l, k == l))", "has(self.name)", "self.name.size() > 1",
		"has(self.name) ? self.name == oldSelf.name : true", "self.?name.orValue('a') == 'b'", "self.transformMap(k, v, k).size() > 1", "'a' in self", "self.map(k, k).join(',') == 'a'", "self.namespace == 'a'", "self.__namespace__ == 'a'", "self.kind == 'A'", "self.metadata.name.startsWith('a')", "self.metadata.name.matches('^a+$')", "self.apiVersion == self.kind",
		"self.?name.hasValue() && self.name.contains(self.name)", "self.spec == oldSelf.spec", "has(self.spec) && has(oldSelf.spec)", "self.metadata.labels == {}", "self.all(k, k in self)", "self.exists_one(k, self[k] == self[k])", "self.filter(k, k.startsWith('a')).size() < 3",
	},
}

// rule adds a rule, and sometimes limits that make it cheaper.
func rule(schema map[string]any, random *rand.Rand) string {
	kind, _ := schema["type"].(string)
	choices := rulesOf[kind]
	if len(choices) == 0 || random.Intn(8) == 0 {
		choices = anyRules
	}
	text := pick(random, choices...)
	// Rules about the real fields of an object.
	if properties, _ := schema["properties"].(map[string]any); len(properties) > 0 && random.Intn(2) == 0 {
		names := sorted(properties)
		name := pick(random, names...)
		below, _ := properties[name].(map[string]any)
		kind, _ := below["type"].(string)
		if own := rulesOf[kind]; len(own) > 0 {
			text = "self." + name + ".size() > 0"
			if random.Intn(3) > 0 {
				text = pick(random, own...)
				text = replaced(text, "self."+name)
				if random.Intn(2) == 0 {
					text = "!has(self." + name + ") || (" + text + ")"
				}
			}
		}
	}
	added := map[string]any{"rule": text}
	edit := "rule " + text
	if random.Intn(6) == 0 {
		added["fieldPath"] = pick(random, ".a", ".spec", ".name", "name", "['name']", ".", "", " ", ".metadata.name", ".spec.a[0]", "['a'", ".a\nb", "[0]", ".name.", "..name", ".name]", "['na\\'me']")
		if properties, _ := schema["properties"].(map[string]any); len(properties) > 0 && random.Intn(2) == 0 {
			name := pick(random, sorted(properties)...)
			added["fieldPath"] = pick(random, "."+name, "['"+name+"']", name, "."+name+".x")
		}
		edit += fmt.Sprintf(" fieldPath %q", added["fieldPath"])
	}
	if random.Intn(8) == 0 {
		added["messageExpression"] = pick(random, "'a'", "1", "self", "string(self)", "'a' +", "'a' + self", "'x' + string(self.size())", "self + self + self", "oldSelf == self ? 'a' : 'b'", " ", "self.map(x, self.map(y, x + y).join(',')).join(',')")
		edit += fmt.Sprintf(" messageExpression %q", added["messageExpression"])
	}
	if random.Intn(10) == 0 {
		added["optionalOldSelf"] = pick(random, true, false)
		edit += fmt.Sprintf(" optionalOldSelf %v", added["optionalOldSelf"])
	}
	if random.Intn(20) == 0 {
		added["reason"] = pick(random, "FieldValueInvalid", "Other", "")
		added["message"] = pick(random, "a", " ", "a\nb")
		edit += fmt.Sprintf(" reason %q message %q", added["reason"], added["message"])
	}
	rules, _ := schema["x-kubernetes-validations"].([]any)
	schema["x-kubernetes-validations"] = append(rules, added)
	if random.Intn(2) == 0 {
		edit += limit(schema, random)
		if items, ok := schema["items"].(map[string]any); ok {
			edit += limit(items, random)
		}
		if values, ok := schema["additionalProperties"].(map[string]any); ok {
			edit += limit(values, random)
		}
	}
	return edit
}

func replaced(text, name string) string {
	var result []byte
	for at := 0; at < len(text); {
		if at+4 <= len(text) && text[at:at+4] == "self" && (at == 0 || !letter(text[at-1])) && (at+4 == len(text) || !letter(text[at+4])) {
			result = append(result, name...)
			at += 4
			continue
		}
		if at+7 <= len(text) && text[at:at+7] == "oldSelf" {
			result = append(result, "oldSelf"+name[4:]...)
			at += 7
			continue
		}
		result = append(result, text[at])
		at++
	}
	return string(result)
}

func letter(b byte) bool { return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == '_' }

func limit(schema map[string]any, random *rand.Rand) string {
	kind, _ := schema["type"].(string)
	name := map[string]string{"string": "maxLength", "array": "maxItems", "object": "maxProperties"}[kind]
	if name == "" {
		return ""
	}
	value := pick(random, 0, 1, 5, 16, 64, 128, 253, 1000, 5000, 100000)
	schema[name] = value
	return fmt.Sprintf(" %s %d", name, value)
}

func twoRules(schema map[string]any, random *rand.Rand) string {
	edit := ""
	for count := 0; count < 2+random.Intn(12); count++ {
		edit += rule(schema, random) + "; "
	}
	return edit
}

// withDefault adds a default, and sometimes a rule that it breaks.
func withDefault(schema map[string]any, random *rand.Rand) string {
	value := pick[any](random, "a", "", 1, 1.5, true, nil, []any{}, []any{"a", "a"}, map[string]any{}, map[string]any{"a": "b"}, map[string]any{"name": "x"}, "10s", "2020-01-01T00:00:00Z", -3, []any{map[string]any{"name": "x"}})
	kind, _ := schema["type"].(string)
	if random.Intn(4) > 0 {
		switch kind {
		case "string":
			value = pick[any](random, "a", "b", "abc", "1")
		case "integer":
			value = pick[any](random, 0, 1, 5)
		case "boolean":
			value = pick[any](random, true, false)
		case "object":
			value = map[string]any{}
		case "array":
			value = pick[any](random, []any{}, []any{"a"}, []any{"b", "a"})
		}
	}
	schema["default"] = value
	edit := fmt.Sprintf("default %v", value)
	if random.Intn(2) == 0 {
		edit += " " + rule(schema, random)
	}
	return edit
}

func keyword(schema map[string]any, random *rand.Rand) string {
	values := map[string][]any{
		"type": {"string", "object", "array", "integer", "number", "boolean", "null", "text", ""}, "format": {"int32", "int64", "date", "date-time", "duration", "byte", "x", "int-or-string", "uuid", "double"},
		"nullable": {true, false}, "pattern": {"a", "[", "(?!a)", "\\d+", "(?<name>a)", "a{2000}", "\\Z"}, "enum": {[]any{}, []any{"a"}, []any{1}, []any{nil}}, "required": {[]any{}, []any{"a"}, []any{"a", "a"}, []any{"name"}},
		"minimum": {1, -1.5, 1e30}, "exclusiveMinimum": {true, false}, "multipleOf": {1, 0, -2, 0.5}, "minLength": {1, -1}, "maxLength": {1, -1}, "maxItems": {1, -1}, "minItems": {-1, 2}, "uniqueItems": {true, false}, "maxProperties": {1, -1},
		"x-kubernetes-preserve-unknown-fields": {true, false}, "x-kubernetes-embedded-resource": {true, false}, "x-kubernetes-int-or-string": {true, false}, "x-kubernetes-list-type": {"atomic", "set", "map", "x"}, "x-kubernetes-map-type": {"atomic", "granular", "x"},
		"x-kubernetes-list-map-keys": {[]any{"name"}, []any{}, []any{"a"}}, "additionalProperties": {true, false, map[string]any{"type": "string"}, map[string]any{}}, "items": {map[string]any{"type": "string"}, []any{map[string]any{"type": "string"}}, map[string]any{}},
		"anyOf": {[]any{map[string]any{"type": "integer"}, map[string]any{"type": "string"}}, []any{map[string]any{"required": []any{"a"}}}, []any{map[string]any{"properties": map[string]any{"name": map[string]any{}}}}, []any{map[string]any{"minLength": 3}}, []any{map[string]any{"items": map[string]any{"minLength": 1}}}, []any{map[string]any{"additionalProperties": map[string]any{"minLength": 1}}}, []any{}},
		"allOf": {[]any{map[string]any{"pattern": "["}}, []any{map[string]any{"x-kubernetes-validations": []any{map[string]any{"rule": "self == self"}}}}, []any{map[string]any{"anyOf": []any{map[string]any{"type": "integer"}, map[string]any{"type": "string"}}}}, []any{map[string]any{"properties": map[string]any{"metadata": map[string]any{}}}}}, "oneOf": {[]any{map[string]any{"not": map[string]any{"required": []any{"a"}}}}, []any{map[string]any{"description": "a"}}, []any{map[string]any{"nullable": true}}, []any{map[string]any{"enum": []any{"a"}}}},
		"not": {map[string]any{}, map[string]any{"required": []any{"a"}}, map[string]any{"type": "string"}, map[string]any{"properties": map[string]any{"zz": map[string]any{"enum": []any{1}}}}}, "$ref": {"#/a", ""}, "id": {"a", ""}, "definitions": {map[string]any{}, map[string]any{"a": map[string]any{}}}, "patternProperties": {map[string]any{"a": map[string]any{}}}, "dependencies": {map[string]any{"a": []any{"b"}}, map[string]any{}}, "additionalItems": {true, false},
		"example": {1, "a", map[string]any{}}, "externalDocs": {map[string]any{"url": "a"}}, "title": {"a"}, "description": {"a"}, "properties": {map[string]any{"a": map[string]any{"type": "string"}}, map[string]any{"metadata": map[string]any{"type": "object", "properties": map[string]any{"labels": map[string]any{"type": "object"}}}}, map[string]any{"namespace": map[string]any{"type": "string"}}, map[string]any{}},
	}
	name := pick(random, sortedLists(values)...)
	schema[name] = pick(random, values[name]...)
	return fmt.Sprintf("%s: %v", name, schema[name])
}

func sortedLists(values map[string][]any) []string {
	var names []string
	for name := range values {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// wrongType gives a keyword a value of a type that the server may not be able to decode.
func wrongType(schema map[string]any, random *rand.Rand) string {
	names := []string{"description", "type", "format", "title", "default", "maximum", "exclusiveMaximum", "maxLength", "pattern", "maxItems", "uniqueItems", "multipleOf", "enum", "maxProperties", "required", "items", "allOf", "not", "properties", "additionalProperties", "nullable", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-validations", "example", "x-unknown", "$schema", "$ref"}
	name := pick(random, names...)
	schema[name] = pick[any](random, 5, 1.5, "5", true, []any{}, []any{1}, []any{"a"}, map[string]any{}, map[string]any{"a": 1}, nil, -1, "", []any{map[string]any{}})
	return fmt.Sprintf("%s: %#v", name, schema[name])
}

func remove(schema map[string]any, random *rand.Rand) string {
	names := sorted(schema)
	if len(names) == 0 {
		return ""
	}
	name := pick(random, names...)
	delete(schema, name)
	return "without " + name
}

// existingRule changes an existing rule or a field next to it.
func existingRule(schema map[string]any, random *rand.Rand) string {
	switch random.Intn(4) {
	case 0:
		for _, name := range []string{"maxItems", "maxLength", "maxProperties"} {
			if _, ok := schema[name]; ok {
				delete(schema, name)
				return "without " + name
			}
		}
		return limit(schema, random)
	case 1:
		var nodes []node
		collect(schema, "", &nodes)
		place := pick(random, nodes...)
		edit := "below " + place.path + ":"
		for _, name := range []string{"maxItems", "maxLength", "maxProperties", "enum"} {
			if _, ok := place.schema[name]; ok {
				delete(place.schema, name)
				return edit + " without " + name
			}
		}
		return edit + limit(place.schema, random)
	case 2:
		rules, _ := schema["x-kubernetes-validations"].([]any)
		own, _ := rules[random.Intn(len(rules))].(map[string]any)
		text, _ := own["rule"].(string)
		if text == "" {
			return ""
		}
		at := random.Intn(len(text))
		own["rule"] = pick(random, text[:at]+text[at+1:], text[:at]+" "+text[at:], text+" && "+text, "("+text+") || ("+text+")", "!("+text+")", text+" == oldSelf")
		return fmt.Sprintf("rule %v", own["rule"])
	default:
		return rule(schema, random)
	}
}
