//! References of contents, and the ends of responses.

use super::Visitor;
use crate::client::{Url, now_ns};
use crate::fetch::{Failure, FailureCause, Response};
use crate::page::Kind;
use crate::wire::css;
use crate::wire::find::{self, Finder};
use crate::wire::kept::Stored;
use crate::wire::options::{MAX_ATTEMPTS, MAX_IMPORTS, MAX_REDIRECTS, MAX_RESOURCES};
use crate::wire::request::rank;
use crate::wire::row::Row;
use crate::wire::scan::Found;

impl Visitor<'_> {
    /// Adds the request of the page.
    pub(super) fn request_page(&mut self) {
        let mut row = Row::new(self.options.url.clone(), Kind::Document, None, now_ns());
        row.is_page = true;
        self.add(row);
    }

    /// Adds the request of a resource unless it is known.
    fn request(&mut self, kind: Kind, base: &Url, reference: &str, from: usize, depth: usize) {
        let Ok(url) = base.join(reference) else {
            // Other schemes are no requests: `data:`, `blob:`, `javascript:`.
            return;
        };
        if self.known.contains_key(&url.to_string()) {
            return;
        }
        if self.rows.len() >= MAX_RESOURCES || self.over.is_some() {
            self.left_out += 1;
            return;
        }
        let mut row = Row::new(url, kind, Some(from), now_ns());
        row.depth = depth;
        self.add(row);
    }

    fn add(&mut self, mut row: Row) {
        let (number, kind) = (self.rows.len(), row.resource.kind);
        let url = row.resource.url.clone();
        self.known.insert(url.clone(), number);
        if row.is_page {
            self.page = number;
        }
        if let Some(stored) = self.kept.fresh(&url).cloned() {
            return self.add_stored(row, &stored);
        }
        row.resource.start_ms = row.wanted_ns.saturating_sub(self.start_ns) as f64 / 1e6;
        let place = self.hosts.place(&row.url, self.options);
        self.hosts.all[place].waiting.insert((rank(kind), number));
        self.rows.push(row);
        self.left += 1;
    }

    /// Adds a resource from the cache, and the resources named in it.
    fn add_stored(&mut self, mut row: Row, stored: &Stored) {
        let (number, wanted_ns) = (self.rows.len(), row.wanted_ns);
        let mut resource = stored.resource.clone();
        resource.from_cache = true;
        resource.connection = None;
        resource.start_ms = wanted_ns.saturating_sub(self.start_ns) as f64 / 1e6;
        resource.phases = crate::page::Phases::default();
        resource.pieces.clear();
        (resource.head_bytes, resource.body_bytes) = (Some(0), Some(0));
        resource.kind = row.resource.kind;
        resource.initiator = row.resource.initiator;
        row.resource = resource;
        row.is_done = true;
        let is_page = row.is_page;
        self.rows.push(row);
        if let Some(location) = &stored.redirect {
            return self.redirect(number, location);
        }
        if is_page {
            self.request_found(number, find::found(&stored.content));
        }
        self.request_of_style(number, &stored.content);
    }

    /// Handles received data of a document.
    pub(super) fn handle_data(&mut self, carrier: usize, number: usize) {
        let Some(core) = &self.carriers[carrier].core else {
            return;
        };
        let row = &mut self.rows[number];
        if let Some(response) = core.response(number).filter(|_| row.is_page) {
            let found = row.read(response);
            self.request_found(number, found);
        }
    }

    /// Requests the resources named in a document.
    fn request_found(&mut self, number: usize, found: Vec<Found>) {
        for found in found {
            let row = &mut self.rows[number];
            match found {
                Found::Base(reference) => {
                    if let Ok(base) = row.url.join(&reference) {
                        row.base = base;
                    }
                }
                Found::Title(title) => _ = self.title.get_or_insert(title),
                Found::Resource(kind, reference) => {
                    let base = row.base.clone();
                    self.request(kind, &base, &reference, number, 0);
                }
                Found::Css(text) => {
                    let base = row.base.clone();
                    for (kind, reference) in css::references(&text) {
                        self.request(kind, &base, &reference, number, 1);
                    }
                }
            }
        }
    }

    /// Requests the resources named in a style sheet, once it is complete.
    fn request_of_style(&mut self, number: usize, content: &[u8]) {
        let row = &self.rows[number];
        if !row.is_style() || row.depth >= MAX_IMPORTS {
            return;
        }
        let (base, depth) = (row.url.clone(), row.depth + 1);
        for (kind, reference) in css::references(&String::from_utf8_lossy(content)) {
            self.request(kind, &base, &reference, number, depth);
        }
    }

    /// A response is complete.
    pub(super) fn handle_response(&mut self, number: usize, response: &Response) {
        let row = &mut self.rows[number];
        let mut found = row.read(response);
        found.extend(row.finder.take().into_iter().flat_map(Finder::finish));
        row.record_response(response, self.start_ns);
        row.note_content(response);
        let content = std::mem::take(&mut row.content);
        self.left -= 1;
        self.kept.store(response, &row.resource, &content);
        self.request_found(number, found);
        match response.redirect() {
            Some(location) => self.redirect(number, location),
            None => self.request_of_style(number, &content),
        }
    }

    /// Requests the target of a redirect.
    fn redirect(&mut self, number: usize, location: &str) {
        let row = &mut self.rows[number];
        let target = match row.url.join(location) {
            _ if row.redirects >= MAX_REDIRECTS => {
                row.resource.error = Some(format!("more than {MAX_REDIRECTS} redirects"));
                return;
            }
            Err(why) => {
                row.resource.error = Some(format!("redirect: {why}"));
                return;
            }
            Ok(target) => target,
        };
        let mut next = Row::new(target, row.resource.kind, Some(number), now_ns());
        next.redirects = row.redirects + 1;
        next.depth = row.depth;
        next.is_page = row.is_page;
        let is_known = self.known.contains_key(&next.resource.url);
        // The page may be redirected back to itself. Known targets of other resources are not requested again.
        if self.over.is_none() && self.rows.len() < MAX_RESOURCES && (next.is_page || !is_known) {
            self.add(next);
        }
    }

    /// Handles a failed request. If the server did not process it, or its connection was closed before a response, it
    /// may be sent again.
    pub(super) fn handle_failure(&mut self, number: usize, failure: &Failure) {
        let row = &mut self.rows[number];
        let may_be_repeated = match failure.cause {
            FailureCause::Refused => true,
            // The first request of a connection has no such excuse.
            FailureCause::Closed => failure.partial.is_none() && row.opening.is_none(),
            _ => false,
        };
        // Nor has one that was never sent.
        let may_be_repeated = may_be_repeated && (1..MAX_ATTEMPTS).contains(&row.attempts);
        if self.over.is_none() && may_be_repeated {
            let place = self.hosts.place(&row.url, self.options);
            let rank = rank(row.resource.kind);
            self.hosts.all[place].waiting.insert((rank, number));
            return;
        }
        let failure = self.over.as_ref().map_or_else(
            || failure.clone(),
            |over| over.clone().with(failure.partial.clone()),
        );
        row.record_failure(&failure, self.start_ns, now_ns());
        self.left -= 1;
    }
}
