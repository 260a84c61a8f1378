//! Findings about a page, from a HAR file or from a visit of this program.
//!
//! A visit has times of phases and fields, but no packets. Causes are only likely, so most findings are warnings. A code has one
//! finding at most, with the resources that lost most. Resources from a cache are left out, since they sent no request.

pub(super) mod connections;
pub(super) mod page;
pub(super) mod responses;

use super::finding::Finding;
use super::judge::connect::{judge_connects, judge_page_lookups};
use super::judge::{
    Facts, caching, compression, handshake, header_bloat, http2, keepalive, redirects, slow_server,
    stall,
};
use crate::page::Visit;
use page::Page;

/// Judges a visit.
#[must_use]
pub fn from_har(visit: &Visit) -> Vec<Finding> {
    let page = Page::new(visit);
    let round_trip_ms = visit.round_trip_ms.unwrap_or_default();
    let found = [
        judge_page_lookups(connections::lookups(&page)),
        judge_connects(Facts::Page(connections::connects(&page))),
        handshake::judge(Facts::Page(connections::handshakes(&page))),
        http2::judge_page(connections::of_http1(&page)),
        keepalive::judge_page(connections::reopened(&page)),
        compression::judge_page(responses::plain_texts(&page)),
        caching::judge(&responses::static_files(&page), round_trip_ms),
        redirects::judge_page(responses::redirects(&page)),
        header_bloat::judge_page(responses::heads(&page)),
        slow_server::judge_page(responses::waits(&page)),
        stall::judge(Facts::Page(responses::pauses(&page))),
    ];
    found.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests;
