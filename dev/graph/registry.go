package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/operator-framework/operator-lifecycle-manager/pkg/controller/registry"
	"github.com/operator-framework/operator-registry/pkg/api"
	regcache "github.com/operator-framework/operator-registry/pkg/cache"
	"github.com/operator-framework/operator-registry/pkg/client"
	opregistry "github.com/operator-framework/operator-registry/pkg/registry"
)

// server answers what OLM asks a catalog's registry server: all bundles, and packages. It keeps the answers of
// operator-registry's own cache, the one behind its gRPC server; a catalog that the server refuses is refused here.
type server struct {
	client.Interface // only the calls below are made
	bundles          []*api.Bundle
	packages         map[string]*api.Package
}

func serve(directory string) (*server, error) {
	temporary, err := os.MkdirTemp("", "graph-catalog-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temporary)
	ctx := context.Background()
	store, err := regcache.New(temporary, regcache.WithFormat("json"))
	if err != nil {
		return nil, err
	}
	defer store.Close()
	if err := store.Build(ctx, os.DirFS(directory)); err != nil {
		return nil, err
	}
	if err := store.Load(ctx); err != nil {
		return nil, err
	}
	s := &server{packages: map[string]*api.Package{}}
	if s.bundles, err = store.ListBundles(ctx); err != nil {
		return nil, err
	}
	names, err := store.ListPackages(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		manifest, err := store.GetPackage(ctx, name)
		if err != nil {
			return nil, err
		}
		s.packages[name] = opregistry.PackageManifestToAPIPackage(manifest)
	}
	return s, nil
}

var dependencyTypes = map[string]bool{
	"olm.gvk.required": true, "olm.package.required": true, "olm.label.required": true, "olm.constraint": true,
}

// withoutDependencies is the same catalog where no bundle requires anything.
func (s *server) withoutDependencies() *server {
	other := &server{packages: s.packages}
	for _, b := range s.bundles {
		c := &api.Bundle{
			CsvName: b.CsvName, PackageName: b.PackageName, ChannelName: b.ChannelName, CsvJson: b.CsvJson, Object: b.Object,
			BundlePath: b.BundlePath, ProvidedApis: b.ProvidedApis, Version: b.Version, SkipRange: b.SkipRange,
			Replaces: b.Replaces, Skips: b.Skips, Deprecation: b.Deprecation,
		}
		for _, p := range b.Properties {
			if !dependencyTypes[p.Type] {
				c.Properties = append(c.Properties, p)
			}
		}
		other.bundles = append(other.bundles, c)
	}
	return other
}

func (s *server) GetPackage(_ context.Context, name string) (*api.Package, error) {
	if p, ok := s.packages[name]; ok {
		return p, nil
	}
	return nil, fmt.Errorf("package %q not found", name)
}

func (s *server) ListBundles(context.Context) (*client.BundleIterator, error) {
	return client.NewBundleIterator(&stream{rest: s.bundles}), nil
}

type stream struct{ rest []*api.Bundle }

func (s *stream) Recv() (*api.Bundle, error) {
	if len(s.rest) == 0 {
		return nil, io.EOF
	}
	first := s.rest[0]
	s.rest = s.rest[1:]
	return first, nil
}

// clients hands the one server to OLM.
type clients struct{ one *server }

func (c clients) ClientsForNamespaces(...string) map[registry.CatalogKey]client.Interface {
	return map[registry.CatalogKey]client.Interface{{Name: catalogName, Namespace: namespace}: c.one}
}

var errNoPackage = errors.New("the catalog has no such package")
