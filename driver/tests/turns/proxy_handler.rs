//! A handler that passes request bodies to an imaginary server, which echoes them.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use engines::http::{Chunk, ResponseHead};
use server_base::waker::Waker;
use server_http::exchange::{BodyRead, BodySource, Ctx, Exchange, State, Wait};
use server_http::module::Content;
use server_http::reply;
use server_http::request_body::stream::{Piece, begin, open_tunnel, take};

thread_local! {
    /// Bytes that the server still accepts.
    static ROOM: Cell<u64> = const { Cell::new(u64::MAX) };
    /// Number of accepted bytes, and of calls of the handler.
    static TAKEN: Cell<(u64, usize)> = const { Cell::new((0, 0)) };
    static WAKER: RefCell<Option<Waker>> = const { RefCell::new(None) };
}

/// Sets the number of bytes that the server accepts, and wakes the exchange.
pub(crate) fn set_room(bytes: u64) {
    ROOM.set(bytes);
    wake();
}

/// Wakes the latest exchange.
pub(crate) fn wake() {
    WAKER.with_borrow(|waker| waker.iter().for_each(Waker::wake));
}

/// Returns the number of accepted bytes, and of calls of the handler, since the last call.
pub(crate) fn taken() -> (u64, usize) {
    TAKEN.take()
}

/// Data of the server that was not pulled yet.
#[derive(Clone, Default)]
struct Sent(Rc<RefCell<VecDeque<BodyRead>>>);

impl BodySource for Sent {
    fn next(&mut self, _: &mut Ctx<'_>) -> BodyRead {
        let next = self.0.borrow_mut().pop_front();
        next.unwrap_or(BodyRead::Pending(Wait::woken()))
    }
}

/// Passes the body on; the first word after `/pass` in the URI selects a variant.
pub(crate) fn pass(x: &mut Exchange, cx: &mut Ctx<'_>, words: &[&str]) -> Content {
    if x.extensions.get::<Sent>().is_none() {
        let waker = x.waker(cx);
        WAKER.set(Some(waker));
        x.body.on_arrival = Some(pass_on);
        x.extensions.push(Sent::default());
    }
    x.progress.ignore_abort = words.contains(&"ignore");
    match words[0] {
        // The head is sent at once, before any byte of the body.
        "echo" => {
            begin(x, cx);
            pass_on(x, cx);
            answer(x, cx, 200)
        }
        // The head comes with the first piece, or with its error.
        "first" => {
            begin(x, cx);
            match pass_pieces(x, cx) {
                Some(status) => Content::Status(status),
                None if sent(x).0.borrow().is_empty() => wait(x),
                None => answer(x, cx, 200),
            }
        }
        // There is no response.
        "never" => wait(x),
        // The response is complete, independent of the request body.
        "short" => {
            let pieces = [BodyRead::Chunk(Chunk::Static(b"short")), BodyRead::End];
            sent(x).0.borrow_mut().extend(pieces);
            begin(x, cx);
            set_room(0);
            answer(x, cx, 200)
        }
        // A large response that the server ends at the first byte of the body.
        "cut" => {
            begin(x, cx);
            x.body.on_arrival = Some(cut);
            answer(x, cx, 200)
        }
        // The response breaks after a piece, or at once.
        "broken" => {
            let first = BodyRead::Chunk(Chunk::Static(b"whole"));
            let first = words.get(1).is_none().then_some(first);
            let pieces = first.into_iter().chain([BodyRead::Broken]);
            sent(x).0.borrow_mut().extend(pieces);
            answer(x, cx, 200)
        }
        // At each run, sends the given number of interim responses.
        "hints" => {
            let number = words[1].parse().expect("a number");
            for at in 0..number {
                let mut head = ResponseHead {
                    status: 103,
                    ..ResponseHead::default()
                };
                head.push(b"Link", format!("</{at}>").as_bytes());
                x.hint(head);
            }
            wait(x)
        }
        "tunnel" => {
            open_tunnel(x, cx);
            x.reply.fields.push(b"Upgrade", b"echo");
            answer(x, cx, 101)
        }
        _ => Content::Status(404),
    }
}

fn wait(x: &mut Exchange) -> Content {
    x.progress.state = State::Waiting(Wait::woken());
    Content::Wait
}

fn answer(x: &mut Exchange, cx: &mut Ctx<'_>, status: u16) -> Content {
    x.body.source = Some(Box::new(sent(x)));
    x.reply.status = status;
    reply::send(x, cx, None);
    Content::Sent
}

fn sent(x: &Exchange) -> Sent {
    x.extensions.get::<Sent>().cloned().expect("it was begun")
}

fn cut(x: &mut Exchange, _: &mut Ctx<'_>) {
    let piece = BodyRead::Chunk(Chunk::Owned(vec![b'y'; CUT_BYTES]));
    sent(x).0.borrow_mut().extend([piece, BodyRead::End]);
    x.body.on_arrival = None;
}

fn pass_on(x: &mut Exchange, cx: &mut Ctx<'_>) {
    if pass_pieces(x, cx).is_some() {
        sent(x).0.borrow_mut().push_back(BodyRead::Broken);
    }
}

/// Takes as many bytes as the server accepts. Returns the status of an error.
fn pass_pieces(x: &mut Exchange, cx: &mut Ctx<'_>) -> Option<u16> {
    let sent = sent(x);
    TAKEN.set((TAKEN.get().0, TAKEN.get().1 + 1));
    while ROOM.get() > 0 {
        match take(x, cx) {
            Piece::Chunk(chunk) => {
                ROOM.set(ROOM.get().saturating_sub(chunk.len()));
                TAKEN.set((TAKEN.get().0 + chunk.len(), TAKEN.get().1));
                sent.0.borrow_mut().push_back(BodyRead::Chunk(chunk));
            }
            Piece::Later => return None,
            Piece::End => {
                sent.0.borrow_mut().push_back(BodyRead::End);
                return None;
            }
            Piece::Failed(status) => return Some(status),
        }
    }
    None
}

/// Length of the response of `/pass/cut`, bytes.
pub(crate) const CUT_BYTES: usize = 200_000;
