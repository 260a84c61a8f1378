//! FastCGI of the simulated servers: a strict reader of records, and responses made into records.

use sim::Random;

use super::ledger::ClientRequest;
use super::plan::{After, Plan, whole};
use super::protocol::Params;

/// A record: its type, its content, and its total length.
type Record<'a> = (u8, &'a [u8], usize);

/// Returns the first record, once it is complete: type, content and total length.
///
/// # Errors
/// A client must not send this record.
pub(crate) fn record(came: &[u8]) -> Result<Option<Record<'_>>, String> {
    let Some((header, rest)) = came.split_first_chunk() else {
        return Ok(None);
    };
    let [1, of @ (1 | 4 | 5), 0, 1, high, low, padding, 0] = *header else {
        return Err(format!("the header of a record is {header:?}"));
    };
    let len = usize::from(u16::from_be_bytes([high, low]));
    let end = len + usize::from(padding);
    Ok(rest.get(..end).map(|rest| (of, &rest[..len], 8 + end)))
}

/// Returns the parameters of a request, with `keep`, and their length including the records before them.
///
/// # Errors
/// They violate the protocol.
pub(crate) fn params(came: &[u8]) -> Result<Option<(Params, usize)>, String> {
    let Some((of, content, mut at)) = record(came)? else {
        return Ok(None);
    };
    let (1, [0, 1, keep @ (0 | 1), 0, 0, 0, 0, 0]) = (of, content) else {
        return Err(format!("a request begins with {of} {content:?}"));
    };
    let mut params = vec![("keep".to_owned(), keep.to_string())];
    loop {
        let Some((of, mut content, len)) = record(&came[at..])? else {
            return Ok(None);
        };
        if of != 4 {
            return Err(format!("{of} among parameters"));
        }
        at += len;
        if content.is_empty() {
            return Ok(Some((params, at)));
        }
        while !content.is_empty() {
            let (name, value) = (length(&mut content)?, length(&mut content)?);
            let mut word = |len: usize| {
                let (word, rest) = content
                    .split_at_checked(len)
                    .ok_or("a word beyond its record")?;
                content = rest;
                String::from_utf8(word.to_vec()).map_err(|_| "a parameter is not text")
            };
            params.push((word(name)?, word(value)?));
        }
    }
}

/// Reads the length at the start of the bytes.
fn length(rest: &mut &[u8]) -> Result<usize, &'static str> {
    let (len, behind) = match **rest {
        [short @ ..0x80, ref behind @ ..] => (usize::from(short), behind),
        [a, b, c, d, ref behind @ ..] => {
            let long = u32::from_be_bytes([a & 0x7f, b, c, d]);
            (long as usize, behind)
        }
        _ => return Err("no length"),
    };
    *rest = behind;
    Ok(len)
}

/// Fault of the response.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// The response stops.
    Cut,
    /// An invalid record.
    Record,
    /// END_REQUEST with an error of the protocol.
    Status,
}

/// Converts a CGI response into records. A spoiled one may get faults.
pub(crate) fn encode(plan: &mut Plan, ask: &ClientRequest, spoiled: bool, random: &mut Random) {
    let fault = match random.below(8) {
        _ if !spoiled => Fault::None,
        0..3 => Fault::Cut,
        3 => Fault::Record,
        4 => Fault::Status,
        _ => {
            spoil_text(plan, ask, random);
            Fault::None
        }
    };
    let mut sent = FastCgiScript::new(plan, ask);
    sent.send_answer(plan, random);
    let status = match fault {
        Fault::Status => random.within(1..5) as u8,
        _ => 0,
    };
    let ends = sent.end(status, random);
    let bounds = std::mem::take(&mut sent.bounds);
    plan.head_at = sent.head_at;
    plan.enough_at = Some(sent.enough_at.unwrap_or(ends));
    plan.whole_at = ends;
    plan.text = sent.out;
    let enough_at = plan.enough_at.unwrap_or(ends);
    let sorts = [After::Leave, After::End, After::Reset, After::Silent];
    let cut = match fault {
        Fault::None => return,
        // Everything before the end may still be complete.
        Fault::Status => ends - 1,
        Fault::Cut => random.within(0..plan.text.len()),
        Fault::Record => *random.pick(&bounds),
    };
    if fault != Fault::Status {
        plan.text.truncate(cut);
        plan.after = *random.pick(&sorts);
    }
    if fault == Fault::Record {
        let header: [u8; 8] = *random.pick(&[
            [2, 6, 0, 1, 0, 1, 0, 0],
            [1, 9, 0, 0, 0, 1, 0, 0],
            [1, 0, 0, 1, 0, 1, 0, 0],
            [1, 6, 1, 1, 0, 1, 0, 0],
            [1, 6, 0, 2, 0, 1, 0, 0],
            [1, 3, 0, 1, 0, 7, 0, 0],
        ]);
        plan.text.extend_from_slice(&header);
        plan.text.push(b'?');
    }
    if cut < ends {
        plan.whole_at = usize::MAX;
        plan.bad |= cut < enough_at;
        plan.bad_head |= cut < plan.head_at;
    }
}

