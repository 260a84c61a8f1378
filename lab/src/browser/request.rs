//! One request of a page as events describe it, and the resource that it is in the end.

use std::collections::HashMap;

use engines::http::parse_length;

use super::events::{Initiator, RequestExtraInfo, Response, ResponseExtraInfo};
use super::fields;
use super::phases::{Course, first_byte, phases};
use crate::page::{Kind, Piece, Resource};

/// A request; one that is redirected is several.
#[derive(Debug, Default)]
pub(super) struct Hop {
    pub(super) url: String,
    pub(super) method: String,
    pub(super) kind: Kind,
    /// Seconds of the monotonic clock, as all times here.
    pub(super) start: f64,
    pub(super) request_fields: Vec<(String, String)>,
    pub(super) priority: Option<String>,
    pub(super) initiator: Option<usize>,
    pub(super) requested: Option<f64>,
    pub(super) response: Option<Response>,
    pub(super) response_fields: Vec<(String, String)>,
    /// Status from the network if the page saw the status of a cached response.
    pub(super) status: Option<u16>,
    /// Whether events of the network process describe it as well.
    pub(super) has_extra_info: bool,
    /// When the page got parts of the body, and their bytes without codings.
    pub(super) parts: Vec<(f64, u64)>,
    pub(super) end: Option<f64>,
    /// All bytes that were received for it.
    pub(super) received_bytes: Option<f64>,
    /// Bytes of the head if it was received as text (HTTP/1).
    pub(super) head_text_bytes: Option<u64>,
    pub(super) is_redirect: bool,
    /// The place of the request that it was redirected to.
    pub(super) next: Option<usize>,
    /// When the page saw the head of the response.
    pub(super) answered: Option<f64>,
    pub(super) is_from_memory: bool,
    pub(super) error: Option<String>,
}

impl Hop {
    /// Returns whether the response is from a cache without a request to the server.
    fn is_from_cache(&self) -> bool {
        let cached = |response: &Response| response.from_disk_cache || response.from_prefetch_cache;
        // Events of the network process mean that the request was sent to the server.
        let is_cached = self.response.as_ref().is_some_and(cached);
        self.is_from_memory || is_cached && !self.has_extra_info
    }

    /// Adds a part of the body; past [`PARTS_MAX`] parts count as one with the last.
    pub(super) fn add_part(&mut self, at: f64, bytes: u64) {
        let is_full = self.parts.len() >= PARTS_MAX;
        match self.parts.last_mut() {
            Some(last) if is_full || last.0 == at => *last = (at, last.1.saturating_add(bytes)),
            _ => self.parts.push((at, bytes)),
        }
    }

    /// Adds the events of the network process: the fields and times of the request and the response on the wire.
    pub(super) fn add_extra_info(
        &mut self,
        request: Option<RequestExtraInfo>,
        response: Option<ResponseExtraInfo>,
    ) {
        if let Some(request) = request {
            self.request_fields = fields::of_object(&request.headers);
            self.requested = Some(request.connect_timing.request_time).filter(|at| *at > 0.0);
        }
        if let Some(response) = response {
            let text = response.headers_text.as_deref();
            self.head_text_bytes = text.map(|text| text.len() as u64);
            let text = text.map(fields::of_text);
            let object = || fields::of_object(&response.headers);
            self.response_fields = text.filter(|all| !all.is_empty()).unwrap_or_else(object);
            self.status = Some(status(response.status_code));
        }
    }

