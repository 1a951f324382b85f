package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"regexp"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/lib/version"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/api/client/clientset/versioned"
	clientv1alpha1 "github.com/operator-framework/operator-lifecycle-manager/pkg/api/client/clientset/versioned/typed/operators/v1alpha1"
	listersv1 "github.com/operator-framework/operator-lifecycle-manager/pkg/api/client/listers/operators/v1"
	listersv1alpha1 "github.com/operator-framework/operator-lifecycle-manager/pkg/api/client/listers/operators/v1alpha1"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/controller/registry/resolver"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/controller/registry/resolver/cache"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/controller/registry/resolver/projection"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/lib/operatorlister"
	"github.com/operator-framework/operator-registry/pkg/api"
	"github.com/sirupsen/logrus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8scache "k8s.io/client-go/tools/cache"
)

const (
	namespace   = "operators"
	catalogName = "catalog"
	mostSteps   = 1000
)

// world is one namespace of a cluster with one catalog and OLM's resolver. Its CSVs and Subscriptions are set anew for
// each question; the bundles of the catalog are read once.
type world struct {
	server  *server
	entries []*cache.Entry // the bundles as OLM sees them
	csvs    k8scache.Indexer
	subs    k8scache.Indexer
	steps   resolver.StepResolver
}

func indexer(objects ...any) k8scache.Indexer {
	byNamespace := k8scache.Indexers{k8scache.NamespaceIndex: k8scache.MetaNamespaceIndexFunc}
	index := k8scache.NewIndexer(k8scache.MetaNamespaceKeyFunc, byNamespace)
	for _, object := range objects {
		_ = index.Add(object)
	}
	return index
}

func newWorld(s *server) (*world, error) {
	log := logrus.New()
	log.SetOutput(io.Discard)
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, Namespace: namespace} }
	w := &world{server: s, csvs: indexer(), subs: indexer()}
	sources := listersv1alpha1.NewCatalogSourceLister(indexer(&v1alpha1.CatalogSource{ObjectMeta: meta(catalogName)}))
	lister := operatorlister.NewLister()
	all := metav1.NamespaceAll
	lister.OperatorsV1alpha1().RegisterClusterServiceVersionLister(all, listersv1alpha1.NewClusterServiceVersionLister(w.csvs))
	lister.OperatorsV1alpha1().RegisterSubscriptionLister(all, listersv1alpha1.NewSubscriptionLister(w.subs))
	lister.OperatorsV1alpha1().RegisterCatalogSourceLister(all, sources)
	groups := indexer(&operatorsv1.OperatorGroup{ObjectMeta: meta("group")})
	lister.OperatorsV1().RegisterOperatorGroupLister(all, listersv1.NewOperatorGroupLister(groups))
	provider := resolver.SourceProviderFromRegistryClientProvider(clients{s}, sources, log)
	bundles, err := provider.Sources(namespace)[cache.SourceKey{Name: catalogName, Namespace: namespace}].Snapshot(context.Background())
	if err != nil {
		return nil, err
	}
	w.entries = bundles.Entries
	kube := subscriptions{index: w.subs}
	w.steps = resolver.NewOperatorStepResolver(lister, kube, namespace, resolver.NewOperatorCacheProvider(lister, kube, provider, log), log)
	return w, nil
}

// subscriptions is the one call that the resolver makes to the API server: the list of Subscriptions.
type subscriptions struct {
	versioned.Interface
	clientv1alpha1.OperatorsV1alpha1Interface
	clientv1alpha1.SubscriptionInterface
	index k8scache.Indexer
}

func (s subscriptions) OperatorsV1alpha1() clientv1alpha1.OperatorsV1alpha1Interface { return s }

func (s subscriptions) Subscriptions(string) clientv1alpha1.SubscriptionInterface { return s }

func (s subscriptions) List(context.Context, metav1.ListOptions) (*v1alpha1.SubscriptionList, error) {
	list := &v1alpha1.SubscriptionList{}
	for _, object := range s.index.List() {
		list.Items = append(list.Items, *object.(*v1alpha1.Subscription).DeepCopy())
	}
	return list, nil
}

// pathQuestion asks for the upgrades from an installed CSV.
type pathQuestion struct {
	Catalog      string  `json:"catalog"`
	Package      string  `json:"package"`
	Channel      string  `json:"channel,omitempty"`      // "": the default channel, see NoChannel
	NoChannel    bool    `json:"noChannel,omitempty"`    // a Subscription that names no channel
	From         string  `json:"from,omitempty"`         // the installed CSV; "": nothing is installed
	Version      *string `json:"version,omitempty"`      // its spec.version, if it is not the bundle's
	StartingCSV  string  `json:"startingCSV,omitempty"`  // of the Subscription
	Dependencies string  `json:"dependencies,omitempty"` // "ignore": all dependencies count as met
}

