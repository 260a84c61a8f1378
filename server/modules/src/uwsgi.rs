//! `uwsgi_pass`: passes requests to uwsgi applications.
//!
//! Parameters are those of [`gateways`](crate::gateways), the settings of TLS (`suwsgi://`) those of
//! [`ssl::upstream`](crate::ssl::upstream).
//!
//! Source: nginx documentation, `ngx_http_uwsgi_module`; uWSGI documentation, "The uwsgi Protocol".

use std::rc::Rc;

use conf::Contexts;
use engines::http::{FieldId, Fields};
use server_base::from_args::{Between, Text};
use server_http::exchange::{Ctx, Exchange};
use server_http::settings;
use server_http::upstream::Outgoing;
use server_upstream::protocol::{self, ProtocolSpec};

use crate::gateways::params::{self, Encoding, Params};
use crate::gateways::{Application, Common, Transport, application, inherit};
use crate::ssl::upstream::{
    self as ssl_upstream, SecuresServers, ServerPolicy, ServerTlsSettings, server_tls_rows,
};

const HSL: Contexts = Contexts::HTTP_SERVER_LOCATION;

/// A byte of the head of packets.
type Modifier = Between<0, 255>;

application!(
    "uwsgi", "uwsgi_" UwsgiLoc, "Passes requests on to a uwsgi application or a group of them.",
    temp_path "uwsgi_temp 1 2" at "FIRSTBYTE_UWSGI_TEMP_PATH", hidden [],
    rows server_tls_rows!("uwsgi_" UwsgiLoc),
    finish ssl_upstream::finish::<UwsgiLoc>,
);

settings! {
    /// Settings of the module.
    pub(crate) struct UwsgiLoc: Location / PLAIN {
        /// A parameter of requests to applications.
        param "uwsgi_param": Params = Params::default(), "", HSL;
        /// First modifier of packets: their use by the application.
        modifier1 "uwsgi_modifier1": Modifier = Between(0), "0", HSL;
        /// Second modifier of packets.
        modifier2 "uwsgi_modifier2": Modifier = Between(0), "0", HSL;
        /// Bytes behind the parameters of packets.
        string "uwsgi_string": Text = Text::default(), "", HSL;
    }
    extra {
        /// Settings that uwsgi shares with other protocols of applications.
        common: Common,
        /// TLS to applications.
        tls: ServerTlsSettings = ServerTlsSettings::merge
    }
    merge inherit;
}

impl SecuresServers for UwsgiLoc {
    fn server_tls(&mut self) -> &mut ServerTlsSettings {
        &mut self.tls
    }

    fn may_use_tls(&self) -> bool {
        self.common.may_use_tls()
    }
}

impl Application for UwsgiLoc {
    /// Lengths take two bytes each.
    const ENCODING: Encoding = Encoding {
        overhead: |_, _| 4,
        too_big: "uwsgi request",
    };
    const PROTOCOL: &'static ProtocolSpec = &protocol::UWSGI;

    fn modifiers(&self) -> [u8; 2] {
        [self.modifier1.0 as u8, self.modifier2.0 as u8]
    }

    fn address(text: &[u8]) -> (Transport, &[u8]) {
        let without = |schema: &str| {
            let (begin, rest) = text.split_at_checked(schema.len())?;
            begin
                .eq_ignore_ascii_case(schema.as_bytes())
                .then_some(rest)
        };
        if let Some(rest) = without(SECURE).or_else(|| without(SECURE_ALIAS)) {
            return (Transport::Tls(SECURE), rest);
        }
        let rest = without(Self::PROTOCOL.scheme);
        (Transport::Plain, rest.unwrap_or(text))
    }

    fn server_policy(&self) -> Option<&ServerPolicy> {
        self.tls.policy()
    }

    fn push_params(
        x: &mut Exchange,
        cx: &mut Ctx<'_>,
        outgoing: &Outgoing,
        fields: &mut Fields,
    ) -> Result<(), u16> {
        let http = Rc::clone(&x.route.http);
        let string = &x.loc::<Self>(&http).string.0;
        params::push::<Self>(x, cx, outgoing, fields, string.len())?;
        if !string.is_empty() {
            // A field without a name is sent unchanged.
            fields.push_id(FieldId::Other, b"", string);
        }
        Ok(())
    }
}

/// nginx's scheme of uwsgi over TLS.
const SECURE: &str = "suwsgi://";
/// The scheme in the order of `https`.
const SECURE_ALIAS: &str = "uwsgis://";
