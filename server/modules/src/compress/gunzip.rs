//! `gunzip`: responses in gzip for clients that do not take it.
//!
//! What comes out is passed on in pieces: a small body that becomes a huge one takes a piece's memory, and its client's
//! speed. Absent: other codings, several at once.
//!
//! Source: nginx documentation, `ngx_http_gunzip_module`; RFC 1952.

use std::collections::VecDeque;
use std::rc::Rc;

use conf::Contexts;
use engines::http::{Chunk, FieldId, Method};
use flate2::{Decompress, FlushDecompress, Status};
use server_core::exchange::{BodyStage, Broken, Ctx, Exchange};
use server_core::module::Module;
use server_core::settings;
use server_core::typed::Buffers;

use super::settings::CompressLoc;
use super::{allowed, vary};

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "gunzip",
    directives: &[PLAIN],
    units: &[<GunzipLoc as server_core::confs::Conf>::unit],
    header_stage: Some(stage),
    dormant: true,
    ..Module::EMPTY
};

settings! {
    /// Settings of a location.
    pub(crate) struct GunzipLoc: Location / PLAIN {
        /// Whether responses in gzip are decompressed for clients that do not take them.
        gunzip "gunzip": bool = false, "off", Contexts::HTTP_SERVER_LOCATION;
        /// Number and size of buffers; so much is decompressed at a time.
        buffers "gunzip_buffers": Buffers = Buffers { number: 32, size: 4 << 10 }, "32 4k", Contexts::HTTP_SERVER_LOCATION;
    }
}

fn stage(x: &mut Exchange, cx: &mut Ctx<'_>) -> Result<(), u16> {
    let http = Rc::clone(&x.http);
    let own: &GunzipLoc = x.loc(&http);
    let coding = x.reply.fields.get(FieldId::ContentEncoding);
    if !*own.gunzip || !coding.is_some_and(|coding| coding.eq_ignore_ascii_case(b"gzip")) {
        return Ok(());
    }
    let conf: &CompressLoc = x.loc(&http);
    if *conf.vary {
        vary::add(&mut x.reply.fields);
    }
    if allowed::gzip(x, cx, conf) {
        return Ok(());
    }
    x.reply.fields.remove(FieldId::ContentEncoding);
    vary::recoded(&mut x.reply);
    if x.head.method != Method::Head {
        let step = own
            .buffers
            .size
            .saturating_mul(u64::from(own.buffers.number));
        x.stages.push(Box::new(Gunzip::new(step)));
    }
    Ok(())
}

/// The body stage.
struct Gunzip {
    inflate: Box<Decompress>,
    input: Chunk,
    /// How much of `input` is taken.
    at: usize,
    /// There may be more to put out of what was taken.
    more: bool,
    /// A member of the file is over; with nothing after it the body is.
    whole: bool,
    step_bytes: usize,
}

impl Gunzip {
    fn new(step_bytes: u64) -> Self {
        let step = step_bytes.clamp(STEP_LEAST, STEP_MOST);
        Self {
            inflate: Box::new(Decompress::new_gzip(WINDOW_LOG)),
            input: Chunk::Static(b""),
            at: 0,
            more: false,
            whole: false,
            step_bytes: step as usize,
        }
    }
}

impl BodyStage for Gunzip {
    fn chunk(&mut self, chunk: Chunk, _: &mut VecDeque<Chunk>) -> Result<(), Broken> {
        self.input = chunk;
        self.at = 0;
        self.more = true;
        Ok(())
    }

    fn resume(&mut self, out: &mut VecDeque<Chunk>) -> Result<bool, Broken> {
        if !self.more {
            return Ok(false);
        }
        let mut made = Vec::with_capacity(self.step_bytes);
        while made.len() < made.capacity() {
            let rest = &self.input.bytes()[self.at..];
            if self.whole {
                if rest.is_empty() {
                    self.more = false;
                    break;
                }
                // Another member follows.
                *self.inflate = Decompress::new_gzip(WINDOW_LOG);
                self.whole = false;
            }
            let (came, left) = (self.inflate.total_in(), made.len());
            let status = self
                .inflate
                .decompress_vec(rest, &mut made, FlushDecompress::None)
                .map_err(|_| Broken("inflate() failed: the response is not in gzip"))?;
            let taken = (self.inflate.total_in() - came) as usize;
            self.at += taken;
            self.whole = status == Status::StreamEnd;
            if !self.whole && taken == 0 && made.len() == left {
                self.more = false;
                break;
            }
        }
        if !made.is_empty() {
            out.push_back(Chunk::Owned(made));
        }
        Ok(true)
    }

    fn end(&mut self, _: &mut VecDeque<Chunk>) -> Result<(), Broken> {
        if self.whole {
            Ok(())
        } else {
            Err(Broken(
                "inflate() failed: the response ends inside of a member",
            ))
        }
    }
}

const WINDOW_LOG: u8 = 15;
/// What is decompressed at a time, whatever `gunzip_buffers` says.
const STEP_LEAST: u64 = 512;
const STEP_MOST: u64 = 1 << 20;

#[cfg(test)]
#[path = "gunzip_tests.rs"]
mod tests;
