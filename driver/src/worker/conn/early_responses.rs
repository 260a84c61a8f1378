//! Early responses: interim responses leave whenever the exchange waits or with the head, promises with the head.
//!
//! Interim responses that were not sent before an error was decided are left out: they belong to the response that was meant.
//!
//! Source: RFC 8297; RFC 9110 section 15.2; RFC 9113 section 8.4.

use engines::http::ResponseHead;
use engines::{h1, h2};
use server_http::debug_http;
use server_http::exchange::{Exchange, State};
use server_http::phases::Phase;

/// Sends the interim responses of an exchange over HTTP/1.
#[cold]
pub(super) fn over_h1(x: &mut Exchange, engine: &mut h1::Conn) {
    while let Some(hints) = next_hints(x) {
        x.response.header_bytes += engine.send_interim(hints.status, Some(&hints));
    }
}

/// Sends the interim responses of an exchange over HTTP/2, and promises the pushes of its response.
#[cold]
pub(super) fn over_h2(x: &mut Exchange, engine: &mut h2::Conn, stream: u32) {
    while let Some(hints) = next_hints(x) {
        let before = engine.sent_bytes(stream);
        engine.send_interim(stream, hints.status, Some(&hints));
        x.response.header_bytes += engine.sent_bytes(stream) - before;
    }
    if x.progress.state != State::Responding {
        return;
    }
    let pushes = x.response.early_responses.take().map(|ahead| ahead.pushes);
    for target in pushes.into_iter().flatten() {
        debug_http!(x, "http2 push resource");
        x.response.header_bytes += engine.push(stream, &target, &x.head);
    }
}

/// Takes the next interim response that is to be sent now.
fn next_hints(x: &mut Exchange) -> Option<ResponseHead> {
    let judged = !matches!(x.progress.phase, Phase::Access | Phase::PostAccess);
    if !judged && x.progress.state != State::Responding {
        // Before access is granted, or while a refusal is withheld, hints would reveal parts of the page.
        return None;
    }
    if x.is_held() || x.route.err_status >= 400 {
        // The response is decided. Hints of one that is held back leave with it, an error has none.
        return None;
    }
    let hints = x.response.early_responses.as_mut()?.hints.pop_front()?;
    match x.progress.state {
        State::Waiting(_) => Some(hints),
        State::Responding if x.response.head.status < 400 => Some(hints),
        _ => None,
    }
}
