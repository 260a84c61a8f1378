//! The method of choosing a server, as the directives of methods set it.

use std::sync::Arc;

use conf::{ConfError, Directive};
use server_http::assemble::ConfigBuilder;
use server_http::upstream::group::KeySource;
use server_upstream::balance::Method;

use super::Block;

/// Sets the method of the current `upstream` block, and the source of its key. As in nginx, a second method is a
/// warning, and replaces the first.
pub(super) fn set_method(
    b: &mut ConfigBuilder,
    d: &Directive,
    method: impl Method + 'static,
    key: Option<KeySource>,
) {
    let block = b.conf_mut::<Block>();
    block.key = key;
    if block.method.replace(Arc::new(method)).is_some() {
        b.warn(ConfError::at(d, "load balancing method redefined"));
    }
}
