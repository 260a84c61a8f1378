//! A handler that passes request bodies on like a proxy, to a server that sends them back.

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
    /// Bytes that the server still takes.
    static ROOM: Cell<u64> = const { Cell::new(u64::MAX) };
    /// Bytes that it has taken, and how often the handler was notified.
    static TAKEN: Cell<(u64, usize)> = const { Cell::new((0, 0)) };
    static WAKER: RefCell<Option<Waker>> = const { RefCell::new(None) };
}

/// From here on the server takes this many bytes; waiters for that are woken.
pub(crate) fn set_room(bytes: u64) {
    ROOM.set(bytes);
    wake();
}

/// Wakes the exchange that came last.
pub(crate) fn wake() {
    WAKER.with_borrow(|waker| waker.iter().for_each(Waker::wake));
}

/// Bytes taken and how often the handler was notified, since the last call.
pub(crate) fn taken() -> (u64, usize) {
    TAKEN.take()
}

/// Data that the server has sent and that was not pulled yet.
#[derive(Clone, Default)]
struct Sent(Rc<RefCell<VecDeque<BodyRead>>>);

impl BodySource for Sent {
    fn next(&mut self, _: &mut Ctx<'_>) -> BodyRead {
        let next = self.0.borrow_mut().pop_front();
        next.unwrap_or(BodyRead::Pending(Wait::woken()))
    }
}

/// Passes the body on, by the first word of the URI after `/pass`.
pub(crate) fn pass(x: &mut Exchange, cx: &mut Ctx<'_>, words: &[&str]) -> Content {
    if x.extensions.get::<Sent>().is_none() {
        let waker = x.waker(cx);
        WAKER.set(Some(waker));
        x.body.on_arrival = Some(pass_on);
        x.extensions.push(Sent::default());
    }
    x.progress.ignore_abort = words.contains(&"ignore");
    match words[0] {
        // The head comes at once, before anything of the body.
        "echo" => {
            begin(x, cx);
            pass_on(x, cx);
            answer(x, cx, 200)
        }
        // The response comes with the first piece, or with its fault.
        "first" => {
            begin(x, cx);
            match pass_pieces(x, cx) {
                Some(status) => Content::Status(status),
                None if sent(x).0.borrow().is_empty() => wait(x),
                None => answer(x, cx, 200),
            }
        }
        // It never comes.
        "never" => wait(x),
        // The server has sent all there is, whatever comes of the body.
        "short" => {
            let pieces = [BodyRead::Chunk(Chunk::Static(b"short")), BodyRead::End];
            sent(x).0.borrow_mut().extend(pieces);
            begin(x, cx);
            set_room(0);
            answer(x, cx, 200)
        }
        // It is a large one, and the server has it end with the first that comes of the body.
        "cut" => {
            begin(x, cx);
            x.body.on_arrival = Some(cut);
            answer(x, cx, 200)
        }
        // The body breaks after a piece, or without one.
        "broken" => {
            let first = BodyRead::Chunk(Chunk::Static(b"whole"));
            let first = words.get(1).is_none().then_some(first);
            let pieces = first.into_iter().chain([BodyRead::Broken]);
            sent(x).0.borrow_mut().extend(pieces);
            answer(x, cx, 200)
        }
        // This many interim responses in each run.
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

/// Takes as much as the server has space for; returns the status of a failed read.
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

/// How long the response of `/pass/cut` is.
pub(crate) const CUT_BYTES: usize = 200_000;
