//! Settings of a location.

use conf::{Arity, Contexts, DirectiveDef};
use server_http::build::ConfigBuilder;
use server_http::exchange::{Ctx, Exchange};
use server_http::module::{Content, Inherit};
use server_http::settings;
use server_http::upstream::{Defaults, PassesOn, UpstreamSettings};

use super::handle;
use crate::gateways::params::Params;
use crate::gateways::{Common, PassesParams, hidden, pass};

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

/// The directive with a shape of its own.
pub(super) const ROWS: &[DirectiveDef<ConfigBuilder>] = &[DirectiveDef {
    name: "scgi_pass",
    contexts: Contexts::LOCATION.or(Contexts::IF_IN_LOCATION),
    arity: Arity::TAKE1,
    block: false,
    default: "",
    doc: "Passes requests on to an SCGI application or a group of them.",
    syntax: "address",
    apply: pass::set::<ScgiLoc>,
}];

/// How directives of inner levels are inherited.
pub(super) const INHERITS: &[(&str, Inherit)] = &[("scgi_pass", Inherit::Blocks)];

impl PassesOn for ScgiLoc {
    const DEFAULTS: Defaults = Defaults {
        prefix: "scgi_",
        temp_path: TEMP_PATH,
        hidden: hidden!("status"),
    };

    fn upstream(&mut self) -> &mut UpstreamSettings {
        &mut self.common.upstream
    }

    fn passes_on(&self) -> bool {
        self.common.passes_on()
    }
}

impl PassesParams for ScgiLoc {
    const HANDLE: fn(&mut Exchange, &mut Ctx<'_>) -> Content = handle;

    fn common(&self) -> &Common {
        &self.common
    }

    fn common_mut(&mut self) -> &mut Common {
        &mut self.common
    }
}

fn inherit(own: &mut ScgiLoc, parent: Option<&ScgiLoc>) {
    let parent = parent.map(|parent| (&parent.common, &*parent.param));
    own.common.inherit(&own.param, parent);
}

/// `scgi_temp_path` where it is not written; a build can set it.
const TEMP_PATH: &str = match option_env!("FIRSTBYTE_SCGI_TEMP_PATH") {
    Some(path) => path,
    None => "scgi_temp",
};
