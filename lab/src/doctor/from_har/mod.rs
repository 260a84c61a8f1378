//! A page judged by a visit to it: the doctor's codes from a HAR file, or from a visit of one's own.
//!
//! A visit has times of phases and fields, and nothing of packets, so that causes are likely at best: of what other evidence
//! would prove, a finding here is a warning. Each code has one finding at most, with the resources that lost most by it.
//! Resources from a cache asked no server, and are left out.

mod caching;
mod network;
mod page;
mod responses;

use super::finding::Finding;
use crate::page::Visit;
use page::Page;

/// Judges a visit.
#[must_use]
pub fn from_har(visit: &Visit) -> Vec<Finding> {
    let page = Page::new(visit);
    let rules = [
        network::slow_dns,
        network::slow_connect,
        network::handshake_round_trips,
        network::no_http2,
        network::no_keepalive,
        responses::no_compression,
        caching::poor_caching,
        responses::redirect_chain,
        responses::header_bloat,
        responses::slow_server,
        responses::delayed_ack_stall,
    ];
    rules.into_iter().filter_map(|rule| rule(&page)).collect()
}

#[cfg(test)]
mod tests;
