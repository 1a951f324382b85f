# Sourced by drills.sh: a registry that requires a user and a password, in addition to the cluster's registry.
guarded=localhost:5001
guard=$results/guarded-registry
guarded_password=secret
start_guarded_registry() (
  stop_guarded_registry
  . "$dev/cluster/lib.sh"
  rm -rf "$guard"; mkdir -p "$guard/data" "$guard/client" "$state/registries/$guarded"
  # bcrypt of the password
  printf 'user:$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW\n' > "$guard/htpasswd"
  cat > "$guard/config.yaml" <<YAML
version: 0.1
log: {level: warn, accesslog: {disabled: true}}
storage: {filesystem: {rootdirectory: $guard/data}}
http: {addr: "127.0.0.1:${guarded##*:}", tls: {certificate: $pki/server.crt, key: $pki/server.key}}
auth: {htpasswd: {realm: drills, path: $guard/htpasswd}}
YAML
  printf '{"auths": {"%s": {"auth": "%s"}}}' $guarded "$(printf user:%s "$guarded_password" | base64 -w 0)" > "$guard/client/config.json"
  # Whatever registry an image names, the cluster's own serves it, but not for this one.
  printf 'server = "https://%s"\n[host."https://%s"]\n  capabilities = ["pull", "resolve"]\n  ca = "%s"\n' $guarded $guarded "$pki/ca.crt" > "$state/registries/$guarded/hosts.toml"
  start registry-guarded docker-registry serve "$guard/config.yaml"
  log_tails=registry-guarded wait_for 20 "a registry that asks for a password" "${inside[@]}" curl -sS -o /dev/null --cacert $pki/ca.crt https://$guarded/v2/
)
stop_guarded_registry() (. "$dev/cluster/lib.sh"; stop registry-guarded; rm -rf "$guard" "$state/registries/$guarded")

guarded_bundle=$guarded/drills/bundle:1
push_guarded_bundle() {
  start_guarded_registry
  "$olmkit" image build bundle "$work/old-bundle" --tag $guarded_bundle
  in_cluster "$olmkit" image push --authfile "$guard/client/config.json" $guarded_bundle
}
registry_refuses() {
  local image=$guarded_bundle
  push_guarded_bundle
  # This machine has no credentials.
  fails_with bundle-image-pull kit run bundle $image -n "$NAMESPACE" --helper-image $helper
  jq -e '.message | test("401|unauthorized|credentials"; "i")' "$results/cause"
  # This machine has, the node has not.
  fails_with bundle-image-pull kit run bundle $image -n "$NAMESPACE" --helper-image $helper --authfile "$guard/client/config.json"
  jq -e '.help | contains("--pull-secret-name")' "$results/cause"
  # Follow the hint.
  kn create secret generic guarded --type=kubernetes.io/dockerconfigjson --from-file=.dockerconfigjson="$guard/client/config.json"
  kit run bundle $image -n "$NAMESPACE" --helper-image $helper --authfile "$guard/client/config.json" --pull-secret-name guarded
  installed "$old_version"
  cleaned_up
  kn delete secret guarded
  stop_guarded_registry
}
