//! `uwsgi_pass`: passes requests to uwsgi applications.
//!
//! Parameters are those of [`gateways`](crate::gateways). Absent: a cache, and TLS (`suwsgi://`).
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
use crate::gateways::{Application, Common, application, inherit};

const HSL: Contexts = Contexts::HTTP_SERVER_LOCATION;

/// A byte of the head of packets.
type Modifier = Between<0, 255>;

application!(
    "uwsgi", "uwsgi_" UwsgiLoc, "Passes requests on to a uwsgi application or a group of them.",
    temp_path "uwsgi_temp 1 2" at "FIRSTBYTE_UWSGI_TEMP_PATH", hidden [],
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
        common: Common
    }
    merge inherit;
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

    fn address(text: &[u8]) -> Result<&[u8], &'static str> {
        let begins = |schema: &[u8]| {
            let begin = text.get(..schema.len());
            begin.is_some_and(|begin| begin.eq_ignore_ascii_case(schema))
        };
        for refused in ["suwsgi://", "uwsgis://"] {
            if begins(refused.as_bytes()) {
                return Err(refused);
            }
        }
        Ok(match begins(Self::PROTOCOL.scheme.as_bytes()) {
            true => &text[Self::PROTOCOL.scheme.len()..],
            false => text,
        })
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
