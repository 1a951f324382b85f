//! The server outside its calls: probes, a catalog that changes, HTTP.

use std::net::SocketAddr;

use olmkit::catalog::load;
use olmkit_serve::api;
use olmkit_serve::api::registry_client::RegistryClient;
use olmkit_serve::assemble::IndexContents;
use olmkit_serve::index::in_memory;
use olmkit_serve::{Server, http, probe, source};

use crate::connect;

/// A catalog of one package.
pub const CATALOG: &str = "---\nschema: olm.package\nname: p\ndefaultChannel: c\n---\nschema: olm.channel\nname: c\npackage: p\n\
    entries:\n- name: p.v1\n---\nschema: olm.bundle\nname: p.v1\npackage: p\nimage: r.io/p:v1\nproperties:\n\
    - type: olm.package\n  value:\n    packageName: p\n    version: 1.0.0\n";

#[tokio::test(flavor = "multi_thread")]
async fn probes_fail_until_the_catalog_is_there_and_clients_reconnect_when_it_changes() {
    let catalog = load::text(CATALOG).unwrap().into_iter().collect();
    let server = Server::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let (address, current) = (server.address(), server.current());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(server.run(async move {
        let _ = stopped.await;
    }));
    let second = std::time::Duration::from_secs(1);
    let check = || async { probe::check(&address.to_string(), "", second, second).await };
    assert_eq!(check().await.unwrap_err().exit_code(), 4);
    current.set(in_memory(&catalog).unwrap());
    check().await.unwrap();

    let mut client = RegistryClient::new(connect(address).await);
    let mut open = client
        .list_bundles(api::ListBundlesRequest {})
        .await
        .unwrap()
        .into_inner();
    current.set(
        in_memory(
            &load::text(&CATALOG.replace("p.v1", "p.v2"))
                .unwrap()
                .into_iter()
                .collect(),
        )
        .unwrap(),
    );
    // The open stream ends on the old content. The next call, on a new connection, sees the new one.
    assert_eq!(open.message().await.unwrap().unwrap().csv_name, "p.v1");
    assert!(open.message().await.unwrap().is_none());
    let mut names = Vec::new();
    for _ in 0..50 {
        if let Ok(answer) = client.get_package(api::GetPackageRequest { name: "p".into() }).await {
            names.push(answer.into_inner().channels[0].csv_name.clone());
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(names, ["p.v2"]);
    stop.send(()).unwrap();
    tokio::time::timeout(second * 10, running)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    assert_eq!(check().await.unwrap_err().exit_code(), 2);
}

/// One request over HTTP: status, headers by name, body.
pub async fn request(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
) -> (u16, String, Vec<u8>) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut text = format!("{method} {path} HTTP/1.1\r\nhost: catalog\r\nconnection: close\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(answer[..end].to_vec()).unwrap().to_lowercase();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let mut body = answer[end + 4..].to_vec();
    if head.contains("transfer-encoding: chunked") {
        body = unchunked(&body);
    }
    (status, head, body)
}

fn unchunked(mut body: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    loop {
        let line = body.windows(2).position(|window| window == b"\r\n").unwrap();
        let length = usize::from_str_radix(std::str::from_utf8(&body[..line]).unwrap(), 16).unwrap();
        if length == 0 {
            return whole;
        }
        whole.extend_from_slice(&body[line + 2..line + 2 + length]);
        body = &body[line + 2 + length + 2..];
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_http_api_gives_the_catalog_as_catalogd_does() {
    let root = tempfile::tempdir().unwrap();
    let custom = "---\nschema: example.com.note\npackage: p\ntext: <a> & b\nbig: 12345678901234567890\n";
    std::fs::write(root.path().join("catalog.yaml"), format!("{CATALOG}{custom}")).unwrap();
    std::fs::write(
        root.path().join("broken.yaml"),
        "schema: olm.package\nname: q\ndefaultChannel: c\n",
    )
    .unwrap();
    let server = Server::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let (grpc, current, metrics) = (server.address(), server.current(), server.metrics());
    let routes = http::Routes {
        catalog: Some(current.clone()),
        metrics: Some(metrics.clone()),
        health: current.clone(),
    };
    let web = http::Server::bind("127.0.0.1:0".parse().unwrap(), routes)
        .await
        .unwrap();
    let address = web.address().unwrap();
    tokio::spawn(web.run());
    tokio::spawn(server.run(std::future::pending()));
    assert_eq!(
        request(address, "GET", "/healthz", &[]).await.0,
        503,
        "before the catalog is there"
    );
    assert_eq!(request(address, "GET", "/api/v1/all", &[]).await.0, 503);

    let options = source::Options {
        wanted: IndexContents {
            blobs: true,
            whole: false,
        },
        ..source::Options::default()
    };
    let (index, _) = source::index(root.path(), options).unwrap();
    metrics.serving(&index);
    current.set(index);
    let package = r#"{"defaultChannel":"c","name":"p","schema":"olm.package"}"#;
    let channel = r#"{"entries":[{"name":"p.v1"}],"name":"c","package":"p","schema":"olm.channel"}"#;
    let bundle = r#"{"image":"r.io/p:v1","name":"p.v1","package":"p","properties":[{"type":"olm.package","value":{"packageName":"p","version":"1.0.0"}}],"schema":"olm.bundle"}"#;
    let note = r#"{"big":12345678901234567000,"package":"p","schema":"example.com.note","text":"<a> & b"}"#;
    let everything = format!("{package}\n{channel}\n{bundle}\n{note}\n");
    let (status, head, body) = request(address, "GET", "/api/v1/all", &[]).await;
    assert_eq!(
        (status, String::from_utf8(body).unwrap().as_str()),
        (200, everything.as_str())
    );
    assert!(head.contains("content-type: application/jsonl"), "{head}");
    assert!(
        head.contains(&format!("content-length: {}", everything.len())),
        "{head}"
    );

    let tag = head
        .lines()
        .find_map(|line| line.strip_prefix("etag: "))
        .unwrap()
        .to_owned();
    assert_eq!(
        request(address, "GET", "/api/v1/all", &[("if-none-match", &tag)])
            .await
            .0,
        304
    );
    let modified = head
        .lines()
        .find_map(|line| line.strip_prefix("last-modified: "))
        .unwrap()
        .to_owned();
    assert!(modified.ends_with(" gmt"), "{modified}");
    assert_eq!(
        request(address, "GET", "/api/v1/all", &[("if-modified-since", &modified)])
            .await
            .0,
        304
    );
    let (status, head, body) = request(address, "GET", "/api/v1/all", &[("range", "bytes=10-69")]).await;
    assert_eq!((status, body.as_slice()), (206, &everything.as_bytes()[10..70]));
    assert!(
        head.contains(&format!("content-range: bytes 10-69/{}", everything.len())),
        "{head}"
    );
    assert_eq!(
        request(address, "GET", "/api/v1/all", &[("range", "bytes=9999-")])
            .await
            .0,
        416
    );
    let (status, _, body) = request(address, "HEAD", "/catalogs/any/api/v1/all", &[]).await;
    assert_eq!((status, body.len()), (200, 0));
    assert_eq!(request(address, "POST", "/api/v1/all", &[]).await.0, 405);
    assert_eq!(request(address, "GET", "/api/v1/some", &[]).await.0, 404);

    for (query, expected) in [
        ("", everything.clone()),
        ("?schema=olm.channel", format!("{channel}\n")),
        ("?package=p", format!("{channel}\n{bundle}\n{note}\n")),
        ("?schema=olm.bundle&package=p&name=p.v1", format!("{bundle}\n")),
        ("?schema=olm.package&name=p", format!("{package}\n")),
        ("?package=q", String::new()),
    ] {
        let (status, _, body) = request(address, "GET", &format!("/api/v1/metas{query}"), &[]).await;
        assert_eq!((status, String::from_utf8(body).unwrap()), (200, expected), "{query}");
    }
    assert_eq!(request(address, "GET", "/api/v1/metas?channel=c", &[]).await.0, 400);
    let (_, head, body) = request(
        address,
        "GET",
        "/api/v1/metas",
        &[("accept-encoding", "br, gzip;q=0.5")],
    )
    .await;
    assert!(head.contains("content-encoding: gzip"), "{head}");
    let mut plain = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(body.as_slice()), &mut plain).unwrap();
    assert_eq!(plain, everything);

    let mut client = RegistryClient::new(connect(grpc).await);
    client
        .get_package(api::GetPackageRequest { name: "p".into() })
        .await
        .unwrap();
    client
        .get_package(api::GetPackageRequest { name: "q".into() })
        .await
        .unwrap_err();
    let (_, _, body) = request(address, "GET", "/metrics", &[]).await;
    let text = String::from_utf8(body).unwrap();
    for line in [
        "olmkit_catalog_packages 1",
        "olmkit_catalog_broken_package{package=\"q\"} 1",
        "olmkit_catalog_calls_total{call=\"GetPackage\",code=\"Ok\"} 1",
        "olmkit_catalog_calls_total{call=\"GetPackage\",code=\"Unknown\"} 1",
    ] {
        assert!(text.lines().any(|other| other == line), "{line}\n{text}");
    }
    let (status, _, body) = request(address, "GET", "/healthz", &[]).await;
    let text = String::from_utf8(body).unwrap();
    assert!(status == 200 && text.starts_with("ok\nnot served: q: "), "{text}");
}
