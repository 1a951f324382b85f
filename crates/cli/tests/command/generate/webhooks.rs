//! The Deployment and the port behind a webhook.

use super::support::{Folder, said};

const TWO: &str = include_str!("cases/webhook-two-deployments.yaml");
const CONVERSION: &str = include_str!("cases/conversion-port.yaml");

fn definitions(directory: &Folder) -> serde_json::Value {
    directory.csv()["spec"]["webhookdefinitions"].clone()
}

#[test]
fn the_deployment_with_the_target_port_serves_the_webhook() {
    let directory = Folder::new();
    for flags in [&[][..], &["--strict"]] {
        let output = directory.generate(flags, TWO);
        assert!(output.status.success(), "{}", said(&output));
        assert_eq!(definitions(&directory)[0]["deploymentName"], "shop-hooks");
        assert!(!said(&output).contains("calls Service"), "{}", said(&output));
    }
    let number = TWO.replace("targetPort: webhook-server", "targetPort: 9443");
    assert!(directory.generate(&[], &number).status.success());
    assert_eq!(definitions(&directory)[0]["deploymentName"], "shop-hooks");

    // Neither has it: the first one is taken, and a name that no container has is reported.
    let missing = TWO.replace("name: webhook-server}", "name: other}");
    let output = directory.generate(&[], &missing);
    assert_eq!(definitions(&directory)[0]["deploymentName"], "shop-manager");
    assert!(
        said(&output).contains("no container of Deployment shop-manager has"),
        "{}",
        said(&output)
    );
    let unknown = number.replace("containerPort: 9443", "containerPort: 8080");
    let output = directory.generate(&[], &unknown);
    assert!(
        said(&output).contains("selects several Deployments (shop-manager, shop-hooks)"),
        "{}",
        said(&output)
    );
}

#[test]
fn a_conversion_through_an_unknown_port_is_a_loss() {
    let directory = Folder::new();
    let output = directory.generate(&[], CONVERSION);
    assert!(output.status.success(), "{}", said(&output));
    for name in ["carts.shop.example.com", "baskets.shop.example.com"] {
        let expected = format!("CustomResourceDefinition {name}: converts through port 443 of Service webhook-service");
        assert!(said(&output).contains(&expected), "{}", said(&output));
    }
    assert_eq!(directory.generate(&["--strict"], CONVERSION).status.code(), Some(1));

    let known = CONVERSION.replace("port: 8443, targetPort: webhook-server", "port: 443, targetPort: 9443");
    let output = directory.generate(&["--strict"], &known);
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn one_version_needs_no_conversion() {
    let directory = Folder::new();
    let single = CONVERSION.replace(
        "  - {name: v1alpha1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}\n",
        "",
    );
    let output = directory.generate(&["--strict"], &single);
    assert!(output.status.success(), "{}", said(&output));
    let (without_service, _) = single.rsplit_once("---\n").unwrap();
    let output = directory.generate(&["--strict"], without_service);
    assert!(output.status.success(), "{}", said(&output));
    let (without_service, _) = CONVERSION.rsplit_once("---\n").unwrap();
    assert_eq!(
        directory.generate(&["--strict"], without_service).status.code(),
        Some(1)
    );
}

#[test]
fn the_service_in_the_namespace_of_the_reference_is_called() {
    let other = "---\napiVersion: v1\nkind: Service\nmetadata: {name: webhook-service, namespace: elsewhere}\n\
                 spec: {selector: {app: other}, ports: [{port: 443, targetPort: 1}]}\n";
    let directory = Folder::new();
    let output = directory.generate(&[], &format!("{other}---\n{TWO}"));
    assert!(output.status.success(), "{}", said(&output));
    let definition = &definitions(&directory)[0];
    assert_eq!(definition["deploymentName"], "shop-hooks", "{definition}");
    assert_eq!(definition["targetPort"], "webhook-server");
}

#[test]
fn a_port_that_the_service_lacks_differs_from_a_missing_service() {
    let directory = Folder::new();
    let other = TWO.replace("port: 443", "port: 8443");
    let output = directory.generate(&[], &other);
    let expected = "calls port 443 of Service webhook-service, which has no such port: OLM does not know the container's port\n  \
                    Add the port to the Service";
    assert!(said(&output).contains(expected), "{}", said(&output));
    let none = TWO.replace(
        "name: webhook-service, namespace: shop-system}",
        "name: other, namespace: shop-system}",
    );
    let output = directory.generate(&[], &none);
    assert!(
        said(&output).contains("calls Service webhook-service, which is not in the input"),
        "{}",
        said(&output)
    );
}

#[test]
fn ports_of_init_containers_and_of_udp_serve_no_webhook() {
    let init = "      initContainers:\n      - name: init\n        image: registry.example.com/shop:v1\n        \
                ports: [{containerPort: 1, name: webhook-server}]\n      containers:\n";
    let directory = Folder::new();
    let first = TWO.replacen("      containers:\n", init, 1);
    assert_ne!(first, TWO);
    let output = directory.generate(&[], &first);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(definitions(&directory)[0]["deploymentName"], "shop-hooks");
    let sidecar = first.replace("- name: init\n", "- name: init\n        restartPolicy: Always\n");
    let output = directory.generate(&[], &sidecar);
    assert!(
        said(&output).contains("selects several Deployments"),
        "{}",
        said(&output)
    );
    let udp = TWO.replace("name: webhook-server}]", "name: webhook-server, protocol: UDP}]");
    assert_ne!(udp, TWO);
    let output = directory.generate(&[], &udp);
    assert!(
        said(&output).contains("target port \"webhook-server\" no container"),
        "{}",
        said(&output)
    );
}
