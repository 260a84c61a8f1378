//! What has been received of a request besides its head.

use super::part::part;
use crate::request_body::RequestBody;

part! {
    /// The request body, and how much was received.
    pub struct RequestInput() {
        /// What has come of the request body, where there is one and the response is not decided yet.
        pub(crate) body: Option<Box<RequestBody>>,
        /// Bytes of the request received, head and body.
        pub bytes: u64,
        /// The request body was found too large: it is dropped, whatever the location of the error page says of it.
        pub too_large: bool,
    }
}