/// Makes the application's output invalid.
fn spoil_text(plan: &mut Plan, ask: &ClientRequest, random: &mut Random) {
    let shown = String::from_utf8_lossy(&plan.text[..plan.head_at]).into_owned();
    let told = format!("Content-Length: {}", plan.body.len());
    match random.below(3) {
        // More than announced.
        0 if shown.contains(&told) || matches!(plan.status, 204 | 304) => {
            let more = random.within(1..300);
            plan.text.extend(std::iter::repeat_n(b'?', more));
        }
        // Less than announced.
        1 if shown.contains(&told) && plan.status != 304 && !ask.is_head() => {
            let lie = shown.replace(&told, &format!("Content-Length: {}", plan.body.len() + 7));
            plan.text.splice(..plan.head_at, lie.bytes());
            plan.head_at = lie.len();
            plan.bad = true;
        }
        _ => {
            let head = *random.pick(&[
                "",
                "A: b\r\n",
                "Status: 200 OK\r\nStatus: 200 OK\r\n\r\nx",
                "Status: 101 Switching\r\n\r\nx",
                "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
                "Content-Length: 1\r\nContent-Length: 1\r\n\r\nx",
                "A: b\0c\r\n\r\nx",
                "A: b\rc\r\n\r\nx",
            ]);
            whole(plan, head.as_bytes().to_vec());
        }
    }
}

/// The encoded records.
struct FastCgiScript {
    out: Vec<u8>,
    /// Start of each record.
    bounds: Vec<usize>,
    head_at: usize,
    /// Offset after which the response is complete except for its end.
    enough_at: Option<usize>,
    /// Length of the complete output in bytes, if the head announces it.
    enough_bytes: Option<usize>,
}

impl FastCgiScript {
    fn new(plan: &Plan, ask: &ClientRequest) -> Self {
        let head = String::from_utf8_lossy(&plan.text[..plan.head_at]);
        let is_bare = ask.is_head() || matches!(plan.status, 204 | 304);
        let has_length = head.contains("Content-Length: ");
        let enough_bytes = match plan.bad {
            true => None,
            false if is_bare => Some(plan.head_at),
            false => has_length.then_some(plan.head_at + plan.body.len()),
        };
        Self {
            out: Vec::new(),
            bounds: Vec::new(),
            head_at: 0,
            enough_at: None,
            enough_bytes,
        }
    }

    fn record(&mut self, of: u8, content: &[u8], random: &mut Random) {
        let padding = *random.pick(&[0, 0, 0, 1, 7, 255]);
        let [high, low] = (content.len() as u16).to_be_bytes();
        self.bounds.push(self.out.len());
        self.out.extend([1, of, 0, 1, high, low, padding, 0]);
        self.out.extend_from_slice(content);
        self.out.extend(std::iter::repeat_n(b'#', padding.into()));
    }

    fn stderr(&mut self, random: &mut Random) {
        if random.chance(120) {
            let len = *random.pick(&[0, 1, 30, 300, 6000]);
            self.record(7, &vec![b'e'; len], random);
        }
    }

    /// Adds the output in pieces.
    fn send_answer(&mut self, plan: &Plan, random: &mut Random) {
        let mut at = 0;
        while at < plan.text.len() {
            self.stderr(random);
            let len = random.piece(plan.text.len() - at).min(0xffff);
            let begin = self.out.len() + 8;
            self.record(6, &plan.text[at..at + len], random);
            let position =
                |wanted: usize| (at < wanted && wanted <= at + len).then(|| begin + wanted - at);
            self.head_at = position(plan.head_at).unwrap_or(self.head_at);
            self.enough_at = self.enough_at.or(self.enough_bytes.and_then(position));
            at += len;
        }
        self.stderr(random);
    }

    /// Adds the end, perhaps after an end of STDOUT. Returns the offset at which the response is complete.
    fn end(&mut self, status: u8, random: &mut Random) -> usize {
        if random.chance(600) {
            self.enough_at = self.enough_at.or(Some(self.out.len() + 8));
            self.record(6, b"", random);
            self.stderr(random);
        }
        let ends = self.out.len() + 16;
        let content = [0, 0, 0, random.below(2) as u8, status, 0, 0, 0];
        self.record(3, &content, random);
        ends
    }
}
