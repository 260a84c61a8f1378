//! The response to the request of a fetch, as events of its mailbox. Redirects are a status like others.

use engines::http::{BodyLength, FieldId, ResponseHead};
use server_base::background_fetch::FetchRequest;
use server_upstream::request::{Failure, UpstreamEvent, UpstreamRequest};

use super::attempt::TIMED_OUT;

/// A response while it is received.
#[derive(Debug)]
pub(super) struct Response {
    media_type: &'static str,
    bytes_max: usize,
    /// The length of the body is announced, and within the limit.
    has_length: bool,
    body: Vec<u8>,
}

impl Response {
    /// Nothing has come yet.
    pub(super) fn new(request: &FetchRequest) -> Self {
        Self {
            media_type: request.media_type,
            bytes_max: request.response_bytes_max,
            has_length: false,
            body: Vec::new(),
        }
    }

    /// Takes the events of the request; returns the body once it is complete. Bytes after a body with a length are ignored.
    ///
    /// # Errors
    /// The text for the log, in nginx's words, with the server's role: there will be no body.
    pub(super) fn receive(
        &mut self,
        request: &UpstreamRequest,
        peer: &str,
    ) -> Result<Option<Vec<u8>>, String> {
        let received_bytes = request.facts().received_bytes;
        let bytes_max = self.bytes_max;
        let too_long = || format!("{peer} sent more than {bytes_max} bytes");
        let is_too_long = received_bytes > self.bytes_max as u64;
        let mut is_whole = false;
        while let Some(event) = request.next() {
            match event {
                UpstreamEvent::Head(head, _) => self.check(&head, peer)?,
                UpstreamEvent::Data(chunk) => self.body.extend_from_slice(chunk.bytes()),
                UpstreamEvent::End => is_whole = true,
                // The engine, which has the same limit for a head, may have met it first.
                UpstreamEvent::Failed(error) if is_too_long && is_invalid(&error.failure) => {
                    return Err(too_long());
                }
                UpstreamEvent::Failed(error) => return Err(message(&error.failure, peer)),
                // Interim responses mean nothing here.
                _ => {}
            }
        }
        if is_too_long && !(is_whole && self.has_length) {
            return Err(too_long());
        }
        Ok(is_whole.then(|| std::mem::take(&mut self.body)))
    }

    fn check(&mut self, head: &ResponseHead, peer: &str) -> Result<(), String> {
        if head.status != 200 {
            return Err(format!("{peer} sent status {}", head.status));
        }
        let fields = head.fields.iter();
        for field in fields.filter(|field| field.id == FieldId::ContentType) {
            let value = head.bytes(field.value);
            if !value.eq_ignore_ascii_case(self.media_type.as_bytes()) {
                let value = String::from_utf8_lossy(value);
                let value = value.escape_debug();
                return Err(format!(
                    "{peer} sent invalid \"Content-Type\" header: \"{value}\""
                ));
            }
        }
        match head.body {
            BodyLength::Length(bytes) if bytes > self.bytes_max as u64 => {
                Err(format!("{peer} sent more than {} bytes", self.bytes_max))
            }
            BodyLength::Length(_) => {
                self.has_length = true;
                Ok(())
            }
            // An HTTP/1.0 request must not be answered with a transfer coding (RFC 9112 section 6.1).
            BodyLength::Unknown => Err(format!("{peer} sent invalid response")),
            _ => Ok(()),
        }
    }
}

fn is_invalid(failure: &Failure) -> bool {
    matches!(failure, Failure::Invalid(_) | Failure::InvalidDetail(_))
}

/// The message for the log.
fn message(failure: &Failure, peer: &str) -> String {
    match failure {
        Failure::Socket { call, errno } => {
            let error = std::io::Error::from_raw_os_error(*errno);
            // As in nginx, where requests of this kind are sent with send().
            let call = if *call == "writev()" { "send()" } else { call };
            format!("{call} failed ({})", sys::os_error(&error))
        }
        Failure::NoConnection => "there is no connection for the request".to_owned(),
        Failure::TimedOut => format!("{peer} timed out ({TIMED_OUT})"),
        Failure::Closed => format!("{peer} prematurely closed connection"),
        Failure::Invalid(_) | Failure::InvalidDetail(_) => format!("{peer} sent invalid response"),
        Failure::Handshake(text) | Failure::Certificate(text) => text.to_string(),
        Failure::Unsendable(_) => "the request cannot be sent".to_owned(),
    }
}
