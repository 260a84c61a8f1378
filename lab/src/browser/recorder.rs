//! Events of the network become the resources of a page.
//!
//! Memory is bounded: requests past [`RESOURCES_MAX`] and requests past [`TEXT_BYTES_MAX`] bytes of text are only
//! counted.

use std::collections::{HashMap, HashSet, VecDeque};

use super::events::{
    DataReceived, LoadingFailed, LoadingFinished, RequestExtraInfo, RequestWillBeSent, Response,
    ResponseExtraInfo, ResponseReceived, ServedFromCache,
};
use super::request::{self, Hop, without_fragment};
use super::{fields, phases};
use crate::page::{Kind, Resource};

/// All requests of a view.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    hops: Vec<Hop>,
    /// Last request of each id; redirects keep the id.
    by_id: HashMap<String, usize>,
    by_url: HashMap<String, usize>,
    /// Events of the network process, which may precede or follow those of the page.
    extra: HashMap<String, Extra>,
    /// Numbers of requests that have no end yet.
    open: HashSet<String>,
    text_bytes: usize,
    /// How many requests there was no room for.
    pub(super) left_out: u64,
    pub(super) document: Option<Document>,
}

/// The document: the first request of the visit.
#[derive(Clone, Debug)]
pub(super) struct Document {
    id: String,
    pub(super) frame: String,
    /// When it was requested: seconds of the monotonic clock, and since 1970.
    pub(super) start: f64,
    pub(super) start_unix: f64,
}

/// Events of the network process on the requests of one number, in order.
#[derive(Debug, Default)]
struct Extra {
    requests: VecDeque<RequestExtraInfo>,
    responses: VecDeque<ResponseExtraInfo>,
    /// Places of the requests with this id that these events describe.
    hops: Vec<usize>,
}

impl Recorder {
    /// How many requests there are.
    pub(super) fn count(&self) -> usize {
        self.hops.len()
    }

    /// How many requests have no end yet.
    pub(super) fn open(&self) -> usize {
        self.open.len()
    }

    pub(super) fn request_will_be_sent(&mut self, event: RequestWillBeSent) {
        let url = without_fragment(&event.request.url);
        // URLs that need no network: data, blobs, pages of the browser.
        if !url.starts_with("http://") && !url.starts_with("https://") {
            return;
        }
        let id = &event.request_id;
        let last = self.by_id.get(id).copied();
        if let Some((last, redirect)) = last.zip(event.redirect_response) {
            self.record_redirect(
                last,
                redirect,
                event.redirect_has_extra_info,
                event.timestamp,
            );
        } else if last.is_some() {
            // A frame in a process of its own is announced by the page's session and by its own.
            return;
        }
        let request_fields = fields::of_object(&event.request.headers);
        let bytes = url.len() + fields_bytes(&request_fields);
        if self.hops.len() >= RESOURCES_MAX || self.text_bytes + bytes > TEXT_BYTES_MAX {
            self.left_out += 1;
            self.by_id.remove(id);
            self.open.remove(id);
            return;
        }
        self.text_bytes += bytes;
        let place = self.hops.len();
        let found = request::initiator(&event.initiator, &self.by_id, &self.by_url);
        // The browser reports the URL that the page contains. If that was redirected, the initiator is the last request
        // of the chain.
        let found = found.map(|asked| self.end_of_redirects(asked));
        if let Some(last) = last {
            self.hops[last].next = Some(place);
        }
        self.hops.push(Hop {
            url: url.to_owned(),
            method: event.request.method,
            kind: request::kind(&event.kind),
            start: event.timestamp,
            request_fields,
            priority: event.request.initial_priority,
            // The initiator of a redirected request is the request before it.
            initiator: last.or(found),
            ..Hop::default()
        });
        if self.document.is_none() {
            self.document = Some(Document {
                id: id.clone(),
                frame: event.frame_id,
                start: event.timestamp,
                start_unix: event.wall_time,
            });
        }
        self.by_url.insert(url.to_owned(), place);
        self.by_id.insert(id.clone(), place);
        self.open.insert(id.clone());
        self.extra.entry(id.clone()).or_default().hops.push(place);
    }

    /// Returns the last request in a chain of redirects.
    fn end_of_redirects(&self, mut place: usize) -> usize {
        // Each request follows the one redirected to it, so the loop ends.
        while let Some(next) = self.hops[place].next {
            place = next;
        }
        place
    }

    /// Ends a redirected request; `next` is when the page followed the redirect.
    fn record_redirect(
        &mut self,
        place: usize,
        response: Response,
        has_extra_info: bool,
        next: f64,
    ) {
        let timing = response.timing.as_ref();
        let head = timing.filter(|timing| timing.receive_headers_end > 0.0);
        let end = head.map(|one| one.request_time + one.receive_headers_end / 1000.0);
        let hop = &mut self.hops[place];
        hop.end = Some(end.unwrap_or(next).min(next));
        hop.is_redirect = true;
        hop.has_extra_info = has_extra_info;
        self.record_response(place, response);
    }

    fn record_response(&mut self, place: usize, response: Response) {
        let hop = &mut self.hops[place];
        let response_fields = fields::of_object(&response.headers);
        self.text_bytes += fields_bytes(&response_fields);
        if self.text_bytes <= TEXT_BYTES_MAX {
            hop.response_fields = response_fields;
        }
        // Its fields are stored only once.
        hop.response = Some(Response {
            headers: serde_json::Map::new(),
            ..response
        });
    }

