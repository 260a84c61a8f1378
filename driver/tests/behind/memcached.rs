//! memcached of the simulated servers.

use sim::Random;

use super::ledger::{ClientRequest, bytes};
use super::plan::{Accel, After, Plan, ServerFault, whole};
use super::protocol::{Params, find};

/// Returns the length of a request's command, once it is complete. It has no parameters.
///
/// # Errors
/// It is another command.
pub(crate) fn params(came: &[u8]) -> Result<Option<(Params, usize)>, String> {
    let known = came.len().min(COMMAND.len());
    if came[..known] != COMMAND[..known] {
        return Err(format!("a command of {:?}", &came[..known]));
    }
    let end = find(came, b"\r\n");
    Ok(end.map(|end| (Params::new(), end + 2)))
}

/// Returns the value of the requested key, or a miss.
pub(crate) fn answer(number: usize, ask: &ClientRequest, random: &mut Random) -> Plan {
    let status = if random.chance(150) { 404 } else { 200 };
    let len = match random.below(8) {
        _ if status == 404 => 0,
        0 => 0,
        1..6 => random.within(1..6000),
        6 => random.within(5000..50_000),
        _ => random.within(60_000..250_000),
    };
    let body = bytes(number * 2 + 1, len);
    let mut text = match status {
        404 => b"END\r\n".to_vec(),
        _ => format!("VALUE {} {number} {len}\r\n", ask.path()).into_bytes(),
    };
    let head_at = text.len();
    text.extend_from_slice(&body);
    let enough_at = text.len();
    if status == 200 {
        text.extend_from_slice(TRAILER);
    }
    Plan {
        status,
        body,
        head_at,
        whole_at: text.len(),
        enough_at: Some(enough_at),
        text,
        until_close: false,
        trailers: false,
        accel: Accel::No,
        bad: false,
        bad_head: false,
        early: false,
        late_ms: 0,
        pause: None,
        after: match random.below(10) {
            0 => After::Leave,
            1 => After::End,
            _ => After::Keep,
        },
        fault: ServerFault::No,
    }
}

/// Makes the response invalid.
pub(crate) fn spoil(plan: &mut Plan, number: usize, ask: &ClientRequest, random: &mut Random) {
    let enough_at = plan.enough_at.unwrap_or(plan.whole_at);
    let sorts = [After::Leave, After::End, After::Reset, After::Silent];
    match random.below(8) {
        0..4 => {
            let cut = random.within(0..plan.text.len());
            plan.text.truncate(cut);
            plan.after = *random.pick(&sorts);
            plan.bad = cut < enough_at || plan.status == 404;
            plan.bad_head = cut < plan.head_at;
        }
        4 => plan.text.extend_from_slice(b"END\r\n"),
        // A value with a wrong end.
        5 if plan.status == 200 => {
            let end = *random.pick(&[&b"\r\nEND \r\n"[..], b"END\r\n", b"more\r\nEND\r\n"]);
            plan.text.truncate(enough_at);
            plan.text.extend_from_slice(end);
            plan.whole_at = usize::MAX;
        }
        // A larger length than the value has, so that the end is part of the value.
        6 if plan.status == 200 => {
            let len = plan.body.len() + TRAILER.len() + 2;
            let line = format!("VALUE {} {number} {len}\r\n", ask.path());
            plan.body = [&plan.body, TRAILER].concat().into();
            plan.text.splice(..plan.head_at, line.bytes());
            (plan.head_at, plan.whole_at) = (line.len(), usize::MAX);
            (plan.enough_at, plan.bad) = (None, true);
            plan.after = *random.pick(&sorts);
        }
        _ => {
            let path = ask.path();
            let line = match random.below(6) {
                0 => "ERROR\r\n".to_owned(),
                1 => "SERVER_ERROR out of memory\r\n".to_owned(),
                2 => format!("VALUE {path}1 0 1\r\nx\r\nEND\r\n"),
                3 => format!("VALUE {path} 0 x\r\nx\r\nEND\r\n"),
                4 => "END\n".to_owned(),
                _ => "V".repeat(9000),
            };
            whole(plan, line.into_bytes());
        }
    }
}

const COMMAND: &[u8] = b"get ";
/// Text after a value.
const TRAILER: &[u8] = b"\r\nEND\r\n";
