//! The rule about static files of the page's own site.

use super::page::{Page, host};
use crate::doctor::caching::{StaticFile, judge};
use crate::doctor::finding::Finding;
use crate::doctor::slow_start::further_round_trips;

pub(super) fn poor_caching(page: &Page<'_>) -> Option<Finding> {
    let own = host(&page.visit.url);
    let own = own.strip_prefix("www.").unwrap_or(own);
    // Others' files are nothing that the site could mend.
    let is_own = |url: &str| {
        let rest = host(url).strip_suffix(own);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    let files: Vec<StaticFile> = page
        .asked()
        .map(|(_, one)| one)
        .filter(|one| one.status == 200 && one.method == "GET" && is_own(&one.url))
        // Some sources have no fields.
        .filter(|one| !one.response_fields.is_empty())
        .filter_map(|one| {
            let bytes = one.body_bytes.or(one.content_bytes).unwrap_or_default();
            StaticFile::of(&one.url, &one.mime_type, &one.response_fields, bytes)
        })
        .collect();
    let trips = page.visit.round_trip_ms.unwrap_or_default();
    judge(&files, trips, further_round_trips)
}
