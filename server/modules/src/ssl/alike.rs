//! Which servers have the same policy towards clients, seen by their directives alone.
//!
//! Of ten thousand servers most say nothing but their certificates and inherit the rest, so the policy of one is that of the
//! next. Absent: equal policies of directives that are written twice, which are found by [`tls::Settings::key`].

use std::sync::Arc;

use conf::Directive;

use super::SslSrv;
use super::values::CacheKind;

/// Whether the policy of a server that says this is decided by what [`is_alike`] compares: it has no cache of sessions for
/// itself, and nothing in it depends on its certificates.
pub(super) fn is_shareable(conf: &SslSrv) -> bool {
    let has_own_cache = match conf.cache {
        None | Some(CacheKind::None) => *conf.policy.early_data,
        Some(CacheKind::Builtin(_)) => true,
        Some(CacheKind::Shared(..)) => false,
    };
    !(has_own_cache
        || *conf.staples.stapling
        || *conf.policy.reject_handshake
        || !conf.commands.is_empty())
}

/// Whether two servers inherit the same directives, certificates and what is looked at elsewhere aside.
pub(super) fn is_alike(one: &SslSrv, other: &SslSrv) -> bool {
    // All fields are named, so that none that is added later can be forgotten.
    let SslSrv {
        certificate_watch: _,
        policy,
        clients,
        staples,
        certificates: _,
        keys: _,
        cache,
        certificate_cache: _,
        ticket_keys,
        commands,
    } = one;
    *policy == other.policy
        && *clients == other.clients
        && *staples == other.staples
        && *cache == other.cache
        && is_same(ticket_keys, &other.ticket_keys)
        && is_same(commands, &other.commands)
}

fn is_same(list: &[Arc<Directive>], other: &[Arc<Directive>]) -> bool {
    list.iter()
        .map(Arc::as_ptr)
        .eq(other.iter().map(Arc::as_ptr))
}