    pub(super) fn response_received(&mut self, event: ResponseReceived) {
        let Some(place) = self.by_id.get(&event.request_id).copied() else {
            return;
        };
        let hop = &mut self.hops[place];
        hop.has_extra_info = event.has_extra_info;
        hop.answered = Some(event.timestamp);
        if hop.kind == Kind::Other {
            hop.kind = request::kind(&event.kind);
        }
        self.record_response(place, event.response);
    }

    pub(super) fn request_extra_info(&mut self, event: RequestExtraInfo) {
        if let Some(extra) = self.extra_of(&event.request_id, fields_size(&event.headers)) {
            extra.requests.push_back(event);
        }
    }

    pub(super) fn response_extra_info(&mut self, event: ResponseExtraInfo) {
        let text = event.headers_text.as_ref().map_or(0, String::len);
        let bytes = text + fields_size(&event.headers);
        if let Some(extra) = self.extra_of(&event.request_id, bytes) {
            extra.responses.push_back(event);
        }
    }

    /// Returns the place for events of the network process about a request; `None` at the limit of memory.
    fn extra_of(&mut self, id: &str, bytes: usize) -> Option<&mut Extra> {
        if self.text_bytes + bytes > TEXT_BYTES_MAX {
            return None;
        }
        // It may arrive before its request. Ids without a request are limited, too.
        if !self.extra.contains_key(id) && self.extra.len() > RESOURCES_MAX {
            return None;
        }
        self.text_bytes += bytes;
        Some(self.extra.entry(id.to_owned()).or_default())
    }

    pub(super) fn data_received(&mut self, event: &DataReceived) {
        let Some(place) = self.by_id.get(&event.request_id) else {
            return;
        };
        if event.data_length > 0 {
            self.hops[*place].add_part(event.timestamp, event.data_length);
        }
    }

    pub(super) fn served_from_cache(&mut self, event: &ServedFromCache) {
        if let Some(place) = self.by_id.get(&event.request_id) {
            self.hops[*place].is_from_memory = true;
        }
    }

    pub(super) fn loading_finished(&mut self, event: &LoadingFinished) {
        if let Some(hop) = self.end(&event.request_id, event.timestamp) {
            hop.received_bytes = Some(event.encoded_data_length);
        }
    }

    pub(super) fn loading_failed(&mut self, event: &LoadingFailed) {
        if let Some(hop) = self.end(&event.request_id, event.timestamp) {
            let blocked = event.blocked_reason.as_ref();
            let blocked = blocked.map(|why| format!("blocked: {why}"));
            // A request that was blocked before it was sent may have no error text.
            hop.error = Some(match (event.error_text.as_str(), blocked) {
                (error, None) => error.to_owned(),
                ("", Some(blocked)) => blocked,
                (error, Some(blocked)) => format!("{error} ({blocked})"),
            });
        }
    }

    fn end(&mut self, id: &str, at: f64) -> Option<&mut Hop> {
        self.open.remove(id);
        let hop = &mut self.hops[*self.by_id.get(id)?];
        hop.end = Some(at.max(hop.start));
        Some(hop)
    }

    /// The request of the document, of the last one that redirects led to.
    fn document_hop(&self) -> Option<&Hop> {
        let place = self.by_id.get(&self.document.as_ref()?.id)?;
        Some(&self.hops[*place])
    }

    /// Whether a request is the document's.
    pub(super) fn is_document(&self, id: &str) -> bool {
        self.document.as_ref().is_some_and(|one| one.id == id)
    }

    /// Returns the URL of the document if it has no response.
    pub(super) fn unanswered_document(&self) -> Option<&str> {
        let hop = self.document_hop()?;
        hop.response.is_none().then_some(&hop.url)
    }

    /// Returns the time of the first byte of the document; seconds.
    pub(super) fn document_first_byte(&self) -> Option<f64> {
        let timing = self.document_hop()?.response.as_ref()?.timing.as_ref()?;
        phases::first_byte(timing)
    }

    /// Returns the error of the document if it is incomplete.
    pub(super) fn document_error(&self) -> Option<&str> {
        self.document_hop()?.error.as_deref()
    }

    /// The resources, with times from the request of the document; those without an end have `view_end`, in seconds.
    pub(super) fn resources(mut self, view_end: f64) -> Vec<Resource> {
        for extra in self.extra.values_mut() {
            for place in &extra.hops {
                let hop = &mut self.hops[*place];
                // Without a response, the browser does not report whether ExtraInfo events exist: take those that came.
                if hop.has_extra_info || hop.response.is_none() {
                    hop.add_extra_info(extra.requests.pop_front(), extra.responses.pop_front());
                }
            }
        }
        let origin = self.document.as_ref().map_or(0.0, |one| one.start);
        let resource = |hop: &Hop| hop.resource(origin, view_end);
        self.hops.iter().map(resource).collect()
    }
}

fn fields_bytes(fields: &[(String, String)]) -> usize {
    fields
        .iter()
        .map(|(name, value)| name.len() + value.len())
        .sum()
}

fn fields_size(headers: &super::events::Headers) -> usize {
    let value = |value: &serde_json::Value| value.as_str().map_or(0, str::len);
    headers
        .iter()
        .map(|(name, one)| name.len() + value(one))
        .sum()
}

/// The most requests of a view.
pub(super) const RESOURCES_MAX: usize = 20_000;
/// The most text of URLs and fields.
pub(super) const TEXT_BYTES_MAX: usize = 256 << 20;

#[cfg(test)]
#[path = "recorder_tests.rs"]
mod tests;
