//! Settings of a location.

use conf::{Arity, Contexts, DirectiveDef};
use server_base::from_args::{Between, Text};
use server_http::build::ConfigBuilder;
use server_http::exchange::{Ctx, Exchange};
use server_http::module::{Content, Inherit};
use server_http::settings;
use server_http::upstream::{Defaults, PassesOn, UpstreamSettings};

use super::handle;
use crate::gateways::params::Params;
use crate::gateways::{Common, PassesParams, hidden, pass};

const HSL: Contexts = Contexts::HTTP_SERVER_LOCATION;

/// A byte of the head of packets.
type Modifier = Between<0, 255>;

settings! {
    /// Settings of the module.
    pub(crate) struct UwsgiLoc: Location / PLAIN {
        /// A parameter of requests to applications.
        param "uwsgi_param": Params = Params::default(), "", HSL;
        /// First modifier of packets: what the application is to do with them.
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

/// The directive with a shape of its own.
pub(super) const ROWS: &[DirectiveDef<ConfigBuilder>] = &[DirectiveDef {
    name: "uwsgi_pass",
    contexts: Contexts::LOCATION.or(Contexts::IF_IN_LOCATION),
    arity: Arity::TAKE1,
    block: false,
    default: "",
    doc: "Passes requests on to a uwsgi application or a group of them.",
    syntax: "address",
    apply: pass::set::<UwsgiLoc>,
}];

/// How directives of inner levels are inherited.
pub(super) const INHERITS: &[(&str, Inherit)] = &[("uwsgi_pass", Inherit::Blocks)];

impl PassesOn for UwsgiLoc {
    const DEFAULTS: Defaults = Defaults {
        prefix: "uwsgi_",
        temp_path: TEMP_PATH,
        hidden: hidden!(),
    };

    fn upstream(&mut self) -> &mut UpstreamSettings {
        &mut self.common.upstream
    }

    fn passes_on(&self) -> bool {
        self.common.passes_on()
    }
}

impl PassesParams for UwsgiLoc {
    const HANDLE: fn(&mut Exchange, &mut Ctx<'_>) -> Content = handle;

    fn common(&self) -> &Common {
        &self.common
    }

    fn common_mut(&mut self) -> &mut Common {
        &mut self.common
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
        Ok(match begins(SCHEMA) {
            true => &text[SCHEMA.len()..],
            false => text,
        })
    }
}

fn inherit(own: &mut UwsgiLoc, parent: Option<&UwsgiLoc>) {
    let parent = parent.map(|parent| (&parent.common, &*parent.param));
    own.common.inherit(&own.param, parent);
}

const SCHEMA: &[u8] = b"uwsgi://";
/// `uwsgi_temp_path` where it is not written; a build can set it.
const TEMP_PATH: &str = match option_env!("FIRSTBYTE_UWSGI_TEMP_PATH") {
    Some(path) => path,
    None => "uwsgi_temp",
};