// pathAnswer lists them.
type pathAnswer struct {
	Chain   []string `json:"chain"`             // the CSVs that get installed, the first is From
	End     string   `json:"end"`               // settled, cycle, refused (the resolver fails), no catalog
	Version string   `json:"version,omitempty"` // of From
	Others  []string `json:"others,omitempty"`  // CSVs of other packages that got installed
	Error   string   `json:"error,omitempty"`
}

var versionAtEnd = regexp.MustCompile(`[.-]v?(\d+\.\d+\.\d+.*)$`)

// installed makes the CSV as OLM would have left it: with the version and the properties of its bundle.
func (w *world) installed(pkg, name string, given *string) (*v1alpha1.ClusterServiceVersion, error) {
	csv := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	csv.Status.Phase = v1alpha1.CSVPhaseSucceeded
	var properties []*api.Property
	for _, e := range w.entries {
		if e.Name == name && e.Package() == pkg {
			if e.Version != nil {
				csv.Spec.Version = version.OperatorVersion{Version: *e.Version}
			}
			properties = e.Properties
			break
		}
	}
	if properties == nil && given == nil {
		if found := versionAtEnd.FindStringSubmatch(name); found != nil {
			given = &found[1]
		}
	}
	if given != nil {
		csv.Spec.Version = version.OperatorVersion{}
		if v, err := semver.Parse(*given); err == nil {
			csv.Spec.Version.Version = v
		}
	}
	if properties == nil {
		value, err := json.Marshal(map[string]string{"packageName": pkg, "version": csv.Spec.Version.String()})
		if err != nil {
			return nil, err
		}
		properties = []*api.Property{{Type: "olm.package", Value: string(value)}}
	}
	annotation, err := projection.PropertiesAnnotationFromPropertyList(properties)
	csv.Annotations = map[string]string{projection.PropertiesAnnotationKey: annotation}
	return csv, err
}

func (w *world) answer(q pathQuestion) (a pathAnswer) {
	a.Chain = []string{}
	for _, index := range []k8scache.Indexer{w.csvs, w.subs} {
		_ = index.Replace(nil, "")
	}
	pkg, ok := w.server.packages[q.Package]
	if !ok {
		a.End, a.Error = "refused", errNoPackage.Error()
		return a
	}
	channel := q.Channel
	if channel == "" && !q.NoChannel {
		channel = pkg.DefaultChannelName
	}
	sub := &v1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Name: "subscription", Namespace: namespace},
		Spec: &v1alpha1.SubscriptionSpec{
			CatalogSource: catalogName, CatalogSourceNamespace: namespace,
			Package: q.Package, Channel: channel, StartingCSV: q.StartingCSV,
		},
	}
	seen := map[string]bool{}
	if q.From != "" {
		csv, err := w.installed(q.Package, q.From, q.Version)
		if err != nil {
			a.End, a.Error = "refused", err.Error()
			return a
		}
		_ = w.csvs.Add(csv)
		sub.Status = v1alpha1.SubscriptionStatus{CurrentCSV: q.From, InstalledCSV: q.From, State: v1alpha1.SubscriptionStateAtLatest}
		a.Version = csv.Spec.Version.String()
		a.Chain = append(a.Chain, q.From)
		seen[q.From] = true
	}
	_ = w.subs.Add(sub)
	for range mostSteps {
		steps, lookups, updated, err := w.steps.ResolveSteps(namespace)
		if err != nil {
			a.End, a.Error = "refused", err.Error()
			return a
		}
		for _, step := range steps {
			if step.Resource.Kind != v1alpha1.SubscriptionKind {
				continue
			}
			made := &v1alpha1.Subscription{}
			if err := json.Unmarshal([]byte(step.Resource.Manifest), made); err != nil {
				a.End, a.Error = "refused", err.Error()
				return a
			}
			made.Status.CurrentCSV = made.Spec.StartingCSV
			updated = append(updated, made)
		}
		if len(updated) == 0 {
			a.End = "settled"
			return a
		}
		properties := map[string]string{}
		for _, lookup := range lookups {
			properties[lookup.Identifier] = lookup.Properties
		}
		for _, each := range updated {
			next := each.Status.CurrentCSV
			csv, err := w.installed(each.Spec.Package, next, nil)
			if err != nil {
				a.End, a.Error = "refused", err.Error()
				return a
			}
			if found, ok := properties[next]; ok {
				csv.Annotations[projection.PropertiesAnnotationKey] = found
			}
			if previous, exists, _ := w.csvs.GetByKey(namespace + "/" + each.Status.InstalledCSV); exists {
				_ = w.csvs.Delete(previous)
			}
			_ = w.csvs.Add(csv)
			each.Status.InstalledCSV = next
			_ = w.subs.Update(each)
			if each.Name != sub.Name {
				a.Others = append(a.Others, next)
				continue
			}
			a.Chain = append(a.Chain, next)
			if seen[next] {
				a.End = "cycle"
				return a
			}
			seen[next] = true
		}
	}
	a.End, a.Error = "refused", fmt.Sprintf("no end after %d steps", mostSteps)
	return a
}
