//! The whole body of a request, in memory up to `client_body_buffer_size`, from there on in a temporary file.

use engines::http::{BodyLength, Version};
use server_base::errlog::{Level, Printable};
use server_base::files::{Keep, TempError, TempFile};

use crate::conf_core::InFile;
use crate::debug_http;
use crate::decision::REQUEST_TIMEOUT;
use crate::exchange::request_body::Reader;
use crate::exchange::{CollectOptions, Ctx, Exchange, State, Wait};

/// The progress of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collected {
    /// It is there whole.
    Done,
    /// It is still coming: the handler returns `Wait`, and is run again.
    Wait,
    /// It cannot be had: the handler answers with this status.
    Status(u16),
}

/// Asks for the whole body and returns its progress. Further calls only return the progress; the options of the first
/// call count.
pub fn collect(x: &mut Exchange, cx: &mut Ctx<'_>, plan: &CollectOptions) -> Collected {
    if x.input
        .body
        .as_ref()
        .is_none_or(|request_body| request_body.reader.is_none())
    {
        begin(x, cx, plan);
    }
    let Some(reader) = x
        .input
        .body
        .as_mut()
        .and_then(|request_body| request_body.reader.as_mut())
    else {
        return Collected::Status(500);
    };
    reader.told = reader.end.is_some();
    match reader.end {
        Some(Ok(())) => return Collected::Done,
        Some(Err(status)) => return Collected::Status(status),
        None => {}
    }
    if let Some(text) = reader.pace.broken(cx.clock.mono_ms) {
        x.log(Level::Info, format_args!("{text}"));
        return Collected::Status(REQUEST_TIMEOUT);
    }
    x.progress.state = State::Waiting(Wait::body_or_until(reader.pace.until_ms()));
    Collected::Wait
}

/// Begins to take the body, with the bytes that came before, and with those that another location has passed on.
fn begin(x: &mut Exchange, cx: &mut Ctx<'_>, plan: &CollectOptions) {
    debug_http!(x, "http read client request body");
    let loc = x.route.core_loc();
    let buffer = loc
        .bodies
        .client_body_buffer_size
        .0
        .max(plan.most.unwrap_or(0));
    let most = match (loc.bodies.client_max_body_size.0, plan.most) {
        (0, limit) => limit.unwrap_or(0),
        (size, limit) => size.min(limit.unwrap_or(size)),
    };
    let mut reader = Reader {
        plan: *plan,
        memory: Vec::new(),
        shared: None,
        // A body that is a little longer than the buffer is worth no file; as in nginx not if streams come in
        // frames.
        memory_limit: match x.head.body {
            BodyLength::Length(n)
                if n < buffer + buffer / 4 && x.head.version <= Version::Http11 =>
            {
                n
            }
            _ => buffer,
        },
        file: None,
        most,
        pace: super::pace_of(loc, cx.clock.mono_ms),
        end: None,
        told: false,
    };
    let complete = x.is_body_complete();
    let mut request_body = x.input.body.take().unwrap_or_default();
    let passed_on = request_body.stream.take();
    let mut so_far = 0;
    if let Some(passed_on) = passed_on {
        match passed_on.into_taken() {
            Ok(bytes) => {
                so_far += bytes.len() as u64;
                reader.take(x, cx, bytes, so_far);
            }
            Err(Some(status)) => reader.fail(status),
            Err(None) => {
                x.log(Level::Error, format_args!("{GONE}"));
                reader.fail(500);
            }
        }
    }
    for bytes in std::mem::take(&mut request_body.held) {
        so_far += bytes.len() as u64;
        reader.take(x, cx, bytes, so_far);
    }
    request_body.used += std::mem::take(&mut request_body.held_bytes);
    if complete {
        request_body.ended = true;
        reader.end(x, cx);
    }
    request_body.reader = Some(reader);
    x.input.body = Some(request_body);
}

impl Reader {
    /// Takes a piece; `so_far` bytes have arrived with it.
    pub(super) fn take(&mut self, x: &mut Exchange, cx: &mut Ctx<'_>, bytes: Vec<u8>, so_far: u64) {
        if self.is_done() {
            return;
        }
        let len = bytes.len() as u64;
        self.pace.record(len, cx.clock.mono_ms);
        // A length that was announced has been compared when the location was found.
        let announced = matches!(x.head.body, BodyLength::Length(_));
        if self.most != 0 && so_far > self.most && !announced {
            x.input.too_large = true;
            x.log(
                Level::Error,
                format_args!(
                    "client intended to send too large chunked body: {}+{len} bytes",
                    so_far - len
                ),
            );
            return self.fail(413);
        }
        if self.memory.len() as u64 + len > self.memory_limit {
            let written = self.write_out(x, cx, &bytes);
            return self.check(x, written);
        }
        if self.memory.is_empty() {
            self.memory = bytes;
        } else {
            self.memory.extend_from_slice(&bytes);
        }
    }

    /// The body is complete.
    pub(super) fn end(&mut self, x: &mut Exchange, cx: &mut Ctx<'_>) {
        if self.is_done() {
            return;
        }
        let to_file = self.plan.in_file != InFile::Off || self.file.is_some();
        if to_file {
            let written = self.write_out(x, cx, b"");
            self.check(x, written);
        }
        self.end.get_or_insert(Ok(()));
    }

    /// Moves the part in memory to the file, and a piece behind it.
    fn write_out(
        &mut self,
        x: &mut Exchange,
        cx: &mut Ctx<'_>,
        piece: &[u8],
    ) -> Result<(), TempError> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(create(x, cx, &self.plan)?),
        };
        for bytes in [&*self.memory, piece] {
            if !bytes.is_empty() {
                file.append(bytes).map_err(|error| TempError {
                    error,
                    path: file.path.clone(),
                })?;
            }
        }
        self.memory.clear();
        Ok(())
    }

    fn check(&mut self, x: &Exchange, written: Result<(), TempError>) {
        let Err(TempError { error, path }) = written else {
            return;
        };
        let reason = conf::os_error(&std::io::Error::from_raw_os_error(error.errno));
        let (call, name) = (error.call, Printable(&path));
        x.log(
            Level::Crit,
            format_args!("{call} \"{name}\" failed ({reason})"),
        );
        self.fail(500);
    }

    /// Aborts, and drops the received bytes.
    fn fail(&mut self, status: u16) {
        self.end = Some(Err(status));
        self.memory = Vec::new();
        self.file = None;
    }
}

/// Makes the file of a body.
fn create(x: &Exchange, cx: &mut Ctx<'_>, plan: &CollectOptions) -> Result<TempFile, TempError> {
    let keep = match plan.in_file {
        InFile::Off => Keep::Nameless,
        InFile::Clean => Keep::WhileUsed,
        InFile::On => Keep::Always,
    };
    let dir = x.route.core_loc().bodies.body_temp_dir();
    let file = cx.files.create_temp(dir, plan.mode, keep)?;
    if let Some(level) = plan.log {
        let name = Printable(&file.path);
        x.log(
            level,
            format_args!("a client request body is buffered to a temporary file {name}"),
        );
    }
    Ok(file)
}

/// Why a body that was passed on cannot be collected any more.
const GONE: &str =
    "the request body was already passed on and is not stored, it cannot be sent again";

#[cfg(test)]
#[path = "collect_tests.rs"]
mod tests;
