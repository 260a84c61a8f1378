//! Events of the engine during a response, passed on to the exchange.

use engines::http::{BodyLength, ResponseHead};
use server_upstream::request::UpstreamEvent;

use super::engine::Event;
use super::state::{ActiveAttempt, Ending, Receiving, Sending};

/// Sends received events to the exchange.
pub(super) fn tell(a: &mut ActiveAttempt, now_ms: u64) -> Result<(), Ending> {
    while let Some(event) = a.tools.engine.event() {
        let event = match event {
            Event::Upstream(event) => event,
            Event::Failed(failure) => return Err(Ending::Failed(failure)),
        };
        match &event {
            UpstreamEvent::Head(head, _) => {
                a.call().note(|facts| facts.head_ms = Some(now_ms));
                a.response = Receiving::Body(body_left(head));
            }
            UpstreamEvent::Data(chunk) => {
                if let Receiving::Body(Some(left)) = &mut a.response {
                    *left = left.saturating_sub(chunk.len());
                }
            }
            UpstreamEvent::Upgraded => {
                a.response = Receiving::Tunnel;
                a.request = Sending::Body;
            }
            UpstreamEvent::End if a.response == Receiving::Tunnel => {
                a.response = Receiving::TunnelEnded;
                a.call().note(|facts| facts.ended_ms = Some(now_ms));
            }
            UpstreamEvent::End => return Err(Ending::Complete),
            _ => {}
        }
        a.call().tell(event);
    }
    Ok(())
}

fn body_left(head: &ResponseHead) -> Option<u64> {
    match head.body {
        BodyLength::None => Some(0),
        BodyLength::Length(bytes) => Some(bytes),
        BodyLength::Unknown => None,
    }
}

/// Bytes of one read.
pub(super) const READ_BYTES: usize = 64 << 10;
