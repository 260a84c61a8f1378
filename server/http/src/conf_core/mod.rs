//! The core's own HTTP settings: server scope in `srv`, location scope in `loc`.
//!
//! Plain settings are rows of the tables made by `settings!`. Rows of other shapes are in `assemble::core_rows`: they need the
//! whole state of reading, settings need a [`SettingsContext`] alone.
//!
//! Source: nginx documentation, `ngx_http_core_module`.

mod files;
mod http2;
mod loc;
mod obsolete;
mod request_body;
mod resolver;
mod spdy;
mod srv;

pub use files::{FilesMain, StaticFiles};
pub use http2::{Http2Loc, Http2Srv};
pub use loc::{
    Alias, Connections, CoreLoc, ErrorPage, ErrorPages, IfModifiedSince, KeepaliveDisable,
    KeepaliveTimeout, Lingering, Redirects, RequestBodies, Root, Satisfy, ServerTokens,
};
pub use request_body::{BodyRate, InFile};
pub use resolver::{NameServers, ResolverLoc};
pub use spdy::{SpdyLoc, SpdySrv};
pub use srv::CoreSrv;

use conf::DirectiveDef;

use crate::settings_set::{Conf, SettingsContext, SettingsDef};

/// The core's structs of settings.
pub fn settings_defs() -> Vec<&'static SettingsDef> {
    vec![
        CoreSrv::def(),
        CoreLoc::def(),
        Http2Srv::def(),
        Http2Loc::def(),
        SpdySrv::def(),
        SpdyLoc::def(),
        ResolverLoc::def(),
        FilesMain::def(),
    ]
}

/// Rows of plain settings.
pub const fn rows<B: SettingsContext>() -> &'static [&'static [DirectiveDef<B>]] {
    const {
        &[
            CoreSrv::rows(),
            CoreLoc::rows(),
            RequestBodies::rows(),
            Connections::rows(),
            StaticFiles::rows(),
            ErrorPages::rows(),
            Redirects::rows(),
            Http2Srv::rows(),
            Http2Loc::rows(),
            obsolete::http2_rows(),
            SpdySrv::rows(),
            SpdyLoc::rows(),
            spdy::unneeded_rows(),
            ResolverLoc::rows(),
            FilesMain::rows(),
        ]
    }
}

/// Modules of nginx that are protocols of the core here.
pub const PROTOCOL_MODULES: [&str; 2] = ["v2", "spdy"];
