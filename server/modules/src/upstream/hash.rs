//! `hash`: the server by a key of the request.
//!
//! Source: nginx documentation, `ngx_http_upstream_module`, `hash`.

use conf::{ConfError, Contexts, Directive};
use server_http::assemble::ConfigBuilder;
use server_http::upstream::group::KeySource;
use server_http::value::Value;
use server_upstream::balance::hash::Hash;
use server_upstream::balance::ketama::ConsistentHash;

use super::method::set_method;

conf::directives! {
    pub(super) const ROWS: ConfigBuilder;

    /// Requests with one key use one server; with consistent a changed list moves only keys of changed servers (ketama).
    directive "hash": Contexts::UPSTREAM, TAKE12, "", "key [consistent]" => hash;
}

fn hash(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let key = Some(KeySource::Value(Value::compile(b, d, d.word(0))?));
    match d.args.get(1) {
        None => set_method(b, d, Hash, key),
        Some(word) if word.text == b"consistent" => {
            set_method(b, d, ConsistentHash::default(), key);
        }
        Some(word) => return Err(ConfError::parameter(d, word)),
    }
    Ok(())
}
