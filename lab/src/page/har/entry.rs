//! An entry of an archive: one request and its response.

use std::net::{IpAddr, SocketAddr};

use serde::Deserialize;

use super::lenient::{Either, Element, List, Object, TextOrObject, Value};
use super::{ENTRIES_MAX, FIELDS_MAX, Fault, PIECES_MAX, names};
use crate::client::Url;
use crate::page::resource::{Phases, Piece, Resource};

/// An entry, read independently of the others.
#[derive(Debug)]
pub(super) struct Entry {
    /// Its page.
    pub(super) pageref: Option<String>,
    /// When it began, ms since 1970 in UTC.
    pub(super) started_unix_ms: f64,
    /// `_startMs`, which makes it one of ours.
    pub(super) start_ms: Option<f64>,
    /// When the request was sent after the page's start, in archives of WebPageTest, ms.
    pub(super) load_start_ms: Option<f64>,
    /// The cause of the request.
    pub(super) initiator: Initiator,
    /// Id of its connection.
    pub(super) connection: Option<String>,
    /// The resource, but for its start, its initiator and its connection.
    pub(super) resource: Resource,
}

impl Entry {
    /// Whether it was written here.
    pub(super) const fn is_ours(&self) -> bool {
        self.start_ms.is_some()
    }
}

impl Element for Entry {
    type Raw = Object<RawEntry>;
    const MOST: usize = ENTRIES_MAX;
    const NAME: &'static str = "entries";

    fn new(raw: Object<RawEntry>) -> Result<Self, Fault> {
        let raw = raw.required("")?;
        let started = raw.started_date_time.date("startedDateTime")?;
        let started_unix_ms =
            started.ok_or_else(|| Fault::new("startedDateTime", "it is missing"))?;
        let start_ms = raw.start_ms.number("_startMs")?;
        let timings = raw.timings.optional("timings")?;
        // The sum of all phases may exceed the limit of one phase. It is read only if there are no phases.
        let time_ms = match &timings {
            Some(_) => None,
            None => raw.time.time_ms("time")?,
        };
        let phases = timings.map(|timings| phases(timings, start_ms.is_some()));
        let phases = phases
            .transpose()
            .map_err(|fault| fault.within("timings"))?;
        let request = raw.request.required("request")?;
        let mut resource = request.read().map_err(|fault| fault.within("request"))?;
        resource.phases = phases.unwrap_or(Phases {
            wait_ms: time_ms,
            ..Phases::default()
        });
        let connection = [raw.connection, raw.connection_id, raw.socket];
        let connection = connection.into_iter().map(|name| name.text("connection"));
        let connection = connection.collect::<Result<Vec<_>, _>>()?;
        let response = raw.response.optional("response")?.unwrap_or_default();
        response
            .read(&mut resource, start_ms.is_some())
            .map_err(|fault| fault.within("response"))?;
        if let Some(name) = raw.resource_type.any_text() {
            resource.kind = names::kind(&name);
        }
        resource.from_cache |= raw.from_cache.is_true() || raw.from_cache_of_firefox.is_true();
        resource.priority = raw.priority.any_text();
        resource.pieces = raw.chunks.elements("_chunks")?;
        let port = raw.server_port.number("_serverPort")?;
        let address = raw.server_ip_address.text("serverIPAddress")?;
        let remote = raw.remote.known_text("_remote")?;
        resource.remote = remote.or_else(|| remote_of(&address?, port, &resource.url));
        Ok(Self {
            pageref: raw.pageref.known_text("pageref")?,
            started_unix_ms,
            start_ms,
            // A text that is no number is not WebPageTest's.
            load_start_ms: raw.load_start.number("").ok().flatten(),
            initiator: raw.initiator.0,
            connection: connection
                .into_iter()
                .flatten()
                .find(|name| !name.is_empty()),
            resource,
        })
    }
}

/// An entry in the file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct RawEntry {
    pageref: Value,
    started_date_time: Value,
    time: Value,
    request: Object<RawRequest>,
    response: Object<RawResponse>,
    timings: Object<RawTimings>,
    #[serde(rename = "serverIPAddress")]
    server_ip_address: Value,
    connection: Value,
    #[serde(rename = "_connectionId")]
    connection_id: Value,
    #[serde(rename = "_socket")]
    socket: Value,
    #[serde(rename = "_serverPort")]
    server_port: Value,
    #[serde(rename = "_remote")]
    remote: Value,
    #[serde(rename = "_startMs")]
    start_ms: Value,
    #[serde(rename = "_load_start")]
    load_start: Value,
    #[serde(rename = "_priority")]
    priority: Value,
    #[serde(rename = "_resourceType")]
    resource_type: Value,
    #[serde(rename = "_fromCache")]
    from_cache: Value,
    #[serde(rename = "fromCache")]
    from_cache_of_firefox: Value,
    #[serde(rename = "_initiator")]
    initiator: Either<Initiator>,
    #[serde(rename = "_chunks")]
    chunks: List<Piece>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RawRequest {
    method: Value,
    url: Value,
    headers: List<Field>,
}

