//! `ssl_*`: the TLS settings of servers.
//!
//! Directives are stored until the end of the block `http`. Then each server with a certificate, or with
//! `ssl_reject_handshake`, gets a [`tls::Config`]. The supervisor reads files with its rights and passes them to the
//! worker as bytes. Certificates named by variables are read by the worker (`dynamic`). TLS to servers that requests are
//! passed on to is `upstream`. Absent: hardware keys, and
//! features that rustls lacks. An unsupported directive is an error if TLS would be weaker or different without it,
//! otherwise a warning.
//!
//! Source: nginx documentation, `ngx_http_ssl_module`.

mod build;
mod cache;
mod commands;
mod dynamic;
mod fault;
mod files;
mod identity_cache;
mod policy_dedup;
mod read;
mod rows;
mod sessions;
mod stapling;
mod tickets;
pub(crate) mod upstream;
mod values;
mod variables;
mod watch;

use std::sync::Arc;

use conf::{Contexts, Directive};
use server_base::from_args::{Number, Size};
use server_http::module::Module;
use server_http::settings;
use server_http::settings_set::inherited;

use cache::Cache;
use values::{CacheKind, DeferredDirective, File, Protocols, Seconds, VerifyClient};

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "ssl",
    directives: &[PLAIN, POLICY, CLIENTS, STAPLES, rows::ROWS],
    settings: &[<SslSrv as server_http::settings_set::Conf>::def],
    variables: variables::VARIABLES,
    finish: Some(|b| {
        build::finish(b)?;
        watch::finish(b)
    }),
    ..Module::EMPTY
};

const HS: Contexts = Contexts::HTTP_SERVER;

settings! {
    /// Settings of a server.
    #[derive(Clone)]
    pub(crate) struct SslSrv: Server / PLAIN {
        /// Whether certificates, keys and stapled responses are reloaded when their files change.
        certificate_watch "ssl_certificate_watch": bool = false, "off", HS;
    }
    extra {
        /// Policy of handshakes.
        policy: PolicySettings = PolicySettings::merge,
        /// Verification of client certificates.
        clients: ClientSettings = ClientSettings::merge,
        /// OCSP responses that are sent with certificates.
        staples: StapleSettings = StapleSettings::merge,
        /// `ssl_certificate`.
        certificates: Vec<Arc<Directive>> = inherited,
        /// `ssl_certificate_key`.
        keys: Vec<Arc<Directive>> = inherited,
        /// `ssl_session_cache`.
        cache: Option<CacheKind> = inherited,
        /// `ssl_certificate_cache`; `Some(None)` is "off".
        certificate_cache: Option<Option<Arc<Cache>>> = inherited,
        /// `ssl_session_ticket_key`.
        ticket_keys: Vec<Arc<Directive>> = inherited,
        /// `ssl_conf_command`.
        commands: Vec<Arc<Directive>> = inherited,
    }
}

settings! {
    /// Policy of handshakes, apart from client certificates and OCSP responses.
    #[derive(Clone, PartialEq)]
    pub(crate) struct PolicySettings: SslSrv.policy / POLICY {
        /// Enabled versions of TLS.
        protocols "ssl_protocols": Protocols = Protocols(tls::Versions::Both), "TLSv1.2 TLSv1.3", HS;
        /// Cipher suites of TLS 1.2, as OpenSSL lists them.
        ciphers "ssl_ciphers": DeferredDirective = DeferredDirective::default(), "HIGH:!aNULL:!MD5", HS;
        /// Whether the server's order of cipher suites counts, not the client's.
        prefer_server_ciphers "ssl_prefer_server_ciphers": bool = false, "off", HS;
        /// Groups of key exchange.
        ecdh_curve "ssl_ecdh_curve": DeferredDirective = DeferredDirective::default(), "auto", HS;
        /// Parameters of finite-field key exchange, which is not built: a warning.
        dhparam "ssl_dhparam": File = File::default(), "", HS;
        /// Maximum size of the plaintext of a TLS record.
        buffer_size "ssl_buffer_size": Size = Size(16 << 10), "16k", HS;
        /// Passwords of encrypted keys, a line each, tried in turn.
        password_file "ssl_password_file": File = File::default(), "", HS;
        /// Whether certificates are compressed (RFC 8879).
        certificate_compression "ssl_certificate_compression": bool = false, "off", HS;
        /// How long a session may be resumed.
        session_timeout "ssl_session_timeout": Seconds = Seconds(300), "5m", HS;
        /// Whether sessions are resumed with tickets.
        session_tickets "ssl_session_tickets": bool = true, "on", HS;
        /// Whether requests may come before the handshake is over (0-RTT).
        early_data "ssl_early_data": bool = false, "off", HS;
        /// A file for the secrets of connections, for programs that decrypt captured traffic.
        key_log "ssl_key_log": File = File::default(), "", HS;
        /// Whether every handshake is refused.
        reject_handshake "ssl_reject_handshake": bool = false, "off", HS;
    }
}

settings! {
    /// Verification of client certificates.
    #[derive(Clone, PartialEq)]
    pub(crate) struct ClientSettings: SslSrv.clients / CLIENTS {
        /// Whether a client certificate is requested, and whether it must be valid.
        verify_client "ssl_verify_client": VerifyClient = VerifyClient::Off, "off", HS;
        /// Maximum number of certificates between a client's and the root.
        verify_depth "ssl_verify_depth": Number = Number(1), "1", HS;
        /// Certificates of authorities that clients' certificates may come from; their names are sent to clients.
        client_certificate "ssl_client_certificate": File = File::default(), "", HS;
        /// Certificates of authorities that clients' certificates may come from; their names are not sent to clients.
        trusted_certificate "ssl_trusted_certificate": File = File::default(), "", HS;
        /// Lists of revoked certificates.
        crl "ssl_crl": File = File::default(), "", HS;
    }
}

settings! {
    /// OCSP responses that are sent with certificates.
    #[derive(Clone, PartialEq)]
    pub(crate) struct StapleSettings: SslSrv.staples / STAPLES {
        /// Whether OCSP responses are sent with certificates, fetched or of `ssl_stapling_file`.
        stapling "ssl_stapling": bool = false, "off", HS;
        /// Whether OCSP responses that were fetched must be signed by the issuer or its delegate.
        stapling_verify "ssl_stapling_verify": bool = false, "off", HS;
        /// A file with an OCSP response.
        stapling_file "ssl_stapling_file": File = File::default(), "", HS;
        /// URL for OCSP responses, in place of the certificate's.
        stapling_responder "ssl_stapling_responder": DeferredDirective = DeferredDirective::default(), "", HS;
    }
}

/// Returns whether a server refuses clients without a trusted certificate.
pub(crate) fn requires_certificate(conf: &SslSrv) -> bool {
    *conf.clients.verify_client == VerifyClient::On
}
