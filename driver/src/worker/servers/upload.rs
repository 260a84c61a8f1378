//! Bodies of requests that are streams, from mailboxes to the engine.

use engines::http::Chunk;
use server_upstream::request::Failure;

use super::link::SHORT_FILE;
use crate::worker::net::Net;
use crate::worker::server_state::{Io, Sending, Stream, Streams};
use crate::worker::shared::Shared;

/// Moves pieces of the body of a request from the mailbox to the engine, as far as windows and the output queue have
/// room. A body that cannot be read costs its stream.
pub(super) fn feed<N: Net>(io: &mut Io, streams: &mut Streams, at: usize, sh: &mut Shared<N>) {
    let stream = &mut streams.open[at];
    let before = io.out.len();
    let mut failed = None;
    while stream.request == Sending::Body
        && io.out.len() < QUEUE_BYTES
        && io.engine.pending_bytes(stream.id) == 0
    {
        let chunk = stream.rest.take().or_else(|| stream.call.take_body());
        if let Some(chunk) = chunk {
            failed = send_piece(io, stream, chunk, sh).err();
        } else if let Some(trailers) = stream.call.take_body_end() {
            io.engine.end_stream(stream.id, trailers.as_ref());
            stream.request = Sending::Queued;
        } else {
            break;
        }
        io.engine.transmit(&mut io.out);
        if failed.is_some() {
            break;
        }
    }
    io.engine.transmit(&mut io.out);
    stream.is_held = io.engine.pending_bytes(stream.id) > 0;
    let id = stream.id;
    if io.out.len() > before {
        stream.wrote_ms = sh.clock.mono_ms;
        stream.encoded_bytes = io.engine.encoded_bytes(id);
        streams.record_queued(at, io, before);
    }
    if let Some(failure) = failed {
        io.engine.cancel(id);
        io.engine.transmit(&mut io.out);
        streams.fail(io, id, failure, false, sh.clock.mono_ms);
    }
}

/// Sends a piece of a body; of a file range, one read.
fn send_piece<N: Net>(
    io: &mut Io,
    stream: &mut Stream,
    chunk: Chunk,
    sh: &mut Shared<N>,
) -> Result<(), Failure> {
    let Chunk::File(mut range) = chunk else {
        io.engine.send_stream(stream.id, chunk.bytes());
        return Ok(());
    };
    let most = range.len.min(FILE_BYTES as u64) as usize;
    let mut bytes = vec![0; most];
    let read = sh.net.read_file(&range, &mut bytes).unwrap_or_default();
    if read == 0 && most > 0 {
        return Err(Failure::Unsendable(SHORT_FILE));
    }
    io.engine.send_stream(stream.id, &bytes[..read]);
    range.offset += read as u64;
    range.len -= read as u64;
    stream.rest = (range.len > 0).then_some(Chunk::File(range));
    Ok(())
}

/// Bytes in the output queue before no more of a body is taken.
const QUEUE_BYTES: u64 = 64 << 10;
/// Bytes of a file that are read at once.
const FILE_BYTES: usize = 16 << 10;
