//! `ssl_*`: how servers speak TLS.
//!
//! Directives are data until the block `http` has been read; then every server that has a certificate, or refuses every
//! handshake, gets a [`tls::Config`]. Files are read by the supervisor with its rights and reach the worker as bytes.
//! Absent: certificates named by variables, hardware keys, and what rustls cannot do; each is an error or a warning.
//!
//! Source: nginx documentation, `ngx_http_ssl_module`.

mod build;

use std::sync::Arc;

use conf::{Arity, ConfError, Contexts, Directive, Row};
use server_core::build::Build;
use server_core::module::Module;
use server_core::settings;
use server_core::typed::Size;

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "ssl",
    directives: &[PLAIN, ROWS],
    units: &[<SslSrv as server_core::confs::Conf>::unit],
    finish: Some(build::finish),
    ..Module::EMPTY
};

const HS: Contexts = Contexts::HTTP_SERVER;

settings! {
    /// Settings of a server.
    pub(crate) struct SslSrv: Server / PLAIN {
        /// Most plaintext of a TLS record.
        buffer_size "ssl_buffer_size": Size = Size(16 << 10), "16k", HS;
        /// Whether every handshake is refused.
        reject_handshake "ssl_reject_handshake": bool = false, "off", HS;
    }
    extra {
        /// `ssl_certificate`.
        certificates: Vec<Arc<Directive>>,
        /// `ssl_certificate_key`.
        keys: Vec<Arc<Directive>>,
    }
    merge inherit;
}

fn inherit(own: &mut SslSrv, parent: Option<&SslSrv>) {
    let Some(parent) = parent else { return };
    if own.certificates.is_empty() {
        own.certificates.clone_from(&parent.certificates);
    }
    if own.keys.is_empty() {
        own.keys.clone_from(&parent.keys);
    }
}

const ROWS: &[Row<Build>] = &[
    row(
        "ssl_certificate",
        "file",
        "A file with a certificate and those between it and its root; once for each kind of key.",
        |b, d| {
            b.conf_mut::<SslSrv>()
                .certificates
                .push(Arc::new(d.clone()));
            Ok(())
        },
    ),
    row(
        "ssl_certificate_key",
        "file",
        "A file with the secret key of a certificate.",
        |b, d| {
            b.conf_mut::<SslSrv>().keys.push(Arc::new(d.clone()));
            Ok(())
        },
    ),
];

const fn row(
    name: &'static str,
    syntax: &'static str,
    doc: &'static str,
    apply: conf::Apply<Build>,
) -> Row<Build> {
    Row {
        name,
        contexts: HS,
        arity: Arity::TAKE1,
        block: false,
        default: "",
        doc,
        syntax,
        apply,
    }
}

fn error(d: &Directive, text: impl Into<String>) -> ConfError {
    ConfError::word(d, d.args.first().unwrap_or(&d.name), text)
}
