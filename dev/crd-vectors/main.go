// Asks the API server's own code what it says about CustomResourceDefinitions: those of real bundles, and random edits of them.
//
//	go run . [-seed N] [-edits N] [-focus defaults|formats|rules] DIR... > answers.jsonl
//
// Every YAML file below a DIR whose first document is a CustomResourceDefinition of v1 is a start. Each line of the output holds
// the definition, the edit and the errors; the test schemas_are_judged_as_by_the_api_servers_own_code of crates/olmkit compares them with olmkit's findings.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"math/rand"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/yaml"
)

type answer struct {
	File   string   `json:"file"`
	Edit   string   `json:"edit"`
	CRD    any      `json:"crd"`
	Errors []string `json:"errors"`
}

func main() {
	seed := flag.Int64("seed", 1, "start of the random numbers")
	edits := flag.Int("edits", 0, "how many edited definitions")
	focus := flag.String("focus", "", "edit only \"defaults\" (with their types and bounds, and the metadata of the root), \"formats\" of defaults, or \"rules\" with bounds")
	flag.Parse()
	edited, ok := map[string]func(map[string]any, *rand.Rand) string{"": change, "defaults": focusedChange, "formats": formatChange, "rules": ruleChange}[*focus]
	if !ok {
		fmt.Fprintf(os.Stderr, "unknown focus %q\n", *focus)
		os.Exit(2)
	}
	scheme := runtime.NewScheme()
	install.Install(scheme)
	decoder := serializer.NewCodecFactory(scheme).UniversalDecoder(apiextensions.SchemeGroupVersion)
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	defer out.Flush()
	encoder := json.NewEncoder(out)
	var starts []answer
	for _, path := range files(flag.Args()) {
		crd := read(path)
		if crd == nil {
			continue
		}
		errors := ask(decoder, crd)
		start := answer{File: path, Edit: "none", CRD: crd, Errors: errors}
		must(encoder.Encode(start))
		if len(errors) == 0 {
			starts = append(starts, start)
		}
	}
	random := rand.New(rand.NewSource(*seed))
	for made := 0; made < *edits && len(starts) > 0; {
		start := starts[random.Intn(len(starts))]
		crd := copied(start.CRD)
		edit := edited(crd, random)
		if edit == "" {
			continue
		}
		must(encoder.Encode(answer{File: start.File, Edit: edit, CRD: crd, Errors: ask(decoder, crd)}))
		made++
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func files(roots []string) []string {
	var found []string
	for _, root := range roots {
		must(filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.Type().IsRegular() && (strings.HasSuffix(path, ".yaml") || strings.HasSuffix(path, ".yml")) {
				found = append(found, path)
			}
			return err
		}))
	}
	sort.Strings(found)
	return found
}

// read gives the definition in a file, or nil.
func read(path string) map[string]any {
	text, err := os.ReadFile(path)
	must(err)
	if !bytes.Contains(text, []byte("CustomResourceDefinition")) || bytes.Contains(bytes.TrimPrefix(text, []byte("---\n")), []byte("\n---\n")) {
		return nil
	}
	converted, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil
	}
	var crd map[string]any
	if json.Unmarshal(converted, &crd) != nil || crd["kind"] != "CustomResourceDefinition" || crd["apiVersion"] != "apiextensions.k8s.io/v1" {
		return nil
	}
	return crd
}

func copied(value any) map[string]any {
	text, err := json.Marshal(value)
	must(err)
	var copy map[string]any
	must(json.Unmarshal(text, &copy))
	return copy
}

// ask gives what the server says when the definition is created.
func ask(decoder runtime.Decoder, crd map[string]any) (errors []string) {
	// The server answers with an error when its code panics.
	defer func() {
		if problem := recover(); problem != nil {
			errors = []string{fmt.Sprintf("panic: %v", problem)}
		}
	}()
	text, err := json.Marshal(crd)
	must(err)
	object, _, err := decoder.Decode(text, nil, nil)
	if err != nil {
		return []string{"decode: " + err.Error()}
	}
	internal, ok := object.(*apiextensions.CustomResourceDefinition)
	if !ok {
		return []string{fmt.Sprintf("decode: %T", object)}
	}
	// As the strategy of the storage does.
	internal.Generation = 1
	internal.Status = apiextensions.CustomResourceDefinitionStatus{}
	for _, version := range internal.Spec.Versions {
		if version.Storage {
			internal.Status.StoredVersions = []string{version.Name}
			break
		}
	}
	errors = []string{}
	for _, problem := range validation.ValidateCustomResourceDefinition(context.Background(), internal) {
		message := problem.Error()
		if len(message) > 600 {
			message = message[:300] + " … " + message[len(message)-300:]
		}
		errors = append(errors, message)
	}
	return errors
}
