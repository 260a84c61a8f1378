//! One resource while it is fetched; its times become phases.

use super::find::Finder;
use super::options::MAX_CONTENT_BYTES;
use super::scan::Found;
use crate::client::Url;
use crate::fetch::{ConnectionRecord, Decoder, Failure, Response};
use crate::page::{Kind, Phases, Piece, Resource};

/// A resource of the visit.
pub(super) struct Row {
    pub(super) resource: Resource,
    pub(super) url: Url,
    /// When the page requested it, nanoseconds.
    pub(super) wanted_ns: u64,
    pub(super) is_done: bool,
    /// The document that is shown, or a redirect to it.
    pub(super) is_page: bool,
    pub(super) redirects: usize,
    /// Number of style sheets in the chain to it.
    pub(super) depth: usize,
    /// Number of attempts.
    pub(super) attempts: usize,
    /// Times of opening its connection, if it is the first on it.
    pub(super) opening: Option<Opening>,
    pub(super) decoder: Option<Decoder>,
    /// Of documents.
    pub(super) finder: Option<Finder>,
    /// Bytes of the body that were decoded, and of the content that they are.
    pub(super) seen: usize,
    pub(super) content_bytes: u64,
    /// The content of documents and style sheets.
    pub(super) content: Vec<u8>,
    /// The URL that references are relative to.
    pub(super) base: Url,
}

/// Times of opening a connection, nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Opening {
    /// Lookup of its host, if it was for this connection.
    pub(super) dns: Option<(u64, u64)>,
    pub(super) connect: (u64, u64),
    pub(super) tls: Option<(u64, u64)>,
}

impl Opening {
    pub(super) fn of(record: &ConnectionRecord, dns: Option<(u64, u64)>) -> Self {
        let handshake = record.handshake.as_ref();
        Self {
            dns,
            connect: record.opened,
            tls: handshake.map(|handshake| (handshake.from, handshake.to)),
        }
    }
}

impl Row {
    pub(super) fn new(url: Url, kind: Kind, initiator: Option<usize>, now_ns: u64) -> Self {
        Self {
            resource: Resource {
                url: url.to_string(),
                method: "GET".to_owned(),
                kind,
                initiator,
                ..Resource::default()
            },
            base: url.clone(),
            url,
            wanted_ns: now_ns,
            is_done: false,
            is_page: false,
            redirects: 0,
            depth: 0,
            attempts: 0,
            opening: None,
            decoder: None,
            finder: None,
            seen: 0,
            content_bytes: 0,
            content: Vec::new(),
        }
    }

    /// Decodes new bytes of the body; returns the findings in a document.
    pub(super) fn read(&mut self, response: &Response) -> Vec<Found> {
        let coding = response.field("content-encoding");
        let new = || Decoder::new(coding, MAX_CONTENT_BYTES);
        let decoder = self.decoder.get_or_insert_with(new);
        let content = decoder.push(response.body.get(self.seen..).unwrap_or_default());
        self.seen = response.body.len();
        self.content_bytes += content.len() as u64;
        if matches!(self.resource.kind, Kind::Document | Kind::Stylesheet) {
            self.content.extend_from_slice(&content);
        }
        if !self.is_page || !is_html(response) {
            return Vec::new();
        }
        if self.finder.is_none() {
            // Without a thread the page has no more resources than itself.
            self.finder = Finder::new().ok();
        }
        let finder = self.finder.as_mut();
        finder.map_or_else(Vec::new, |finder| finder.push(&content))
    }

    /// Notes the length of the content, if all of it could be decoded.
    pub(super) fn note_content(&mut self, response: &Response) {
        let is_decoded = self.decoder.take().is_some_and(Decoder::finish);
        let is_whole = response.body.len() as u64 == response.body_bytes && is_decoded;
        self.resource.content_bytes = is_whole.then_some(self.content_bytes);
    }

    /// Returns whether it is a style sheet that browsers apply. They ignore one with another content type.
    pub(super) fn is_style(&self) -> bool {
        let resource = &self.resource;
        let is_css = is_type(&resource.mime_type, &["", "text/css"]);
        resource.kind == Kind::Stylesheet && resource.status == 200 && is_css
    }

    /// Records a response and converts its times to phases; `start_ns` is the start of the visit.
    pub(super) fn record_response(&mut self, response: &Response, start_ns: u64) {
        let resource = &mut self.resource;
        resource.status = response.status;
        resource.response_fields = response.fields.clone();
        resource.head_bytes = Some(response.head_bytes);
        resource.body_bytes = Some(response.body_bytes);
        resource.mime_type = response
            .field("content-type")
            .unwrap_or_default()
            .to_owned();
        let ms = |ns: u64| ns.saturating_sub(start_ns) as f64 / 1e6;
        let pieces = response.pieces.iter().map(|piece| Piece {
            at_ms: ms(piece.at),
            bytes: piece.bytes,
        });
        resource.pieces = pieces.collect();
        resource.start_ms = ms(self.wanted_ns);
        let phases = self.phases(response);
        self.resource.phases = phases;
        self.is_done = true;
    }

    /// Records a failure, with the received part of the response.
    pub(super) fn record_failure(&mut self, failure: &Failure, start_ns: u64, now_ns: u64) {
        if let Some(partial) = &failure.partial {
            let mut partial = (**partial).clone();
            partial.end = now_ns;
            self.record_response(&partial, start_ns);
        } else {
            let ms = |ns: u64| ns as f64 / 1e6;
            self.resource.start_ms = ms(self.wanted_ns.saturating_sub(start_ns));
            self.resource.phases.queued_ms = Some(ms(now_ns.saturating_sub(self.wanted_ns)));
        }
        self.resource.error = Some(failure.message.clone());
        self.is_done = true;
    }