    /// The resource, with times from `origin`; a request without an end has that of the view.
    pub(super) fn resource(&self, origin: f64, view_end: f64) -> Resource {
        let response = self.response.as_ref();
        let timing = response.and_then(|response| response.timing.as_ref());
        let from_cache = self.is_from_cache();
        let end = self.end.unwrap_or(view_end);
        let course = Course {
            start: self.start,
            end,
            timing,
            requested: self.requested,
            answered: self.answered,
            from_cache,
        };
        let network = response.filter(|_| !from_cache);
        let (head_bytes, body_bytes) = self.bytes(from_cache);
        let mut resource = Resource {
            url: self.url.clone(),
            method: self.method.clone(),
            kind: self.kind,
            status: self
                .status
                .or(response.map(|one| status(one.status)))
                .unwrap_or(0),
            protocol: response.map_or_else(String::new, |one| one.protocol.clone()),
            connection: network.and_then(connection),
            remote: network.and_then(remote),
            start_ms: (self.start - origin) * 1000.0,
            phases: phases(course),
            pieces: Vec::new(),
            request_fields: self.request_fields.clone(),
            response_fields: self.response_fields.clone(),
            head_bytes,
            body_bytes,
            content_bytes: response.map(|_| self.content_bytes()),
            mime_type: response.map_or_else(String::new, |one| one.mime_type.clone()),
            from_cache,
            priority: self.priority.clone(),
            initiator: self.initiator,
            error: self.error.clone(),
        };
        if self.end.is_none() {
            resource.error = Some("unfinished at the end of the visit".to_owned());
        }
        let first = timing.and_then(first_byte).or(self.answered);
        let first = first.unwrap_or(end).min(end);
        resource.pieces = self.pieces(body_bytes, (first, end), origin);
        resource
    }

    /// Returns the transferred bytes of head and body.
    ///
    /// The browser's count includes frame headers, and it may add a part of the body to the head. So a length from
    /// another source has priority.
    fn bytes(&self, from_cache: bool) -> (Option<u64>, Option<u64>) {
        if from_cache {
            return (Some(0), Some(0));
        }
        let Some(response) = &self.response else {
            return (None, None);
        };
        let whole = |bytes: f64| (bytes >= 0.0).then_some(bytes as u64);
        let counted = whole(response.encoded_data_length);
        let Some(all) = self
            .received_bytes
            .and_then(whole)
            .filter(|_| !self.is_redirect)
        else {
            // Browsers do not read the bodies of redirects, and count those that fail as nothing.
            return (self.head_text_bytes.or(counted), None);
        };
        let body = self.known_body_bytes().unwrap_or_else(|| {
            let head = self.head_text_bytes.or(counted).unwrap_or(0);
            all.saturating_sub(head)
        });
        let rest = all.checked_sub(body).filter(|rest| *rest > 0);
        let head = counted.map(|counted| counted.min(rest.unwrap_or(counted)));
        (self.head_text_bytes.or(head), Some(body))
    }

    /// Returns the length of the body if it follows from the status, the method or a field.
    fn known_body_bytes(&self) -> Option<u64> {
        if self.status == Some(NOT_MODIFIED) || self.method == "HEAD" {
            return Some(0);
        }
        let field = |name: &str| {
            let mut fields = self.response_fields.iter();
            let found = fields.find(|(one, _)| one.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.as_str())
        };
        if field("content-encoding").is_none_or(|coding| coding == "identity") {
            return Some(self.content_bytes());
        }
        parse_length(field("content-length")?.as_bytes())
    }

    /// Bytes of the body without codings.
    fn content_bytes(&self) -> u64 {
        self.parts.iter().map(|(_, bytes)| bytes).sum()
    }

    /// Returns the parts of the body as they were transferred. For an encoded body the browser reports decoded lengths;
    /// each part gets its share of the transferred bytes.
    fn pieces(&self, body_bytes: Option<u64>, (first, end): (f64, f64), origin: f64) -> Vec<Piece> {
        let decoded = self.content_bytes();
        let Some(transferred) = body_bytes.filter(|_| decoded > 0) else {
            return Vec::new();
        };
        let share =
            |sum: u64| (u128::from(transferred) * u128::from(sum) / u128::from(decoded)) as u64;
        let mut sum = 0;
        let piece = |(at, bytes): &(f64, u64)| {
            let before = share(sum);
            sum += bytes;
            Piece {
                // The page gets parts shortly after the network process, which has the time of the last part.
                at_ms: (at.min(end).max(first) - origin) * 1000.0,
                bytes: share(sum) - before,
            }
        };
        let pieces = self.parts.iter().map(piece);
        pieces.filter(|piece| piece.bytes > 0).collect()
    }
}

