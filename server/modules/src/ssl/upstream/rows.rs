//! The rows of the directives, written once for every prefix, and values of their own kinds.

use std::sync::Arc;

use conf::{Apply, Arity, ConfError, Contexts, Directive, DirectiveDef, Setting};
use server_base::config::ConfigContext;
use server_base::from_args::FromArgs;
use server_http::assemble::ConfigBuilder;

use super::super::cache::Cache;
use super::super::rows::parse_certificate_cache;
use super::ServerTlsDirectives;

/// Makes the row of a directive that sets one field. `field` only has the type of its values.
pub(crate) const fn row<T: FromArgs>(
    name: &'static str,
    _field: fn(&mut ServerTlsDirectives) -> &mut Setting<T>,
    [default, doc]: [&'static str; 2],
    apply: Apply<ConfigBuilder>,
) -> DirectiveDef<ConfigBuilder> {
    DirectiveDef {
        name,
        contexts: Contexts::HTTP_SERVER_LOCATION,
        arity: T::ARITY,
        block: false,
        default,
        doc,
        syntax: T::SYNTAX,
        apply,
    }
}

/// One row: the suffix of its name, the field that it sets, its default as shown, its documentation.
macro_rules! server_tls_row {
    ($prefix:literal $conf:ty, $suffix:literal $field:ident = $shown:literal, $doc:literal) => {
        $crate::ssl::upstream::row(
            concat!($prefix, "ssl_", $suffix),
            |own| &mut own.$field,
            [$shown, $doc],
            |b, d| $crate::ssl::upstream::assign::<$conf, _>(b, d, |own| &mut own.$field),
        )
    };
}
pub(crate) use server_tls_row;

/// The rows under a prefix, for a struct of settings that [`SecuresServers`](super::SecuresServers).
macro_rules! server_tls_rows {
    ($prefix:literal $conf:ty) => {
        &[
            $crate::ssl::upstream::server_tls_row!($prefix $conf, "protocols" protocols = "TLSv1.2 TLSv1.3", "Enabled versions of TLS to servers."),
            $crate::ssl::upstream::server_tls_row!($prefix $conf, "ciphers" ciphers = "DEFAULT", "Cipher suites of TLS 1.2 to servers, as OpenSSL lists them."),
            $crate::ssl::upstream::server_tls_row!($prefix $conf, "conf_command" conf_command = "", "A command of OpenSSL's configuration, of those that have a meaning here."),
            $crate::ssl::upstream::server_tls_row!($prefix $conf, "name" name = "host of the server", "Name of the server for verification and SNI."),
            $crate::ssl::upstream::server_tls_row!($prefix $conf, "server_name" server_name = "off", "Whether the server's name is sent by SNI."),
            $crate::ssl::upstream::server_tls_row!($prefix $conf, "session_reuse" session_reuse = "on", "Whether sessions with servers are resumed."),
            $crate::ssl::upstream::server_tls_row!($prefix $conf, "verify" verify = "off", "Whether certificates of servers are verified."),
            $crate::ssl::upstream::server_tls_row!($prefix $conf, "verify_depth" verify_depth = "1", "Maximum number of certificates between a server's and the root."),
            $crate::ssl::upstream::server_tls_row!($prefix $conf, "trusted_certificate" trusted_certificate = "", "Certificates of authorities that servers' certificates may come from."),
            $crate::ssl::upstream::server_tls_row!($prefix $conf, "crl" crl = "", "Lists of revoked certificates of servers."),
            $crate::ssl::upstream::server_tls_row!($prefix $conf, "certificate" certificate = "", "A file with the certificate shown to servers."),
            $crate::ssl::upstream::server_tls_row!($prefix $conf, "certificate_key" certificate_key = "", "A file with the secret key of that certificate."),
            $crate::ssl::upstream::server_tls_row!($prefix $conf, "certificate_cache" certificate_cache = "off", "A cache of certificates and keys named by variables."),
            $crate::ssl::upstream::server_tls_row!($prefix $conf, "password_file" password_file = "", "Passwords of encrypted keys, a line each, tried in turn."),
            $crate::ssl::upstream::server_tls_row!($prefix $conf, "key_log" key_log = "", "A file for the secrets of connections to servers, for programs that decrypt captured traffic."),
        ]
    };
}
pub(crate) use server_tls_rows;

/// `*_ssl_conf_command`, all of a level.
#[derive(Clone, Default)]
pub(crate) struct Commands(pub(super) Vec<Arc<Directive>>);

impl FromArgs for Commands {
    const ARITY: Arity = Arity::TAKE2;
    const SYNTAX: &'static str = "name value";

    fn parse(cx: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        Self::default().parse_again(cx, d)
    }

    fn parse_again(mut self, _: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        self.0.push(Arc::new(d.clone()));
        Ok(self)
    }
}

/// `*_ssl_certificate_cache`; `None`: off.
#[derive(Clone, Default)]
pub(crate) struct CertificateCache(pub(super) Option<Arc<Cache>>);

impl FromArgs for CertificateCache {
    const ARITY: Arity = Arity::TAKE123;
    const SYNTAX: &'static str = "off | max=N [inactive=time] [valid=time]";

    fn parse(_: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        parse_certificate_cache(d).map(Self)
    }
}