    /// The phases, which together are the time from when it was wanted to its end.
    fn phases(&self, response: &Response) -> Phases {
        // Work that ended before the request is no part of its time.
        let wanted = self.wanted_ns;
        let took = |(from, to): (u64, u64)| to.max(wanted).saturating_sub(from.max(wanted));
        let opening = self.opening;
        let dns = opening.and_then(|opening| opening.dns).map(took);
        let connect = opening.map(|opening| took(opening.connect));
        let tls = opening.and_then(|opening| opening.tls).map(took);
        let sent = response.sent.max(response.asked);
        let head = response.head.max(sent);
        let send = took((response.asked, sent));
        let wait = took((sent, head));
        let receive = took((head, response.end.max(head)));
        let all = took((wanted, response.end.max(head)));
        let known = [dns, connect, tls].into_iter().flatten().sum::<u64>() + send + wait + receive;
        let ms = |ns: u64| Some(ns as f64 / 1e6);
        Phases {
            queued_ms: ms(all.saturating_sub(known)),
            dns_ms: dns.and_then(ms),
            connect_ms: connect.and_then(ms),
            tls_ms: tls.and_then(ms),
            send_ms: ms(send),
            wait_ms: ms(wait),
            receive_ms: ms(receive),
        }
    }
}

/// Returns whether a response is a document with references: HTML, or without a content type.
fn is_html(response: &Response) -> bool {
    let kind = response.field("content-type").unwrap_or_default();
    let is_one = is_type(kind, &["", "text/html", "application/xhtml+xml"]);
    is_one && !(300..400).contains(&response.status)
}

/// Returns whether a `Content-Type` is one of `types`.
fn is_type(kind: &str, types: &[&str]) -> bool {
    let kind = kind.split(';').next().unwrap_or_default().trim();
    types.iter().any(|one| kind.eq_ignore_ascii_case(one))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn row(wanted_ms: u64, opening: Option<Opening>) -> Row {
        let url = Url::parse("http://h/").expect("a URL");
        let mut row = Row::new(url, Kind::Image, None, wanted_ms * MS);
        row.opening = opening;
        let response = Response {
            asked: 150 * MS,
            sent: 151 * MS,
            head: 170 * MS,
            end: 190 * MS,
            status: 200,
            ..Response::default()
        };
        row.record_response(&response, 100 * MS);
        row
    }

    #[test]
    fn the_length_of_a_content_is_known_up_to_the_limit() {
        for (more, expected) in [(0, Some(MAX_CONTENT_BYTES as u64)), (1, None)] {
            let body = vec![b'a'; MAX_CONTENT_BYTES + more];
            let response = Response {
                body_bytes: body.len() as u64,
                body,
                ..Response::default()
            };
            let mut row = row(110, None);
            assert!(row.read(&response).is_empty(), "an image names no others");
            row.note_content(&response);
            assert_eq!(row.resource.content_bytes, expected, "{more} more");
        }
    }

    #[test]
    fn phases_are_the_whole_time_without_a_gap() {
        let opening = Opening {
            dns: Some((112 * MS, 120 * MS)),
            connect: (120 * MS, 130 * MS),
            tls: Some((130 * MS, 149 * MS)),
        };
        let phases = row(110, Some(opening)).resource.phases;
        let expected = [3.0, 8.0, 10.0, 19.0, 1.0, 19.0, 20.0];
        assert_eq!(phases.all(), expected.map(Some));
        // Wanted while the connection was being opened.
        let late = row(140, Some(opening)).resource;
        let expected = [1.0, 0.0, 0.0, 9.0, 1.0, 19.0, 20.0];
        assert_eq!(late.phases.all(), expected.map(Some));
        assert_eq!(
            (late.start_ms, late.first_byte_ms(), late.end_ms()),
            (40.0, 70.0, 90.0)
        );
        let reused = row(105, None).resource.phases;
        let expected = [
            Some(45.0),
            None,
            None,
            None,
            Some(1.0),
            Some(19.0),
            Some(20.0),
        ];
        assert_eq!(reused.all(), expected);
    }

    #[test]
    fn style_sheets_of_another_type_are_none() {
        let mut row = row(0, None);
        row.resource.kind = Kind::Stylesheet;
        for (kind, is_style) in [
            ("", true),
            ("Text/CSS; charset=utf-8", true),
            ("text/html", false),
        ] {
            row.resource.mime_type = kind.to_owned();
            assert_eq!(row.is_style(), is_style, "{kind}");
        }
    }

    #[test]
    fn a_failure_keeps_what_has_come() {
        let url = Url::parse("http://h/").expect("a URL");
        let mut failed = Row::new(url.clone(), Kind::Image, None, 110 * MS);
        let failure = Failure::new(crate::fetch::FailureCause::Closed, "it is gone");
        failed.record_failure(&failure, 100 * MS, 130 * MS);
        assert_eq!(failed.resource.error.as_deref(), Some("it is gone"));
        assert_eq!(
            (failed.resource.status, failed.resource.end_ms()),
            (0, 30.0)
        );
        let partial = Response {
            asked: 111 * MS,
            sent: 111 * MS,
            head: 115 * MS,
            status: 200,
            body_bytes: 7,
            ..Response::default()
        };
        let mut failed = Row::new(url, Kind::Image, None, 110 * MS);
        failed.record_failure(&failure.with(Some(Box::new(partial))), 100 * MS, 130 * MS);
        assert_eq!(
            (failed.resource.status, failed.resource.body_bytes),
            (200, Some(7))
        );
        assert_eq!(
            (failed.resource.first_byte_ms(), failed.resource.end_ms()),
            (15.0, 30.0)
        );
        assert!(failed.resource.error.is_some());
    }
}
