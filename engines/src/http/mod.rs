//! The vocabulary of HTTP messages, shared by all engines and the server.
//!
//! Heads keep their text in one arena and point into it with [`Span`]s, so a head is two
//! allocations that are reused from request to request. Bodies travel as [`Chunk`]s; the output of
//! one turn is an [`OutputQueue`]. The parsers for URIs, hosts, dates, ranges and entity tags work
//! on plain byte slices.
//!
//! Absent on purpose: sockets, clocks, and any knowledge of a configuration.

mod chunk;
mod class;
mod date;
mod decimal;
mod escape;
mod etag;
mod fault;
mod field;
mod field_id;
mod fields;
mod host;
mod length;
mod method;
mod output_queue;
pub mod probe;
mod protocol;
mod range;
mod request;
mod response;
mod status;
mod uri;
mod whitespace;

pub use chunk::{Chunk, FileHandle, FileRange, SharedBytes};
pub use class::is_token;
pub(crate) use class::is_token_byte;
pub use date::{Civil, civil, http_date, parse_http_date, parse_utc};
pub use decimal::{decimal, parse_decimal, push_decimal};
pub use escape::{Escape, escape, escape_html, unescape};
pub use etag::etag_matches;
pub use fault::Fault;
pub use field::{Field, OptionalSpan, Span};
pub use field_id::FieldId;
pub use fields::Fields;
pub(crate) use host::check_host;
pub use host::{BadHost, parse_host};
pub use length::parse_length;
pub use method::Method;
pub use output_queue::{Front, OutputQueue};
pub use protocol::{Protocol, Protocols, Version};
pub use range::{Ranges, UNLIMITED_RANGES, parse_range};
pub use request::{BodyLength, HeadNotes, RequestHead};
pub use response::ResponseHead;
pub(crate) use response::{EACH_BYTE, bytes_below, find_control, has_control};
pub use status::reason_phrase;
pub(crate) use status::wire_status;
pub use uri::{BadUri, ParsedTarget, normalize};
pub use whitespace::trim_ows;
pub(crate) use whitespace::{expects_continue, is_ows};