/// A status, which the protocol has as any number.
pub(super) fn status(number: f64) -> u16 {
    // `as` saturates: a number out of range becomes the nearest `u16`, and NaN becomes 0.
    number as u16
}

fn connection(response: &Response) -> Option<u64> {
    (response.connection_id >= 1.0).then_some(response.connection_id as u64)
}

fn remote(response: &Response) -> Option<String> {
    let port = response.remote_port?;
    let address = &response.remote_ip_address;
    let address = address.trim_start_matches('[').trim_end_matches(']');
    match address.contains(':') {
        _ if address.is_empty() => None,
        true => Some(format!("[{address}]:{port}")),
        false => Some(format!("{address}:{port}")),
    }
}

/// The kind of a resource by its type in the protocol.
pub(super) fn kind(name: &str) -> Kind {
    match name {
        "Document" => Kind::Document,
        "Stylesheet" => Kind::Stylesheet,
        "Script" => Kind::Script,
        "Image" => Kind::Image,
        "Font" => Kind::Font,
        "Media" | "TextTrack" => Kind::Media,
        "XHR" | "Fetch" | "EventSource" => Kind::Fetch,
        _ => Kind::Other,
    }
}

/// Returns the place of the request that caused this one: by its id, or the last request with the URL of the script.
pub(super) fn initiator(
    initiator: &Initiator,
    by_id: &HashMap<String, usize>,
    by_url: &HashMap<String, usize>,
) -> Option<usize> {
    let known = initiator.request_id.as_ref().and_then(|id| by_id.get(id));
    let mut stack = Some(&initiator.stack);
    let mut frame = None;
    for _ in 0..STACKS_MAX {
        let Some(one) = stack else { break };
        frame = one.call_frames.iter().find(|frame| !frame.url.is_empty());
        if frame.is_some() {
            break;
        }
        stack = one.parent.as_deref();
    }
    let urls = [initiator.url.as_ref(), frame.map(|frame| &frame.url)];
    let mut urls = urls.into_iter().flatten();
    known
        .or_else(|| urls.find_map(|url| by_url.get(without_fragment(url))))
        .copied()
}

/// Returns a URL without its fragment, as it is requested.
pub(super) fn without_fragment(url: &str) -> &str {
    url.split('#').next().unwrap_or_default()
}

