module dev/tools/grpc_health_probe

go 1.26.0

require github.com/grpc-ecosystem/grpc-health-probe v0.4.38
