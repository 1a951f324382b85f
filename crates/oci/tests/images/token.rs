//! A small token server as the distribution project specifies it: basic credentials in, a signed token for the asked
//! scopes out.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use rcgen::{CertificateParams, KeyPair};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};

pub struct TokenServer {
    pub realm: String,
    /// The certificate of the key that signs tokens, PEM.
    pub certificate: String,
    /// The request lines that came.
    pub requests: Arc<Mutex<Vec<String>>>,
}

/// Starts a server on a thread that lives as long as the test process. It accepts the user "user" with the password
/// "secret" and lets others only pull.
pub fn start() -> TokenServer {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["token.test".to_owned()])
        .unwrap()
        .self_signed(&key)
        .unwrap();
    let der = STANDARD.encode(certificate.der());
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let realm = format!("http://127.0.0.1:{}/token", listener.local_addr().unwrap().port());
    let requests = Arc::new(Mutex::new(Vec::new()));
    let log = requests.clone();
    let pkcs8 = key.serialize_der();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream);
            let mut lines = Vec::new();
            let mut line = String::new();
            while reader.read_line(&mut line).is_ok_and(|count| count > 2) {
                lines.push(std::mem::take(&mut line).trim_end().to_owned());
            }
            let Some(request) = lines.first().cloned() else {
                continue;
            };
            log.lock().unwrap().push(request.clone());
            let authorization = lines.iter().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("authorization")
                    .then(|| value.trim().to_owned())
            });
            let known = format!("Basic {}", STANDARD.encode("user:secret"));
            let (status, body) = match authorization {
                Some(value) if value != known => (
                    "401 Unauthorized",
                    "{\"details\":\"incorrect username or password\"}".to_owned(),
                ),
                value => (
                    "200 OK",
                    format!(
                        "{{\"token\":\"{}\",\"expires_in\":300}}",
                        token(&request, value.is_some(), &der, &pkcs8)
                    ),
                ),
            };
            let length = body.len();
            let _ = write!(
                reader.get_mut(),
                "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            );
        }
    });
    TokenServer {
        realm,
        certificate: certificate.pem(),
        requests,
    }
}

fn token(request: &str, known: bool, certificate: &str, pkcs8: &[u8]) -> String {
    let url = reqwest::Url::parse(&format!("http://x{}", request.split(' ').nth(1).unwrap())).unwrap();
    let access: Vec<serde_json::Value> = url
        .query_pairs()
        .filter(|(name, _)| name == "scope")
        .map(|(_, scope)| {
            let parts: Vec<&str> = scope.split(':').collect();
            let actions: Vec<&str> = parts[2]
                .split(',')
                .filter(|action| known || *action == "pull")
                .collect();
            serde_json::json!({"type": parts[0], "name": parts[1], "actions": actions})
        })
        .collect();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let header = serde_json::json!({"typ": "JWT", "alg": "ES256", "x5c": [certificate]});
    let claims = serde_json::json!({
        "iss": "test-issuer", "sub": "user", "aud": "test-registry", "exp": now + 300, "nbf": now - 10, "iat": now,
        "jti": "1", "access": access,
    });
    let text = format!(
        "{}.{}",
        URL_SAFE_NO_PAD.encode(header.to_string()),
        URL_SAFE_NO_PAD.encode(claims.to_string())
    );
    let random = SystemRandom::new();
    let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8, &random).unwrap();
    let signature = key.sign(&random, text.as_bytes()).unwrap();
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref()))
}
