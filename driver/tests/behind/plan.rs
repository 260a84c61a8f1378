//! The response of a server to a request, drawn at random when the request's head has arrived.

use std::rc::Rc;

use sim::Random;

use super::ledger::{ClientRequest, Part, bytes};
use super::protocol::ServerProtocol;
use super::{fastcgi, h2, memcached};

/// Action of a server after its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// Waits for the next request.
    Keep,
    /// Closes.
    Leave,
    /// Ends its side and continues reading.
    End,
    Reset,
    /// Sends nothing more, and continues reading.
    Silent,
}

/// A planned response.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) status: u16,
    pub(crate) body: Rc<[u8]>,
    /// All bytes that are sent.
    pub(crate) text: Vec<u8>,
    /// Offset in `text` of the end of the final head; `whole_at`: offset at which the response is complete.
    pub(crate) head_at: usize,
    pub(crate) whole_at: usize,
    /// Offset at which only the end is missing, if it is before `whole_at`.
    pub(crate) enough_at: Option<usize>,
    pub(crate) until_close: bool,
    pub(crate) trailers: bool,
    pub(crate) accel: Accel,
    /// It must not count as a complete response.
    pub(crate) bad: bool,
    /// Its head is invalid, too.
    pub(crate) bad_head: bool,
    /// It starts before the request body is complete.
    pub(crate) early: bool,
    /// Delay of the response; `pause`: offset and length of a later pause.
    pub(crate) late_ms: u64,
    pub(crate) pause: Option<(usize, u64)>,
    pub(crate) after: After,
    pub(crate) fault: ServerFault,
}

/// Fault of an HTTP/2 response that is not visible in its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerFault {
    No,
    /// More is announced than sent.
    Length,
    /// The connection is reset after it.
    Connection,
}

/// Redirect by `X-Accel-Redirect`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accel {
    No,
    File,
    Inner,
}

impl Plan {
    /// Makes a plan without a response.
    pub(crate) fn nothing(after: After) -> Self {
        Self {
            status: 0,
            body: Rc::from([]),
            text: Vec::new(),
            head_at: 0,
            whole_at: 0,
            enough_at: None,
            until_close: false,
            trailers: false,
            accel: Accel::No,
            bad: true,
            bad_head: true,
            early: false,
            late_ms: 0,
            pause: None,
            after,
            fault: ServerFault::No,
        }
    }

