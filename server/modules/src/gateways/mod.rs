//! Shared by modules whose servers are applications that get CGI parameters.
//!
//! ```text
//! pass           *_pass: an address, a group, or an address made of variables
//! params         *_param, and the parameters of a request
//! client_fields  the client's fields as parameters HTTP_*
//! ```
//!
//! Absent: caches, and with them the rules about conditional requests that only a cache needs.
//!
//! Source: RFC 3875 section 4.1; nginx documentation, `ngx_http_fastcgi_module` and those like it.

mod client_fields;
pub(crate) mod params;
pub(crate) mod pass;

use std::sync::Arc;

use engines::http::FieldId;
use server_http::exchange::{Ctx, Exchange};
use server_http::handler::Content;
use server_http::upstream::{PassesOn, UpstreamConf, UpstreamSettings};

use params::{ParamSet, Params};
use pass::Pass;

/// Settings of a module whose servers get parameters.
pub(crate) trait PassesParams: PassesOn {
    /// The content handler of locations with `*_pass`.
    const HANDLE: fn(&mut Exchange, &mut Ctx<'_>) -> Content;

    /// The settings that these modules share.
    fn common(&self) -> &Common;

    /// The settings of [`Self::common`], to be changed.
    fn common_mut(&mut self) -> &mut Common;

    /// The address without a schema that may stand before it.
    ///
    /// # Errors
    /// A schema that is not built.
    fn address(text: &[u8]) -> Result<&[u8], &'static str> {
        Ok(text)
    }
}

/// Settings of one location that the modules have in common.
#[derive(Default)]
pub(crate) struct Common {
    /// The settings of passing requests on.
    pub(crate) upstream: UpstreamSettings,
    /// `*_pass`.
    pass: Option<Arc<Pass>>,
    /// `*_param` with what follows from it.
    params: Option<Arc<ParamSet>>,
}

impl Common {
    /// Takes from the level around it what is not set here. `params` is what `*_param` says on both levels.
    pub(crate) fn inherit(&mut self, params: &Params, parent: Option<(&Self, &Params)>) {
        self.upstream.merge(parent.map(|(own, _)| &own.upstream));
        let same = parent.filter(|(_, theirs)| params.is_shared_with(theirs));
        self.params = match same {
            Some((parent, _)) => parent.params.clone(),
            None => Some(Arc::new(ParamSet::new(params))),
        };
        // A block inside a location has the handler of that location, and needs to know where it passes to; locations inside
        // a location have it without use.
        if self.pass.is_none() {
            self.pass = parent.and_then(|(own, _)| own.pass.clone());
        }
    }

    /// Whether requests are passed on in this location.
    pub(crate) fn passes_on(&self) -> bool {
        self.pass.is_some()
    }

    /// The settings of passing on, as they hold.
    pub(crate) fn conf(&self) -> &UpstreamConf {
        self.upstream.conf()
    }

    /// Maximum size of the head of a response, bytes.
    pub(crate) fn head_bytes(&self) -> usize {
        let size = self.conf().buffer_size;
        size.map_or(HEAD_BYTES, |bytes| bytes as usize)
    }
}

/// Whether an application may turn the connection into a tunnel, as the client asks by a field that is passed on. Never to
/// HTTP/2: requests in it would pass by all that is configured here.
pub(crate) fn may_upgrade(x: &Exchange, conf: &UpstreamConf) -> bool {
    let wanted = x.head.fields_by_id(FieldId::Upgrade);
    let mut protocols = wanted.flat_map(|value| value.split(|byte| *byte == b','));
    conf.pass_request_headers
        && x.head.field(FieldId::Upgrade).is_some()
        && !protocols.any(|name| name.trim_ascii().eq_ignore_ascii_case(b"h2c"))
}

/// Maximum size of the head of a response unless `*_buffer_size` is written, bytes.
const HEAD_BYTES: usize = 64 << 10;
/// Fields of responses that none of the modules passes on.
macro_rules! hidden {
    ($($more:literal),*) => {
        &[
            $($more,)*
            "x-accel-expires",
            "x-accel-redirect",
            "x-accel-limit-rate",
            "x-accel-buffering",
            "x-accel-charset",
        ]
    };
}
pub(crate) use hidden;
