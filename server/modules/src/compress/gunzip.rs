//! `gunzip`: decompresses gzip responses for clients that do not accept it.
//!
//! Absent: other codings, several at once.
//!
//! Source: nginx documentation, `ngx_http_gunzip_module`; RFC 1952.

use std::collections::VecDeque;
use std::rc::Rc;

use conf::Contexts;
use engines::http::{Chunk, FieldId, Method};
use server_base::from_args::Buffers;
use server_http::exchange::{BodyStage, Broken, Ctx, Exchange};
use server_http::module::Module;
use server_http::settings;

use super::inflate::Inflate;
use super::settings::{BUFFERS, CompressLoc};
use super::{allowed, vary};

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "gunzip",
    directives: &[PLAIN],
    settings: &[<GunzipLoc as server_http::settings_set::Conf>::def],
    header_stage: Some(stage),
    stage_of_subrequests: true,
    on_demand: true,
    ..Module::EMPTY
};

settings! {
    /// Settings of a location.
    pub(crate) struct GunzipLoc: Location / PLAIN {
        /// Whether responses in gzip are decompressed for clients that do not accept them.
        gunzip "gunzip": bool = false, "off", Contexts::HTTP_SERVER_LOCATION;
        /// Number and size of buffers; their total is decompressed at a time.
        buffers "gunzip_buffers": Buffers = BUFFERS, "32 4k", Contexts::HTTP_SERVER_LOCATION;
    }
}

fn stage(x: &mut Exchange, cx: &mut Ctx<'_>) -> Result<(), u16> {
    let http = Rc::clone(&x.route.http);
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
        x.body.stages.push(Box::new(Inflate::new(step)));
    }
    Ok(())
}

impl BodyStage for Inflate {
    fn chunk(&mut self, chunk: Chunk, _: &mut VecDeque<Chunk>) -> Result<(), Broken> {
        self.take(chunk);
        Ok(())
    }

    fn resume(&mut self, out: &mut VecDeque<Chunk>) -> Result<bool, Broken> {
        let made = self.next().map_err(Broken)?;
        let going = made.is_some();
        out.extend(made.filter(|bytes| !bytes.is_empty()).map(Chunk::Owned));
        Ok(going)
    }

    fn end(&mut self, _: &mut VecDeque<Chunk>) -> Result<(), Broken> {
        Self::end(self).map_err(Broken)
    }
}
