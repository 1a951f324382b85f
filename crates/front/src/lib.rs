//! HTTP server front end: limits the resources of clients, and shuts down gracefully.
//!
//! | module | bounds |
//! |---|---|
//! | [`Limits`] | number, time and memory of the connections of one listener |
//! | [`Connections`] | makes room for new connections and for answers by closing those that are of no use |
//! | [`Listener`] | an HTTP/1 server over them: size and time of headers, TLS, orderly shutdown |
//! | [`Bodies`] | bytes and time of the bodies of requests |
//!
//! Well-behaved clients wait, hostile ones run out of time: a connection whose request is being answered is never closed for
//! another, and one that does not fit waits in the system until it does.
//!
//! ```
//! use http_body_util::Full;
//! use hyper::{Request, Response, body::{Bytes, Incoming}};
//! use olmkit_front::{Limits, Listener};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let listener = Listener::bind("127.0.0.1:0".parse()?, Limits::default())?;
//! println!("listening on {}", listener.address()?);
//! let answer = |_: Request<Incoming>, _| async { Response::new(Full::new(Bytes::from("hello\n"))) };
//! listener.serve(answer, async {}).await; // until this future completes
//! # Ok(())
//! # }
//! ```
mod bodies;
mod connections;
mod limits;
mod listener;
mod waiting;

pub use bodies::{Bodies, BodyError, BodyLimits, Received, Room};
pub use connections::{Call, Connections, Guarded, Handle, Handshake, Paused, Reserved, Working};
pub use limits::Limits;
pub use listener::{Beside, BindError, ClientCertificate, Listener, Wire, listen};
pub use waiting::Waiting;
