//! Arrivals while a response is pulled: more of the response, and more of the request.

use server_base::errlog::{Level, Printable};
use server_base::files::{FileError, Keep, TempError};
use server_upstream::request::{Failure, UpstreamEvent};

use super::body::Body;
use super::fields::passes_beside_head;
use super::response_buffer::{Ended, ResponseBuffer};
use super::run::{Run, record};
use super::wording::{Action, log_failure};
use crate::exchange::{Ctx, Exchange};
use crate::reply;
use server_upstream::picker::Outcome;

/// Called at each wake, and when more of the request body has come.
pub(super) fn arrived(x: &mut Exchange, cx: &mut Ctx<'_>) {
    let upstream = x.upstream.as_mut();
    if let Some(mut pass) = upstream.and_then(|upstream| upstream.pass.take()) {
        pass.arrived(x, cx);
        record(x).pass = Some(pass);
    }
}

/// Takes the events of the server, and sends it the request body that has arrived.
pub(super) fn take(run: &mut Run, x: &mut Exchange, cx: &mut Ctx<'_>) {
    let Some(shared) = run.buffer.clone() else {
        return;
    };
    let mut buffer = shared.borrow_mut();
    let now_ms = cx.clock.mono_ms;
    buffer.set_unsent(x.body.unsent_bytes);
    while let Some(event) = buffer.event() {
        match event {
            UpstreamEvent::Data(chunk) => {
                if buffer.overflows(now_ms) {
                    write_out(run, x, cx, &mut buffer);
                }
                if let Some(storing) = &mut run.storing
                    && !storing.add(x, &chunk)
                {
                    run.storing = None;
                }
                if let Some(filling) = &mut run.filling
                    && !filling.add(x, &chunk)
                {
                    run.filling = None;
                    buffer.drop_backing();
                }
                buffer.push(chunk);
            }
            UpstreamEvent::Trailers(trailers) => {
                pass_trailers(run, x, &trailers);
                record(x).trailers = trailers;
            }
            UpstreamEvent::End => return end(run, x, cx, &mut buffer, Ended::Whole),
            UpstreamEvent::Failed(error) => {
                let how = end_by_failure(x, &buffer, &error.failure);
                return end(run, x, cx, &mut buffer, how);
            }
            UpstreamEvent::Note(text) => {
                // It is too late to fail for it.
                run.note(x, &text, Action::Reading);
            }
            // After a head only `Upgraded` comes, and the head has announced it.
            UpstreamEvent::Interim(_) | UpstreamEvent::Head(..) | UpstreamEvent::Upgraded => {}
        }
    }
    if let Body::Stream(stream) = &mut run.body
        && let Some(attempt) = buffer.attempt()
        && stream.pump(x, cx, attempt).is_err()
    {
        return end(run, x, cx, &mut buffer, Ended::Broken);
    }
    buffer.set_window(now_ms);
    if let Some(attempt) = record(x).last() {
        attempt.body_bytes = buffer.received();
    }
}

/// The response is complete, or breaks off.
fn end(run: &mut Run, x: &mut Exchange, cx: &mut Ctx<'_>, buffer: &mut ResponseBuffer, how: Ended) {
    buffer.end(how);
    if let Some(attempt) = record(x).last() {
        attempt.body_bytes = buffer.received();
    }
    run.finish_attempt(x, cx, Outcome::Alive, Action::Reading);
    if let Some(storing) = run.storing.take()
        && how == Ended::Whole
    {
        storing.finish(run, x, cx);
    }
    if let Some(filling) = run.filling.take()
        && how == Ended::Whole
    {
        filling.finish(x);
    }
    // The rest of the request body is not needed.
    x.body.on_arrival = None;
}

/// The end of the response after a failure, given the bytes received before it.
fn end_by_failure(x: &Exchange, buffer: &ResponseBuffer, failure: &Failure) -> Ended {
    if !buffer.is_tunnel {
        log_failure(x, failure, Action::Reading);
        return Ended::Broken;
    }
    // A tunnel has no end of its own: it is over when one side has gone.
    if *failure == Failure::TimedOut {
        log_failure(x, failure, Action::Tunnel);
        return Ended::Broken;
    }
    Ended::Whole
}

/// Passes the trailers on, if the client may have them.
fn pass_trailers(run: &Run, x: &mut Exchange, trailers: &engines::http::Fields) {
    let conf = run.conf(x, &x.route.http);
    if !conf.fields.pass_trailers || !reply::trailers_allowed(x) {
        return;
    }
    for field in &trailers.fields {
        let name = trailers.bytes(field.name);
        if passes_beside_head(conf, field.id, name) {
            x.reply.trailers.push(name, trailers.bytes(field.value));
        }
    }
}

/// Writes the part in memory to a file. If that fails, it stays in memory and the server is read no further.
fn write_out(run: &Run, x: &Exchange, cx: &mut Ctx<'_>, buffer: &mut ResponseBuffer) {
    if !buffer.has_file()
        && let Err(error) = make_file(run, x, cx, buffer)
    {
        buffer.break_file();
        return log_file(x, error.error, &error.path);
    }
    if let Err((error, name)) = buffer.write_out() {
        buffer.break_file();
        log_file(x, error, &name);
    }
}

fn log_file(x: &Exchange, error: FileError, name: &[u8]) {
    let (call, reason, name) = (error.call, reason(error), Printable(name));
    x.log_while(
        Level::Crit,
        Action::Reading.text(),
        format_args!("{call} \"{name}\" failed ({reason})"),
    );
}

fn make_file(
    run: &Run,
    x: &Exchange,
    cx: &mut Ctx<'_>,
    buffer: &mut ResponseBuffer,
) -> Result<(), TempError> {
    let Some(dir) = &run.conf(x, &x.route.http).buffering.temp_path else {
        return Ok(());
    };
    let file = cx.files.create_temp(dir, FILE_MODE, Keep::Nameless)?;
    let name = Printable(&file.path);
    x.log_while(
        Level::Warn,
        Action::Reading.text(),
        format_args!("an upstream response is buffered to a temporary file {name}"),
    );
    buffer.set_file(file);
    Ok(())
}

/// Why a call failed.
pub(super) fn reason(error: FileError) -> String {
    conf::os_error(&std::io::Error::from_raw_os_error(error.errno))
}

/// Only the worker reads it.
const FILE_MODE: u32 = 0o600;
