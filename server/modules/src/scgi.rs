//! `scgi_pass`: passes requests to SCGI applications.
//!
//! Parameters come from [`gateways`](crate::gateways), behind a `CONTENT_LENGTH` with the length of the body sent.
//!
//! Source: nginx documentation, `ngx_http_scgi_module`; SCGI: A Simple Common Gateway Interface alternative, 2008.

use conf::Contexts;
use engines::http::{BodyLength, Fields, push_decimal};
use server_http::exchange::{Ctx, Exchange};
use server_http::settings;
use server_http::upstream::Outgoing;
use server_upstream::protocol::{self, ProtocolSpec};

use crate::gateways::params::{self, Encoding, Params};
use crate::gateways::{Application, Common, application, inherit};

application!(
    "scgi", "scgi_" ScgiLoc, "Passes requests on to an SCGI application or a group of them.",
    temp_path "scgi_temp 1 2" at "FIRSTBYTE_SCGI_TEMP_PATH", hidden ["status"],
);

settings! {
    /// Settings of the module.
    pub(crate) struct ScgiLoc: Location / PLAIN {
        /// A parameter of requests to applications.
        param "scgi_param": Params = Params::default(), "", Contexts::HTTP_SERVER_LOCATION;
    }
    extra {
        /// Settings that SCGI shares with other protocols of applications.
        common: Common
    }
    merge inherit;
}

impl Application for ScgiLoc {
    /// Names and values end with a NUL each.
    const ENCODING: Encoding = Encoding {
        overhead: |_, _| 2,
        too_big: "scgi request",
    };
    const PROTOCOL: &'static ProtocolSpec = &protocol::SCGI;

    fn push_params(
        x: &mut Exchange,
        cx: &mut Ctx<'_>,
        outgoing: &Outgoing,
        fields: &mut Fields,
    ) -> Result<(), u16> {
        // The length sent, not that of the client: the application waits for so many bytes.
        let length = match outgoing.body {
            BodyLength::Length(length) => length,
            BodyLength::None | BodyLength::Unknown => 0,
        };
        params::push_one(fields, b"CONTENT_LENGTH", false, |out| {
            push_decimal(out, length);
        });
        params::push::<Self>(x, cx, outgoing, fields, 0)
    }
}
