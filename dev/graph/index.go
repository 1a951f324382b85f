package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/operator-framework/operator-registry/pkg/image"
	"github.com/operator-framework/operator-registry/pkg/registry"
	"github.com/operator-framework/operator-registry/pkg/sqlite"
)

// indexBundle holds the fields of a bundle that decide its place in the graph.
type indexBundle struct {
	Name           string   `json:"name"`
	Version        string   `json:"version"`
	Channels       string   `json:"channels"`
	DefaultChannel string   `json:"defaultChannel,omitempty"`
	Replaces       string   `json:"replaces,omitempty"`
	Skips          []string `json:"skips,omitempty"`
	SkipRange      string   `json:"skipRange,omitempty"`
}

type indexEntry struct {
	Name      string   `json:"name"`
	Replaces  string   `json:"replaces,omitempty"`
	Skips     []string `json:"skips,omitempty"`
	SkipRange string   `json:"skipRange,omitempty"`
}

type indexAnswer struct {
	Channels       map[string][]indexEntry `json:"channels"`
	DefaultChannel string                  `json:"defaultChannel"`
	Error          string                  `json:"error,omitempty"`
}

const indexPackage = "shop"

// index adds bundles to an empty index, as `opm registry add` does, and returns the file-based catalog made from it, as
// `opm migrate` does.
func index(bundles []indexBundle, mode string, oneByOne bool) (a indexAnswer) {
	a.Channels = map[string][]indexEntry{}
	if err := a.fill(bundles, mode, oneByOne); err != nil {
		a.Error = err.Error()
	}
	return a
}

func (a *indexAnswer) fill(bundles []indexBundle, mode string, oneByOne bool) error {
	directory, err := os.MkdirTemp("", "graph-index-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(directory)
	db, err := sqlite.Open(filepath.Join(directory, "index.db"))
	if err != nil {
		return err
	}
	defer db.Close()
	// The index lives as long as the question.
	if _, err := db.Exec("PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY"); err != nil {
		return err
	}
	loader, err := sqlite.NewSQLLiteLoader(db)
	if err != nil {
		return err
	}
	ctx := context.Background()
	if err := loader.Migrate(ctx); err != nil {
		return err
	}
	graphs, err := sqlite.NewSQLGraphLoaderFromDB(db)
	if err != nil {
		return err
	}
	querier := sqlite.NewSQLLiteQuerierFromDb(db)
	var updates registry.Mode = registry.ReplacesMode
	if mode == "semver" {
		updates = registry.SemVerMode
	}
	add := func(images map[image.Reference]string) error {
		return registry.NewDirectoryPopulator(loader, graphs, querier, images, nil).Populate(updates)
	}
	all := map[image.Reference]string{}
	for _, bundle := range bundles {
		folder, err := bundle.write(directory)
		if err != nil {
			return err
		}
		reference := image.SimpleReference("r.example.com/" + filepath.Base(folder))
		all[reference] = folder
		// The order of a map is random, and semver-mode adds in this order.
		if oneByOne || updates == registry.SemVerMode {
			if err := add(map[image.Reference]string{reference: folder}); err != nil {
				return err
			}
		}
	}
	if !oneByOne && updates != registry.SemVerMode {
		if err := add(all); err != nil {
			return err
		}
	}
	packages, err := sqlite.ToModel(ctx, querier)
	if err != nil {
		return err
	}
	made, ok := packages[indexPackage]
	if !ok {
		return fmt.Errorf("the index has no package %s", indexPackage)
	}
	a.DefaultChannel = made.DefaultChannel.Name
	for name, channel := range made.Channels {
		for _, bundle := range channel.Bundles {
			skips := append([]string{}, bundle.Skips...)
			sort.Strings(skips)
			a.Channels[name] = append(a.Channels[name], indexEntry{bundle.Name, bundle.Replaces, skips, bundle.SkipRange})
		}
		entries := a.Channels[name]
		sort.Slice(entries, func(i, j int) bool { return entries[i].Name < entries[j].Name })
	}
	return nil
}

func (b indexBundle) write(root string) (string, error) {
	folder := filepath.Join(root, strings.NewReplacer("+", "-", "/", "-").Replace(b.Name))
	annotations := map[string]string{}
	if b.SkipRange != "" {
		annotations["olm.skipRange"] = b.SkipRange
	}
	spec := map[string]any{
		"version": b.Version, "displayName": "shop",
		"install": map[string]any{"strategy": "deployment", "spec": map[string]any{"deployments": []any{}}},
	}
	if b.Replaces != "" {
		spec["replaces"] = b.Replaces
	}
	if len(b.Skips) > 0 {
		spec["skips"] = b.Skips
	}
	csv := map[string]any{
		"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
		"metadata": map[string]any{"name": b.Name, "annotations": annotations}, "spec": spec,
	}
	const prefix = "operators.operatorframework.io.bundle."
	metadata := map[string]string{
		prefix + "mediatype.v1": "registry+v1", prefix + "manifests.v1": "manifests/", prefix + "metadata.v1": "metadata/",
		prefix + "package.v1": indexPackage, prefix + "channels.v1": b.Channels,
	}
	if b.DefaultChannel != "" {
		metadata[prefix+"channel.default.v1"] = b.DefaultChannel
	}
	for path, value := range map[string]any{
		"manifests/csv.yaml": csv, "metadata/annotations.yaml": map[string]any{"annotations": metadata},
	} {
		text, err := json.Marshal(value)
		if err != nil {
			return "", err
		}
		path = filepath.Join(folder, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return "", err
		}
	}
	return folder, nil
}
