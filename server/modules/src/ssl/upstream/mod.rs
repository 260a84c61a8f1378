//! `proxy_ssl_*`, `uwsgi_ssl_*`: TLS to the servers that requests are passed on to.
//!
//! ```text
//! rows     the directives, for any prefix        build    policies, at the end of `http`
//! connect  policy and name for a connection      certificate    certificates named by variables
//! ```
//!
//! Locations with equal settings share a policy. Absent: keys of engines and stores.
//!
//! Source: nginx documentation, `ngx_http_proxy_module`, `ngx_http_uwsgi_module`.

mod build;
mod certificate;
mod connect;
mod rows;

use std::sync::Arc;

use conf::{ConfError, Directive, Setting};
use server_base::from_args::{FromArgs, Number};
use server_http::assemble::ConfigBuilder;
use server_http::upstream::PassesOn;
use server_http::value::Value;

use super::values::{DeferredDirective, File, Protocols};
pub(crate) use build::{ServerPolicy, finish};
pub(crate) use connect::connect;
pub(crate) use rows::{CertificateCache, Commands, row, server_tls_row, server_tls_rows};

/// Settings of a module that can use TLS to its servers.
pub(crate) trait SecuresServers: PassesOn {
    /// Its settings of TLS.
    fn server_tls(&mut self) -> &mut ServerTlsSettings;

    /// Whether requests of this location may use TLS.
    fn may_use_tls(&self) -> bool;
}

/// The settings of one level: as written, as merged, and as used.
#[derive(Default)]
pub(crate) struct ServerTlsSettings {
    own: Option<Box<ServerTlsDirectives>>,
    merged: Option<Arc<ServerTlsDirectives>>,
    policy: Option<Box<ServerPolicy>>,
}

/// Directives of one level.
#[derive(Clone, Default)]
pub(crate) struct ServerTlsDirectives {
    pub(crate) protocols: Setting<Protocols>,
    pub(crate) ciphers: Setting<DeferredDirective>,
    pub(crate) conf_command: Setting<Commands>,
    pub(crate) name: Setting<Value>,
    pub(crate) server_name: Setting<bool>,
    pub(crate) session_reuse: Setting<bool>,
    pub(crate) verify: Setting<bool>,
    pub(crate) verify_depth: Setting<Number>,
    pub(crate) trusted_certificate: Setting<File>,
    pub(crate) crl: Setting<File>,
    pub(crate) certificate: Setting<DeferredDirective>,
    pub(crate) certificate_key: Setting<DeferredDirective>,
    pub(crate) certificate_cache: Setting<CertificateCache>,
    pub(crate) password_file: Setting<File>,
    pub(crate) key_log: Setting<File>,
}

impl ServerTlsSettings {
    /// Takes unset values from `parent`. A level without own directives shares those of the level around it.
    pub(crate) fn merge(&mut self, parent: Option<&Self>) {
        let parent = parent.and_then(|parent| parent.merged.as_ref());
        self.merged = match (self.own.take(), parent) {
            (None, Some(parent)) => Some(Arc::clone(parent)),
            (own, parent) => {
                let mut own = own.unwrap_or_default();
                if let Some(parent) = parent {
                    own.inherit(parent);
                }
                Some(Arc::new(*own))
            }
        };
    }

    /// The policy of connections to servers, if the location may use TLS.
    pub(crate) fn policy(&self) -> Option<&ServerPolicy> {
        self.policy.as_deref()
    }
}

impl ServerTlsDirectives {
    fn inherit(&mut self, parent: &Self) {
        // All fields are named, so that a new field cannot be forgotten.
        let Self {
            protocols,
            ciphers,
            conf_command,
            name,
            server_name,
            session_reuse,
            verify,
            verify_depth,
            trusted_certificate,
            crl,
            certificate,
            certificate_key,
            certificate_cache,
            password_file,
            key_log,
        } = parent;
        self.protocols.merge_from(protocols);
        self.ciphers.merge_from(ciphers);
        self.conf_command.merge_from(conf_command);
        self.name.merge_from(name);
        self.server_name.merge_from(server_name);
        self.session_reuse.merge_from(session_reuse);
        self.verify.merge_from(verify);
        self.verify_depth.merge_from(verify_depth);
        self.trusted_certificate.merge_from(trusted_certificate);
        self.crl.merge_from(crl);
        self.certificate.merge_from(certificate);
        self.certificate_key.merge_from(certificate_key);
        self.certificate_cache.merge_from(certificate_cache);
        self.password_file.merge_from(password_file);
        self.key_log.merge_from(key_log);
    }
}

/// Sets the value of a field to the arguments of its directive.
///
/// # Errors
/// The error in the words; "is duplicate" for most directives that are written twice in a level.
pub(crate) fn assign<C: SecuresServers, T: FromArgs>(
    b: &mut ConfigBuilder,
    d: &Directive,
    field: fn(&mut ServerTlsDirectives) -> &mut Setting<T>,
) -> Result<(), ConfError> {
    let before = field(own::<C>(b)).take();
    let value = match before {
        None => T::parse(b, d)?,
        Some(before) => before.parse_again(b, d)?,
    };
    field(own::<C>(b)).replace(value);
    Ok(())
}

fn own<C: SecuresServers>(b: &mut ConfigBuilder) -> &mut ServerTlsDirectives {
    b.conf_mut::<C>().server_tls().own.get_or_insert_default()
}
