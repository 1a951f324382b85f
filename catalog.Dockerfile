# The catalog image for container engines; `make catalog-build` without CONTAINER_TOOL builds the same one with olmkit.
FROM scratch
LABEL operators.operatorframework.io.index.configs.v1=/configs
COPY target/image/helper/ /
COPY catalog/ /configs/
COPY target/image/cache/ /cache/
ENV PATH=/bin
EXPOSE 50051
USER 1001
ENTRYPOINT ["/bin/opm"]
CMD ["serve", "/configs", "--cache-dir=/cache"]
