//! Settings of a location, and `memcached_pass`.

use std::sync::Arc;

use conf::{ConfError, Contexts, Directive};
use server_base::errlog::Shown;
use server_base::from_args::Number;
use server_http::assemble::ConfigBuilder;
use server_http::module::Inherit;
use server_http::settings;
use server_http::settings_set::inherited;
use server_http::upstream::assign::assign_next_upstream;
use server_http::upstream::conf::{NextUpstream, PassedRequest};
use server_http::upstream::{Defaults, PassesOn, UpstreamConf, UpstreamSettings};
use server_http::value::Value;
use server_upstream::group::{GroupId, Groups};
use server_upstream::protocol::MEMCACHED;

use super::{FLAGS, handle};
use crate::pass_address;

const HSL: Contexts = Contexts::HTTP_SERVER_LOCATION;

settings! {
    /// Settings of the module.
    pub(crate) struct MemcachedLoc: Location / PLAIN {
        /// Bits of a value's flags that mark it as compressed with gzip; 0 for none.
        gzip_flag "memcached_gzip_flag": Number = Number(0), "0", HSL;
    }
    extra {
        /// Settings that memcached shares with other modules.
        upstream: UpstreamSettings = UpstreamSettings::merge,
        /// `memcached_pass`. A block within a location uses the handler of that location and needs its target.
        pass: Option<Arc<Pass>> = inherited
    }
}

/// The target of a location.
#[derive(Debug)]
pub(crate) struct Pass {
    pub(super) group: GroupId,
    /// `$memcached_key`.
    pub(super) key: Value,
}

conf::directives! {
    /// The directives that are no plain settings.
    pub(super) const ROWS: ConfigBuilder;

    /// Answers with the value that a memcached server has under the key $memcached_key.
    directive "memcached_pass": Contexts::LOCATION.or(Contexts::IF_IN_LOCATION), TAKE1, "", "address"
        => memcached_pass;

    /// Failures after which another server is tried.
    directive "memcached_next_upstream": HSL, ONE_MORE, "error timeout",
        "error | timeout | denied | invalid_response | not_found | off ..." => |b, d| assign_next_upstream::<MemcachedLoc>(b, d, NEXT_UPSTREAM);
}

/// Inheritance of directives that are not allowed in `http`.
pub(super) const INHERITS: &[(&str, Inherit)] = &[("memcached_pass", Inherit::Blocks)];

/// The words of `memcached_next_upstream`.
const NEXT_UPSTREAM: &[(&str, u32)] = &[
    ("error", NextUpstream::ERROR),
    ("timeout", NextUpstream::TIMEOUT),
    ("denied", NextUpstream::DENIED),
    ("invalid_response", NextUpstream::INVALID_HEADER),
    ("not_found", NextUpstream::HTTP_404),
    ("off", NextUpstream::OFF),
];

impl PassesOn for MemcachedLoc {
    const DEFAULTS: Defaults = Defaults {
        prefix: "memcached_",
        temp_path: "",
        hidden: &[FLAGS],
    };
    const READS_AHEAD: bool = false;

    fn upstream(&mut self) -> &mut UpstreamSettings {
        &mut self.upstream
    }

    fn passes_on(&self) -> bool {
        self.pass.is_some()
    }

    fn fix(conf: &mut UpstreamConf) {
        // A value has a length, so that ranges of it can be served.
        conf.fields.force_ranges = true;
        conf.request = PassedRequest::default();
    }
}

fn memcached_pass(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    conf::once(d, b.conf_mut::<MemcachedLoc>().pass.is_some())?;
    b.set_handler(handle);
    let location = b.location();
    let draft = b.draft(location);
    draft.auto_redirect = draft.name.ends_with(b"/");
    let word = d.word(0);
    let address = pass_address::parse(&word.text).map_err(|why| {
        let text = format!("{why} in upstream \"{}\"", Shown(&word.text));
        ConfError::word(d, word, text)
    })?;
    let group =
        b.conf_mut::<Groups>()
            .add(d, &address.host, address.port, MEMCACHED.default_port)?;
    b.draft(location).passes_to = Some(group);
    // As in nginx only `set`, `map` and similar directives define the variable; without them its name is unknown.
    let key = Value::compile_bytes(b, d, word, b"$memcached_key")?;
    b.conf_mut::<MemcachedLoc>().pass = Some(Arc::new(Pass { group, key }));
    Ok(())
}
