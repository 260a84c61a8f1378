//! Finds servers with an equal policy by their directives alone.
//!
//! Most of ten thousand servers set only their certificates and inherit the rest, so consecutive servers share a
//! policy. Absent: equal policies of directives that are written twice, which [`tls::Settings::key`] finds.

use std::sync::Arc;

use conf::Directive;

use super::SslSrv;
use super::values::CacheKind;

/// Whether another server may share the policy of this one: it has no session cache of its own, and no part that
/// depends on its certificates.
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

/// Whether two servers inherit equal directives, apart from certificates.
pub(super) fn has_same_policy(one: &SslSrv, other: &SslSrv) -> bool {
    // All fields are named, so that a new field cannot be forgotten.
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
