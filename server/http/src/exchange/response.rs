//! The response as it is sent.

use engines::http::ResponseHead;

use super::part::part;
use super::{Ctx, EarlyResponses, Exchange, Rate};

/// A function that is called when the body has ended.
pub type OnEnd = fn(&mut Exchange, &mut Ctx<'_>);

part! {
    /// The response as it is sent.
    pub struct ResponseState() {
        /// The response head.
        pub head: ResponseHead => clear,
        /// Interim responses and pushes that leave ahead of it.
        pub early_responses: Option<Box<EarlyResponses>> => rare,
        /// Bytes on the wire of the head and of early responses.
        pub header_bytes: u64,
        /// All of the response was sent.
        pub completed: bool,
        /// Bytes sent for this exchange.
        pub bytes_sent: u64,
        /// Called when the body has ended, before trailers are sent.
        pub on_end: Option<OnEnd>,
        /// The rate limit of the response.
        pub rate: Rate,
    }
}