    /// Whether it reaches the client once it is sent.
    pub(crate) fn is_sound(&self) -> bool {
        // A reset may overtake sent bytes. Closing with unread input is a reset.
        let lost = self.after == After::Reset || (self.early && self.after == After::Leave);
        !self.bad && !lost && self.text.len() >= self.whole_at
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Framing {
    Length,
    Chunked,
    Close,
}

/// Draws a response to a request. A calm server makes no faults.
pub(crate) fn draw(
    number: usize,
    ask: &ClientRequest,
    part: Part,
    protocol: ServerProtocol,
    calm: bool,
    random: &mut Random,
) -> Plan {
    let mut plan = match protocol {
        ServerProtocol::Memcached => memcached::answer(number, ask, random),
        _ => answer(number, ask, part, protocol, random),
    };
    let spoiled = !calm && random.chance(350);
    match protocol {
        ServerProtocol::FastCgi => fastcgi::encode(&mut plan, ask, spoiled, random),
        ServerProtocol::Http2 => h2::encode(&mut plan, spoiled, random),
        ServerProtocol::Memcached if spoiled => memcached::spoil(&mut plan, number, ask, random),
        _ if spoiled => spoil(&mut plan, ask, protocol, random),
        _ => {}
    }
    if random.chance(200) {
        plan.late_ms = *random.pick(&[1, 50, 400, 1500]);
    }
    if random.chance(150) {
        plan.pause = Some((random.within(0..plan.text.len() + 1), random.below(900)));
    }
    if !calm && random.chance(20) {
        plan.late_ms = 9000;
    }
    plan.early = ask.has_body && random.chance(if calm { 0 } else { 150 });
    plan
}

fn answer(
    number: usize,
    ask: &ClientRequest,
    part: Part,
    protocol: ServerProtocol,
    random: &mut Random,
) -> Plan {
    let is_http = protocol == ServerProtocol::Http;
    let tunnel = ask.upgrade && part == Part::Whole && random.chance(700);
    let accel = match random.below(20) {
        0 if is_plain(ask, part) => Accel::File,
        1 if is_plain(ask, part) => Accel::Inner,
        _ => Accel::No,
    };
    let status = match () {
        () if tunnel => 101,
        () if accel != Accel::No => 200,
        () => *random.pick(&STATUSES),
    };
    let len = body_len(random);
    let bare = matches!(status, 204 | 304);
    let body = bytes(number * 2 + 1, if bare { 0 } else { len });
    let framing = *random.pick(&[
        Framing::Length,
        Framing::Length,
        if is_http {
            Framing::Chunked
        } else {
            Framing::Close
        },
        Framing::Close,
    ]);
    let trailers = framing == Framing::Chunked && random.chance(300);
    let mut text = match is_http && random.chance(150) {
        true => interims(random),
        false => Vec::new(),
    };
    let mut head = match is_http {
        true => format!("HTTP/1.1 {status} Some Reason\r\n"),
        false => cgi_status(status, protocol, random),
    };
    head += &format!("X-Answer: {number}\r\nContent-Type: text/plain\r\n");
    match accel {
        Accel::No => {}
        Accel::File => head += "X-Accel-Redirect: /file\r\n",
        Accel::Inner => head += &format!("X-Accel-Redirect: /inner/{}\r\n", ask.id),
    }
    let is_ended =
        bare || tunnel || matches!(protocol, ServerProtocol::FastCgi | ServerProtocol::Http2);
    let until_close = framing == Framing::Close && !is_ended;
    let mut after = match random.below(10) {
        0 => After::Leave,
        1 => After::End,
        _ => After::Keep,
    };
    if tunnel || until_close {
        after = if random.chance(700) {
            After::Leave
        } else {
            After::End
        };
    }
    match framing {
        _ if tunnel => head += "Connection: upgrade\r\nUpgrade: echo\r\n",
        _ if bare => {}
        Framing::Length => head += &format!("Content-Length: {}\r\n", body.len()),
        Framing::Chunked => head += "Transfer-Encoding: chunked\r\n",
        Framing::Close => {}
    }
    if is_http && after != After::Keep && !tunnel && random.chance(500) {
        head += "Connection: close\r\n";
    }
    head += "\r\n";
    if !is_http && random.chance(300) {
        head = head.replace('\r', "");
    }
    text.extend_from_slice(head.as_bytes());
    let head_at = text.len();
    let bodiless = bare || (ask.is_head() && part != Part::Copy);
    if !bodiless {
        match framing {
            Framing::Chunked if !tunnel => chunks(&mut text, &body, trailers, random),
            _ => text.extend_from_slice(&body),
        }
    }
    let whole_at = text.len();
    Plan {
        status,
        body,
        text,
        head_at,
        whole_at,
        enough_at: None,
        until_close: until_close && !bodiless,
        trailers: trailers && !bodiless && !tunnel,
        accel,
        bad: false,
        bad_head: false,
        early: false,
        late_ms: 0,
        pause: None,
        after,
        fault: ServerFault::No,
    }
}

/// Length of a body in bytes.
fn body_len(random: &mut Random) -> usize {
    match random.below(12) {
        0 => 0,
        1..4 => random.within(1..30),
        4..9 => random.within(1..6000),
        9 | 10 => random.within(5000..50_000),
        _ if random.chance(300) => random.within(60_000..250_000),
        _ => 1,
    }
}

/// Returns one or several interim responses.
fn interims(random: &mut Random) -> Vec<u8> {
    let heads = [
        "103 Early Hints\r\nLink: </x>",
        "102 Processing",
        "100 Continue",
    ];
    let count = random.within(1..4);
    let head = |_| format!("HTTP/1.1 {}\r\n\r\n", random.pick(&heads)).into_bytes();
    (0..count).flat_map(head).collect()
}

/// Returns the status line or field of a CGI response.
fn cgi_status(status: u16, protocol: ServerProtocol, random: &mut Random) -> String {
    match random.below(6) {
        0 | 1 if protocol == ServerProtocol::FastCgi => format!("Status: {status} Some Reason\r\n"),
        0 => format!("HTTP/1.1 {status} Some Reason\r\n"),
        1 => format!("HTTP/2.0 {status} Some Reason\r\n"),
        2 => format!("Status: {status}\r\n"),
        3 if status == 200 => String::new(),
        _ => format!("Status: {status} Some Reason\r\n"),
    }
}

/// Whether the response may redirect the request internally.
fn is_plain(ask: &ClientRequest, part: Part) -> bool {
    part == Part::Whole && !ask.has_body && !ask.upgrade && !ask.location().intercepts
}

fn chunks(text: &mut Vec<u8>, body: &[u8], trailers: bool, random: &mut Random) {
    let mut rest = body;
    while !rest.is_empty() {
        let (piece, left) = rest.split_at(random.piece(rest.len()));
        let extension = if random.chance(100) { ";a=b" } else { "" };
        text.extend_from_slice(format!("{:x}{extension}\r\n", piece.len()).as_bytes());
        text.extend_from_slice(piece);
        text.extend_from_slice(b"\r\n");
        rest = left;
    }
    text.extend_from_slice(match trailers {
        true => b"0\r\nX-Sum: 1\r\n\r\n",
        false => b"0\r\n\r\n",
    });
}

/// Makes the response invalid.
fn spoil(plan: &mut Plan, ask: &ClientRequest, protocol: ServerProtocol, random: &mut Random) {
    let cut = match random.below(4) {
        0 => 0,
        1 => random.within(0..plan.head_at),
        _ => random.within(0..plan.text.len()),
    };
    let ends = [After::Leave, After::End, After::Reset, After::Silent];
    match random.below(10) {
        0..5 => {
            plan.text.truncate(cut);
            plan.after = *random.pick(&ends);
            // A response that is ended by the close may end here, too.
            if plan.until_close
                && cut >= plan.head_at
                && matches!(plan.after, After::Leave | After::End)
            {
                let len = plan.body.len() - (plan.whole_at - cut);
                plan.body = plan.body[..len].into();
                plan.whole_at = cut;
            } else {
                plan.bad = true;
                plan.bad_head = cut < plan.head_at;
            }
        }
        5 if plan.until_close || plan.status == 101 => {}
        5 => {
            // These bytes belong to no response.
            let more = random.within(1..300);
            plan.text.extend(std::iter::repeat_n(b'?', more));
        }
        6 => {
            // More is announced than sent.
            let shown = String::from_utf8_lossy(&plan.text[..plan.head_at]).into_owned();
            let told = format!("Content-Length: {}\r\n", plan.body.len());
            if plan.whole_at > plan.head_at && shown.contains(&told) {
                let lie = shown.replace(
                    &told,
                    &format!("Content-Length: {}\r\n", plan.body.len() + 7),
                );
                let by = lie.len() as isize - shown.len() as isize;
                plan.text.splice(..plan.head_at, lie.into_bytes());
                plan.head_at = plan.head_at.strict_add_signed(by);
                plan.whole_at = plan.text.len() + 7;
                plan.bad = true;
                plan.after = *random.pick(&ends);
            }
        }
        // A chunk without a size.
        7 if plan.trailers => {
            plan.text.truncate(plan.head_at);
            plan.text.extend_from_slice(b"zz\r\n");
            (plan.bad, plan.after) = (true, After::Silent);
        }
        7 => whole(plan, b"\x16\x03\x01 garbage\r\n\r\n".to_vec()),
        8 => {
            let line = *random.pick(&[
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: nonsense\r\nConnection: upgrade\r\n\r\n",
                "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
                "HTTP/1.1 200 OK\r\nno field\r\n\r\n",
            ]);
            if plan.status != 101 && !ask.upgrade {
                whole(plan, line.as_bytes().to_vec());
            }
        }
        _ if protocol != ServerProtocol::Http => {
            let head = *random.pick(&[
                "Status: 200 OK\r\nStatus: 200 OK\r\n\r\nx",
                "Status: 103 Early Hints\r\n\r\nStatus: 200 OK\r\n\r\nx",
                "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
                "HTTP/1.1 OK\r\n\r\nx",
                "A: b\0c\r\n\r\nx",
                "A: b\rc\r\n\r\nx",
            ]);
            whole(plan, head.as_bytes().to_vec());
        }
        _ => {
            let count = if random.chance(500) { 101 } else { 3000 };
            whole(plan, b"HTTP/1.1 103 Early Hints\r\n\r\n".repeat(count));
        }
    }
}

/// Replaces the response by `text`.
pub(crate) fn whole(plan: &mut Plan, text: Vec<u8>) {
    (plan.bad, plan.bad_head) = (true, true);
    plan.text = text;
    plan.head_at = plan.text.len();
    plan.whole_at = plan.text.len();
    plan.after = After::Silent;
}

/// Statuses of responses.
const STATUSES: [u16; 12] = [204, 404, 503, 500, 304, 200, 200, 200, 200, 200, 200, 200];
