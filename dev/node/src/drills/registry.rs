//! A second registry, which requires a user and a password.

use std::fs;
use std::path::PathBuf;

use crate::run::Run;
use crate::world::World;

/// A registry with a password. It ends when the value is dropped.
pub struct Guarded<'a> {
    run: &'a Run,
}

impl<'a> Guarded<'a> {
    const ADDRESS: &'static str = "localhost:5001";
    /// A bundle image in this registry.
    pub const BUNDLE: &'static str = "localhost:5001/drills/bundle:1";

    /// Starts the registry, and pushes the released bundle.
    pub fn start(world: &World<'a>) -> anyhow::Result<Self> {
        let guarded = Self { run: world.run };
        guarded.stop()?;
        let (run, address, folder) = (world.run, Self::ADDRESS, guarded.folder());
        fs::create_dir_all(folder.join("data"))?;
        fs::create_dir_all(folder.join("client"))?;
        // bcrypt of `secret`, and base64 of `user:secret`
        let password = "user:$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW\n";
        fs::write(folder.join("htpasswd"), password)?;
        fs::write(
            guarded.authfile(),
            format!(r#"{{"auths": {{"{address}": {{"auth": "dXNlcjpzZWNyZXQ="}}}}}}"#),
        )?;
        // The cluster's own registry serves images of every registry except this one.
        run.node_script(&format!(
            r#"guard={folder} address={address}
mkdir -p "$state/registries/$address"
cat > "$guard/config.yaml" <<YAML
version: 0.1
log: {{level: warn, accesslog: {{disabled: true}}}}
storage: {{filesystem: {{rootdirectory: $guard/data}}}}
http: {{addr: "127.0.0.1:${{address##*:}}", tls: {{certificate: $pki/server.crt, key: $pki/server.key}}}}
auth: {{htpasswd: {{realm: drills, path: $guard/htpasswd}}}}
YAML
printf 'server = "https://%s"\n[host."https://%s"]\n  capabilities = ["pull", "resolve"]\n  ca = "%s"\n' $address $address "$pki/ca.crt" \
  > "$state/registries/$address/hosts.toml"
start registry-guarded docker-registry serve "$guard/config.yaml"
log_tails=registry-guarded wait_for 20 "a registry that asks for a password" \
  "${{inside[@]}}" curl -sS -o /dev/null --cacert "$pki/ca.crt" "https://$address/v2/""#,
            folder = folder.display()
        ))
        .run()?;
        run.olmkit("image build bundle")
            .arg(world.old_bundle())
            .args(["--tag", Self::BUNDLE])
            .run()?;
        run.kit("image push")
            .arg(Self::BUNDLE)
            .arg("--authfile")
            .arg(guarded.authfile())
            .run()?;
        Ok(guarded)
    }

    /// The client's credentials.
    pub fn authfile(&self) -> PathBuf {
        self.folder().join("client/config.json")
    }

    fn folder(&self) -> PathBuf {
        self.run.results.join("guarded-registry")
    }

    fn stop(&self) -> anyhow::Result<()> {
        let script = format!("stop registry-guarded; rm -rf \"$state/registries/{}\"", Self::ADDRESS);
        self.run.node_script(&script).run()?;
        if self.folder().exists() {
            fs::remove_dir_all(self.folder())?;
        }
        Ok(())
    }
}

impl Drop for Guarded<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            self.run.log.write(&format!("the registry did not stop: {error:#}"));
        }
    }
}