impl RawRequest {
    fn read(self) -> Result<Resource, Fault> {
        let url = self.url.text("url")?;
        let mut url = url.ok_or_else(|| Fault::new("url", "it is missing"))?;
        url.truncate(url.find('#').unwrap_or(url.len()));
        let method = self.method.known_text("method")?;
        Ok(Resource {
            url,
            method: method.unwrap_or_else(|| "GET".to_owned()),
            request_fields: fields(self.headers)?,
            ..Resource::default()
        })
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RawResponse {
    status: Value,
    http_version: Value,
    headers: List<Field>,
    content: Object<RawContent>,
    headers_size: Value,
    body_size: Value,
    #[serde(rename = "_transferSize")]
    transfer_size: Value,
    #[serde(rename = "_error")]
    error: Either<Failed>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RawContent {
    size: Value,
    mime_type: Value,
}

impl RawResponse {
    fn read(self, resource: &mut Resource, is_ours: bool) -> Result<(), Fault> {
        let status = self.status.number("status")?.unwrap_or_default();
        let error = self.error.0.0.filter(|text| !text.is_empty());
        let is_status = STATUSES.contains(&status) && status.fract() == 0.0;
        resource.status = if is_status { status as u16 } else { 0 };
        // Some programs report failures as statuses of their own.
        let strange = (!is_status && status > 0.0).then(|| format!("status {status}"));
        resource.error = error.or(strange);
        let version = self.http_version.text("httpVersion")?.unwrap_or_default();
        resource.protocol = names::protocol(&version);
        resource.response_fields = fields(self.headers)?;
        let content = self.content.optional("content")?.unwrap_or_default();
        resource.content_bytes = content.size.bytes("content.size")?;
        let mime_type = content.mime_type.text("content.mimeType")?;
        resource.mime_type = mime_type.unwrap_or_default();
        resource.kind = names::kind_of_content(&resource.mime_type);
        resource.head_bytes = self.headers_size.bytes("headersSize")?;
        let body_bytes = self.body_size.bytes("bodySize")?;
        let transferred = self.transfer_size.bytes("_transferSize")?;
        // With compressed heads, Chrome reports only the sum of head and body.
        let without_head =
            transferred.map(|all| all.saturating_sub(resource.head_bytes.unwrap_or(0)));
        resource.body_bytes = body_bytes.or(without_head);
        // Older versions of Chrome mark a response from the cache only in this way.
        resource.from_cache = !is_ours
            && transferred == Some(0)
            && resource.status == OK
            && resource.content_bytes.is_some_and(|bytes| bytes > 0);
        Ok(())
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RawTimings {
    blocked: Value,
    dns: Value,
    connect: Value,
    ssl: Value,
    send: Value,
    wait: Value,
    receive: Value,
    #[serde(rename = "_tcp")]
    tcp: Value,
    #[serde(rename = "_absent")]
    absent: List<String>,
}

fn phases(raw: RawTimings, is_ours: bool) -> Result<Phases, Fault> {
    // Our archives have both parts of the sum as members of their own.
    let connect_ms = match is_ours {
        true => None,
        false => raw.connect.time_ms("connect")?,
    };
    let tls_ms = raw.ssl.time_ms("ssl")?;
    let mut phases = Phases {
        queued_ms: raw.blocked.time_ms("blocked")?,
        dns_ms: raw.dns.time_ms("dns")?,
        connect_ms: raw.tcp.time_ms("_tcp")?,
        tls_ms,
        send_ms: raw.send.time_ms("send")?,
        wait_ms: raw.wait.time_ms("wait")?,
        receive_ms: raw.receive.time_ms("receive")?,
    };
    for name in raw.absent.elements("_absent")? {
        match name.as_str() {
            "send" => phases.send_ms = None,
            "wait" => phases.wait_ms = None,
            "receive" => phases.receive_ms = None,
            _ => {}
        }
    }
    if !is_ours {
        // Firefox and others write 0 for a phase that did not take place. No phase of a network takes 0 ms.
        let positive = |ms: Option<f64>| ms.filter(|ms| *ms > 0.0);
        phases.dns_ms = positive(phases.dns_ms);
        phases.tls_ms = positive(tls_ms);
        phases.connect_ms = positive(connect_ms.map(|ms| ms - tls_ms.unwrap_or_default()));
    }
    Ok(phases)
}

/// A field of a head.
#[derive(Debug)]
struct Field(String, String);

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RawField {
    name: Value,
    value: Value,
}

impl Element for Field {
    type Raw = Object<RawField>;
    const MOST: usize = FIELDS_MAX;
    const NAME: &'static str = "fields";

    fn new(raw: Object<RawField>) -> Result<Self, Fault> {
        let raw = raw.required("")?;
        let name = raw.name.text("name")?;
        let name = name.ok_or_else(|| Fault::new("name", "it is missing"))?;
        Ok(Self(name, raw.value.text("value")?.unwrap_or_default()))
    }
}

fn fields(list: List<Field>) -> Result<Vec<(String, String)>, Fault> {
    let fields = list.elements("headers")?.into_iter();
    Ok(fields.map(|Field(name, value)| (name, value)).collect())
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RawPiece {
    ts: Value,
    bytes: Value,
}

impl Element for Piece {
    type Raw = Object<RawPiece>;
    const MOST: usize = PIECES_MAX;
    const NAME: &'static str = "pieces";

    fn new(raw: Object<RawPiece>) -> Result<Self, Fault> {
        let raw = raw.required("")?;
        let at_ms = raw.ts.time_ms("ts")?;
        Ok(Self {
            at_ms: at_ms.ok_or_else(|| Fault::new("ts", "it is missing"))?,
            bytes: raw.bytes.bytes("bytes")?.unwrap_or_default(),
        })
    }
}

impl Element for String {
    type Raw = Value;
    const MOST: usize = super::NOTES_MAX;
    const NAME: &'static str = "texts";

    fn new(raw: Value) -> Result<Self, Fault> {
        Ok(raw.text("")?.unwrap_or_default())
    }
}

/// The resource that made the page ask for another: its URL, or its place. Anything else is passed over.
#[derive(Debug, Default)]
pub(super) struct Initiator {
    /// Its URL.
    pub(super) url: Option<String>,
    /// Its place among the entries of the page.
    pub(super) index: Option<f64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RawInitiator {
    url: Value,
    #[serde(rename = "_index")]
    index: Value,
    stack: Object<RawStack>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RawStack {
    call_frames: List<CallFrame>,
}

/// The script of a call.
#[derive(Debug)]
struct CallFrame(Option<String>);

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RawCallFrame {
    url: Value,
}

impl Element for CallFrame {
    type Raw = Object<RawCallFrame>;
    const MOST: usize = FIELDS_MAX;
    const NAME: &'static str = "calls";

    fn new(raw: Object<RawCallFrame>) -> Result<Self, Fault> {
        Ok(Self(raw.required("")?.url.text("url")?))
    }
}

impl TextOrObject for Initiator {
    type Raw = RawInitiator;

    fn of_text(text: Value) -> Self {
        Self {
            url: text.any_text().filter(|url| !url.is_empty()),
            index: None,
        }
    }

    fn of_object(raw: RawInitiator) -> Self {
        let own = raw.url.any_text();
        let stack = raw.stack.optional("").ok().flatten().unwrap_or_default();
        let calls = stack.call_frames.elements("").unwrap_or_default();
        let called = calls.into_iter().find_map(|call| call.0);
        Self {
            url: own.or(called).filter(|url| !url.is_empty()),
            index: raw.index.number("").ok().flatten(),
        }
    }
}

/// Why there is no response: a text, or an object of node's with a message or a code.
#[derive(Debug, Default)]
struct Failed(Option<String>);

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RawFailed {
    message: Value,
    code: Value,
}

impl TextOrObject for Failed {
    type Raw = RawFailed;

    fn of_text(text: Value) -> Self {
        Self(text.any_text())
    }

    fn of_object(raw: RawFailed) -> Self {
        let texts = [raw.message, raw.code].into_iter();
        let mut texts = texts.filter_map(Value::any_text);
        Self(Some(texts.next().unwrap_or_else(|| "failed".to_owned())))
    }
}

/// Returns address and port; without a port, that of the URL.
fn remote_of(address: &str, port: Option<f64>, url: &str) -> Option<String> {
    let address = address.trim();
    if address.is_empty() {
        return None;
    }
    let bare = address.trim_start_matches('[').trim_end_matches(']');
    let Ok(ip) = bare.parse::<IpAddr>() else {
        return Some(address.to_owned());
    };
    let port = port.filter(|port| (1.0..=65_535.0).contains(port));
    let port = port.map(|port| port as u16);
    let port = port.or_else(|| Url::parse(url).ok().map(|url| url.port))?;
    Some(SocketAddr::new(ip, port).to_string())
}

/// Numbers that a status may be.
const STATUSES: std::ops::RangeInclusive<f64> = 0.0..=999.0;
const OK: u16 = 200;
