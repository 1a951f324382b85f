//! OLM reads catalogs from a pod of olmkit's server. Each drill disturbs this pod. OLM must recover without help, and then list the
//! content of the catalog.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::checks::Checks;
use crate::package::{Catalog, push, reach};
use crate::run::{Namespace, PACKAGE, is};
use crate::world::World;

pub fn catalogs(world: &World, checks: &mut Checks, space: &Namespace) {
    world.run.title("catalogs");
    let offer = Offer { world, space };
    checks.check("a catalog image with a moved tag is picked up", || {
        offer.moved_tag_is_picked_up()
    });
    checks.check("its icon and description are listed", || offer.metadata_is_listed());
    checks.check("the server is killed while OLM resolves", || offer.server_is_killed());
    checks.check("the prepared index is truncated", || offer.index_is_truncated());
    checks.check("the disk is too full for an index", || offer.disk_is_full());
    checks.check("a broken package does not affect the others", || {
        offer.package_beside_is_broken()
    });
}

/// The CatalogSource of the drills.
struct Offer<'a> {
    world: &'a World<'a>,
    space: &'a Namespace<'a>,
}

impl Offer<'_> {
    fn create(&self, image: &str) -> anyhow::Result<()> {
        self.space.apply(&format!(
            r#"apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {{name: offered}}
spec: {{sourceType: grpc, image: "{image}", displayName: Drills, grpcPodConfig: {{securityContextConfig: restricted}}, updateStrategy: {{registryPoll: {{interval: 10s}}}}}}
"#
        ))?;
        Ok(())
    }

    fn withdraw(&self) -> anyhow::Result<()> {
        let run = self.world.run;
        self.space.kubectl("delete catalogsource offered --ignore-not-found")?;
        run.until(60, "", || {
            self.space.kubectl("get pod -l olm.catalogSource=offered -o name")
        })?;
        run.until(60, "", || self.listed("currentCSV"))
    }

    /// A field of the channel, as OLM's packageserver lists it.
    fn listed(&self, field: &str) -> anyhow::Result<String> {
        let package = format!(
            "packagemanifests.packages.operators.coreos.com {} --ignore-not-found",
            PACKAGE
        );
        self.space
            .get(&package, &format!("{{.status.channels[?(@.name==\"alpha\")].{field}}}"))
    }

    /// Waits until OLM lists both versions.
    fn lists_both(&self) -> anyhow::Result<()> {
        let name = |version: &str| format!("{}.v{version}", PACKAGE);
        let (old, new) = (name(self.world.old_version()), name(self.world.new_version()));
        self.world.run.until(120, &new, || self.listed("currentCSV"))?;
        let names = self.listed("entries[*].name")?;
        let mut names: Vec<&str> = names.split(' ').collect();
        names.sort_unstable();
        ensure!(names == [old.as_str(), new.as_str()], "the entries are {names:?}");
        Ok(())
    }

    /// Pushes the catalog image with an added or replaced file.
    fn push_changed(&self, file: &Path, target: &str, tag: &str) -> anyhow::Result<String> {
        let run = self.world.run;
        let image = format!("{}/drills/catalog:{tag}", run.registry);
        run.kit("image build files --base")
            .arg(reach(run, &self.world.package.catalog_image()))
            .arg("--add")
            .arg(format!("{}:{target}", file.display()))
            .args(["--tag", &image])
            .run()?;
        push(run, &image)?;
        Ok(image)
    }

    fn logs_contain(&self, objects: &str, words: &[&str]) -> anyhow::Result<()> {
        let logs = self.space.kubectl(&format!("logs {objects}"))?.to_lowercase();
        ensure!(
            words.iter().any(|word| logs.contains(word)),
            "the log has none of {words:?}: {logs}"
        );
        Ok(())
    }

    fn moved_tag_is_picked_up(&self) -> anyhow::Result<()> {
        let (run, package) = (self.world.run, &self.world.package);
        package.publish_catalog(run, Catalog::Old)?;
        self.create(&package.catalog_image())?;
        let old = format!("{}.v{}", PACKAGE, self.world.old_version());
        run.until(90, &old, || self.listed("currentCSV"))?;
        package.publish_catalog(run, Catalog::Both)?;
        self.lists_both()
    }

    fn metadata_is_listed(&self) -> anyhow::Result<()> {
        let run = self.world.run;
        let catalog = run.work.join("catalog/both").display().to_string();
        let rendered = run.olmkit(&format!("catalog render {catalog} -o json")).run()?;
        let name = format!("{}.v{}", PACKAGE, self.world.new_version());
        let metadata = csv_metadata(&rendered, &name)?;
        let text = |field: &str| metadata.get(field).and_then(Value::as_str).unwrap_or_default();
        ensure!(!text("description").is_empty(), "the catalog has no description");
        is(
            &self.listed("currentCSVDesc.description")?,
            text("description").trim_end(),
        )?;
        is(&self.listed("currentCSVDesc.displayName")?, text("displayName"))?;
        // Lists have no icons. They are read one by one.
        let icon = format!(
            "/apis/packages.operators.coreos.com/v1/namespaces/{}/packagemanifests/{}/icon",
            self.space.name, PACKAGE
        );
        let expected = fs::read_to_string(run.root.join("config/icon.svg"))?;
        is(&run.kubectl(&format!("get --raw {icon}"))?, expected.trim_end())
    }

    /// OLM reads all bundles when it connects and when it resolves. The drill kills the server three times during these requests.
    fn server_is_killed(&self) -> anyhow::Result<()> {
        let (run, space, package) = (self.world.run, self.space, PACKAGE);
        space.create(&format!(
            "apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {{name: own}}
spec: {{targetNamespaces: [{name}]}}
---
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {{name: {package}}}
spec: {{name: {package}, channel: alpha, source: offered, sourceNamespace: {name}}}
",
            name = space.name
        ))?;
        let mut killed = Vec::new();
        run.until_true(300, || {
            while killed.len() < 3 {
                let container = self.container()?;
                ensure!(!killed.contains(&container), "the server has not restarted");
                run.node_script(&format!("\"${{ctr[@]}}\" tasks kill -s SIGKILL {container}"))
                    .run()?;
                killed.push(container);
                std::thread::sleep(Duration::from_millis(200));
            }
            Ok(())
        })?;
        space.installed(self.world.new_version())?;
        run.until(90, "READY", || space.catalog_state("offered"))?;
        self.lists_both()?;
        space.cleaned_up()?;
        space.kubectl("delete operatorgroup own --ignore-not-found")?;
        Ok(())
    }

    /// The running container of the catalog's pod.
    fn container(&self) -> anyhow::Result<String> {
        let status = "{.items[0].status.containerStatuses[0]";
        let path = format!("{status}.state.running.startedAt}} {status}.containerID}}");
        let text = self.space.get("pod -l olm.catalogSource=offered", &path)?;
        let (started, container) = text.split_once(' ').context("no container")?;
        ensure!(!started.is_empty(), "the container does not run");
        Ok(container.trim_start_matches("containerd://").to_owned())
    }

    fn index_is_truncated(&self) -> anyhow::Result<()> {
        let run = self.world.run;
        self.withdraw()?;
        let tree = run.results.join("catalog-image");
        if tree.exists() {
            fs::remove_dir_all(&tree)?;
        }
        let files = tree.join("files");
        fs::create_dir_all(&files)?;
        let image = reach(run, &self.world.package.catalog_image());
        run.kit("image copy")
            .arg(image)
            .arg(format!("oci:{}", tree.join("layout").display()))
            .run()?;
        for blob in fs::read_dir(tree.join("layout/blobs/sha256"))? {
            // tar rejects blobs that are no layer, and layers without the directory.
            let extract = run.program("tar").arg("-xf").arg(blob?.path()).arg("cache");
            extract.directory(&files).finish()?;
        }
        let find = "find cache -type f -size +1k | sort | head -n 1";
        let index = run.program("sh").args(["-c", find]).directory(&files).run()?;
        ensure!(!index.is_empty(), "the image has no index");
        let content = fs::read(files.join(&index))?;
        let truncated = tree.join("truncated");
        fs::write(&truncated, content.get(..content.len() / 2).unwrap_or_default())?;
        let image = self.push_changed(&truncated, &format!("/{index}"), "truncated")?;
        self.create(&image)?;
        self.lists_both()?;
        self.logs_contain("-l olm.catalogSource=offered --tail=-1", &["index"])
    }

    /// The server's directory for the index has 16 KiB of memory.
    fn disk_is_full(&self) -> anyhow::Result<()> {
        let space = self.space;
        self.withdraw()?;
        space.apply(&format!(
            r#"apiVersion: v1
kind: Pod
metadata: {{name: full, labels: {{drill: full}}}}
spec:
  securityContext: {{runAsNonRoot: true, runAsUser: 1001, seccompProfile: {{type: RuntimeDefault}}}}
  volumes: [{{name: index, emptyDir: {{medium: Memory, sizeLimit: 16Ki}}}}]
  containers:
  - name: catalog
    image: "{image}"
    args: [serve, /configs, --cache-dir=/index]
    env: [{{name: TMPDIR, value: /index}}]
    volumeMounts: [{{name: index, mountPath: /index}}]
    readinessProbe: {{grpc: {{port: 50051}}, periodSeconds: 1}}
    securityContext: {{allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {{drop: [ALL]}}}}
---
apiVersion: v1
kind: Service
metadata: {{name: full}}
spec: {{selector: {{drill: full}}, ports: [{{port: 50051}}]}}
---
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {{name: full}}
spec: {{sourceType: grpc, address: "full.{name}.svc:50051", displayName: Drills}}
"#,
            image = self.world.package.catalog_image(),
            name = space.name
        ))?;
        if let Err(error) = space.kubectl("wait pod/full --for=condition=Ready --timeout=60s") {
            let _ = space.kubectl("logs full");
            return Err(error);
        }
        self.lists_both()?;
        self.logs_contain("full", &["no space", "index"])?;
        is(
            &space.get("pod full", "{.status.containerStatuses[0].restartCount}")?,
            "0",
        )?;
        space.kubectl("delete catalogsource/full service/full pod/full")?;
        Ok(())
    }

    fn package_beside_is_broken(&self) -> anyhow::Result<()> {
        let run = self.world.run;
        self.withdraw()?;
        let file = run.results.join("broken-package.yaml");
        fs::write(&file, "schema: olm.package\nname: broken\ndefaultChannel: none\n")?;
        let image = self.push_changed(&file, "/configs/broken/catalog.yaml", "broken")?;
        self.create(&image)?;
        self.lists_both()?;
        let broken = "get packagemanifests.packages.operators.coreos.com broken --ignore-not-found -o name";
        is(&self.space.kubectl(broken)?, "")?;
        self.logs_contain("-l olm.catalogSource=offered --tail=-1", &["broken"])?;
        self.withdraw()
    }
}

/// The property `olm.csv.metadata` of a bundle in a rendered catalog.
fn csv_metadata(catalog: &str, bundle: &str) -> anyhow::Result<Value> {
    let stream = serde_json::Deserializer::from_str(catalog).into_iter::<Value>();
    for blob in stream {
        let blob = blob?;
        if blob.get("name").and_then(Value::as_str) == Some(bundle) && blob.get("properties").is_some() {
            let properties = blob.get("properties").and_then(Value::as_array).into_iter().flatten();
            let is_metadata =
                |property: &&Value| property.get("type").and_then(Value::as_str) == Some("olm.csv.metadata");
            let metadata = properties
                .into_iter()
                .find(is_metadata)
                .and_then(|property| property.get("value"));
            return Ok(metadata.with_context(|| format!("{bundle} has no metadata"))?.clone());
        }
    }
    anyhow::bail!("{bundle} is not in the catalog")
}
