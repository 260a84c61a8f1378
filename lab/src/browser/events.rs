//! Parameters of the events that this client reads, with the names of the protocol. Other parameters are ignored.
//!
//! Times are seconds of the monotonic clock. Times of a [`Timing`] are milliseconds since its `request_time`.

use serde::Deserialize;
use serde_json::{Map, Value};

/// Fields of a request or response: values that repeat are joined by a line feed.
pub(super) type Headers = Map<String, Value>;

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct RequestWillBeSent {
    pub(super) request_id: String,
    pub(super) loader_id: String,
    pub(super) frame_id: String,
    pub(super) request: Request,
    pub(super) timestamp: f64,
    /// Seconds since 1970.
    pub(super) wall_time: f64,
    pub(super) initiator: Initiator,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) redirect_response: Option<Response>,
    pub(super) redirect_has_extra_info: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Request {
    pub(super) url: String,
    pub(super) method: String,
    pub(super) headers: Headers,
    pub(super) initial_priority: Option<String>,
}

/// The cause of a request.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Initiator {
    pub(super) url: Option<String>,
    pub(super) request_id: Option<String>,
    pub(super) stack: Stack,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Stack {
    pub(super) call_frames: Vec<CallFrame>,
    /// Stack of the code that scheduled this code.
    pub(super) parent: Option<Box<Self>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CallFrame {
    pub(super) url: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ResponseReceived {
    pub(super) request_id: String,
    pub(super) timestamp: f64,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) response: Response,
    pub(super) has_extra_info: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Response {
    pub(super) status: f64,
    pub(super) headers: Headers,
    pub(super) mime_type: String,
    pub(super) connection_id: f64,
    #[serde(rename = "remoteIPAddress")]
    pub(super) remote_ip_address: String,
    pub(super) remote_port: Option<u16>,
    pub(super) from_disk_cache: bool,
    pub(super) from_prefetch_cache: bool,
    /// Bytes received until now: those of the head, for redirects and cached responses of all.
    pub(super) encoded_data_length: f64,
    pub(super) timing: Option<Timing>,
    pub(super) protocol: String,
}

/// Times of a request in the network process, ms from `request_time`; negative for a phase that did not take place.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Timing {
    /// Seconds.
    pub(super) request_time: f64,
    pub(super) dns_start: f64,
    pub(super) dns_end: f64,
    /// With TLS.
    pub(super) connect_start: f64,
    pub(super) connect_end: f64,
    pub(super) ssl_start: f64,
    pub(super) ssl_end: f64,
    pub(super) send_start: f64,
    pub(super) send_end: f64,
    pub(super) receive_headers_start: f64,
    pub(super) receive_headers_end: f64,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            request_time: 0.0,
            dns_start: -1.0,
            dns_end: -1.0,
            connect_start: -1.0,
            connect_end: -1.0,
            ssl_start: -1.0,
            ssl_end: -1.0,
            send_start: -1.0,
            send_end: -1.0,
            receive_headers_start: -1.0,
            receive_headers_end: -1.0,
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct RequestExtraInfo {
    pub(super) request_id: String,
    pub(super) headers: Headers,
    pub(super) connect_timing: ConnectTiming,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ConnectTiming {
    /// When the network process got the request.
    pub(super) request_time: f64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ResponseExtraInfo {
    pub(super) request_id: String,
    pub(super) headers: Headers,
    /// Status on the wire, not that of a cached response validated by it.
    pub(super) status_code: f64,
    /// The head as received; only with HTTP/1.
    pub(super) headers_text: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct DataReceived {
    pub(super) request_id: String,
    pub(super) timestamp: f64,
    /// Bytes that the page got.
    pub(super) data_length: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct LoadingFinished {
    pub(super) request_id: String,
    pub(super) timestamp: f64,
    /// All bytes that were received for it.
    pub(super) encoded_data_length: f64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct LoadingFailed {
    pub(super) request_id: String,
    pub(super) timestamp: f64,
    pub(super) error_text: String,
    pub(super) blocked_reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ServedFromCache {
    pub(super) request_id: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct LifecycleEvent {
    pub(super) frame_id: String,
    pub(super) loader_id: String,
    pub(super) name: String,
    pub(super) timestamp: f64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ScreencastFrame {
    /// JPEG, in base64.
    pub(super) data: String,
    pub(super) session_id: u64,
    pub(super) metadata: FrameMetadata,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct FrameMetadata {
    /// Seconds since 1970.
    pub(super) timestamp: f64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct AttachedToTarget {
    pub(super) session_id: String,
    pub(super) waiting_for_debugger: bool,
}