/// Status of a response with its body in the cache (RFC 9110 section 15.4.5).
const NOT_MODIFIED: u16 = 304;
/// How many stacks that led to each other are looked through.
const STACKS_MAX: usize = 8;
/// Most recorded parts of a body; further ones are merged with the last.
pub(super) const PARTS_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{from_value, json};

    #[test]
    fn parts_past_the_limit_join_the_last() {
        let mut hop = Hop::default();
        for n in 0..PARTS_MAX {
            hop.add_part(n as f64, 1);
        }
        assert_eq!(hop.parts.len(), PARTS_MAX);
        hop.add_part(1e6, 5);
        assert_eq!(hop.parts.len(), PARTS_MAX);
        assert_eq!(hop.parts.last(), Some(&(1e6, 6)));
    }

    #[test]
    fn pieces_are_shares_of_what_was_transferred() {
        let mut hop = Hop::default();
        for (at, bytes) in [(1.0, 10), (2.0, 20), (9.0, 3)] {
            hop.add_part(at, bytes);
        }
        let pieces = hop.pieces(Some(100), (1.5, 3.0), 1.0);
        let found: Vec<_> = pieces.iter().map(|one| (one.at_ms, one.bytes)).collect();
        assert_eq!(found, [(500.0, 30), (1000.0, 60), (2000.0, 10)]);
        assert!(hop.pieces(None, (1.0, 3.0), 1.0).is_empty());
        assert!(Hop::default().pieces(Some(5), (1.0, 3.0), 1.0).is_empty());
    }

    fn answered(counted: f64, received: f64, fields: &[(&str, &str)]) -> Hop {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let mut hop = Hop {
            response: Some(Response {
                encoded_data_length: counted,
                ..Response::default()
            }),
            received_bytes: Some(received),
            response_fields: fields.iter().map(owned).collect(),
            ..Hop::default()
        };
        hop.add_part(1.0, 200);
        hop
    }

    #[test]
    fn transferred_bytes_do_not_depend_on_when_the_browser_counts() {
        let gzip = ("content-encoding", "gzip");
        // Head, frame and body, and the same when the body was there with the head.
        assert_eq!(
            answered(40.0, 249.0, &[]).bytes(false),
            (Some(40), Some(200))
        );
        assert_eq!(
            answered(249.0, 249.0, &[]).bytes(false),
            (Some(49), Some(200))
        );
        // An image with invalid data: the count is that of its body.
        assert_eq!(
            answered(18.0, 200.0, &[]).bytes(false),
            (Some(18), Some(200))
        );
        let length = ("Content-Length", "80");
        assert_eq!(
            answered(129.0, 129.0, &[gzip, length]).bytes(false),
            (Some(49), Some(80))
        );
        assert_eq!(
            answered(40.0, 129.0, &[gzip]).bytes(false),
            (Some(40), Some(89))
        );
        let mut text = answered(129.0, 129.0, &[gzip]);
        text.head_text_bytes = Some(40);
        assert_eq!(text.bytes(false), (Some(40), Some(89)));
        text.status = Some(NOT_MODIFIED);
        assert_eq!(text.bytes(false), (Some(40), Some(0)));
        assert_eq!(text.bytes(true), (Some(0), Some(0)));
        text.is_redirect = true;
        assert_eq!(text.bytes(false), (Some(40), None));
        assert_eq!(Hop::default().bytes(false), (None, None));
    }

    #[test]
    fn initiators_are_found_by_number_url_and_stack() {
        let by_id = HashMap::from([("7".to_owned(), 1)]);
        let by_url = HashMap::from([("http://h/a.js".to_owned(), 2)]);
        let find = |value| {
            let one: Initiator = from_value(value).expect("of the protocol");
            initiator(&one, &by_id, &by_url)
        };
        assert_eq!(find(json!({"type": "parser", "requestId": "7"})), Some(1));
        assert_eq!(
            find(json!({"type": "parser", "url": "http://h/a.js#x"})),
            Some(2)
        );
        let frames = json!([{"url": ""}, {"url": "http://h/a.js"}]);
        let stack = json!({"callFrames": [], "parent": {"callFrames": frames}});
        assert_eq!(find(json!({"type": "script", "stack": stack})), Some(2));
        assert_eq!(find(json!({"type": "other"})), None);
        for (parents, expected) in [(STACKS_MAX - 1, Some(2)), (STACKS_MAX, None)] {
            let stack = json!({"callFrames": [{"url": "http://h/a.js"}]});
            let above = |stack, _| json!({"callFrames": [], "parent": stack});
            let stack = (0..parents).fold(stack, above);
            assert_eq!(find(json!({"type": "script", "stack": stack})), expected);
        }
    }

    #[test]
    fn addresses_are_written_as_in_urls() {
        let of = |address: &str, port| {
            let response = Response {
                remote_ip_address: address.to_owned(),
                remote_port: port,
                ..Response::default()
            };
            remote(&response)
        };
        assert_eq!(of("127.0.0.1", Some(80)).as_deref(), Some("127.0.0.1:80"));
        assert_eq!(of("[::1]", Some(443)).as_deref(), Some("[::1]:443"));
        assert_eq!((of("", Some(1)), of("127.0.0.1", None)), (None, None));
    }
}
