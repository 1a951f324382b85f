# The operator image for container engines. `make docker-build CONTAINER_TOOL=docker` builds the static binary first and
# lays out target/image; without CONTAINER_TOOL, olmkit builds the same image and no engine is needed.
FROM scratch
COPY target/image/operator/ /
USER 65532:65532
ENTRYPOINT ["/memcached-operator"]
