//! `sub_filter` and its companions: replaces strings in bodies.
//!
//! Strings are compared case-insensitively. If several begin at one position, the first one in the configuration wins.
//! As in nginx a body with a content coding is searched as it is: decode it (`gunzip`) or request it without.
//!
//! Source: nginx documentation, `ngx_http_sub_module`.

mod replace;
mod search;

use std::collections::VecDeque;
use std::rc::Rc;

use conf::{ConfError, Contexts, Directive};
use engines::http::{Chunk, Method};
use server_base::mime::{ALWAYS, MimeTypes};
use server_http::assemble::ConfigBuilder;
use server_http::exchange::{BodyStage, Broken, Ctx, Exchange};
use server_http::module::Module;
use server_http::reply::change_content;
use server_http::settings;
use server_http::settings_set::inherited;
use server_http::value::Value;

use replace::{Pair, Replace};

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "sub",
    directives: &[PLAIN, ROWS],
    settings: &[<SubLoc as server_http::settings_set::Conf>::def],
    header_stage: Some(stage),
    stage_of_subrequests: true,
    on_demand: true,
    ..Module::EMPTY
};

settings! {
    /// Settings of a location.
    pub(crate) struct SubLoc: Location / PLAIN {
        /// Whether each string is replaced only once.
        once "sub_filter_once": bool = true, "on", Contexts::HTTP_SERVER_LOCATION;
        /// Whether a changed response keeps its modification time, and its ETag as a weak one.
        last_modified "sub_filter_last_modified": bool = false, "off", Contexts::HTTP_SERVER_LOCATION;
        /// Media types of responses in which strings are replaced, besides text/html; * for all.
        types "sub_filter_types": MimeTypes = MimeTypes::of(&[ALWAYS]), "text/html", Contexts::HTTP_SERVER_LOCATION;
    }
    extra {
        /// `sub_filter`: strings and their replacements.
        pairs: Vec<(Value, Value)> = inherited
    }
}

conf::directives! {
    const ROWS: ConfigBuilder;

    /// A string of bodies and its replacement.
    directive "sub_filter": Contexts::HTTP_SERVER_LOCATION, TAKE2, "", "string replacement" => sub_filter;
}

fn sub_filter(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    if d.arg(0).is_empty() {
        return Err(ConfError::word(d, d.word(0), "empty search pattern"));
    }
    if b.conf_mut::<SubLoc>().pairs.len() >= PAIRS_MAX {
        let text = format!("number of search patterns exceeds {PAIRS_MAX}");
        return Err(ConfError::at(d, text));
    }
    let string = Value::compile(b, d, d.word(0))?;
    let replacement = Value::compile(b, d, d.word(1))?;
    b.conf_mut::<SubLoc>().pairs.push((string, replacement));
    Ok(())
}

fn stage(x: &mut Exchange, cx: &mut Ctx<'_>) -> Result<(), u16> {
    let http = Rc::clone(&x.route.http);
    let conf: &SubLoc = x.loc(&http);
    if conf.pairs.is_empty() || x.reply.content_length == Some(0) {
        return Ok(());
    }
    if !conf.types.matches(x.reply.content_type.media_type()) {
        return Ok(());
    }
    let mut pairs = Vec::with_capacity(conf.pairs.len());
    for (string, replacement) in &conf.pairs {
        let string = string.to_vec(x, cx).to_ascii_lowercase();
        if !string.is_empty() {
            let replacement = replacement.to_vec(x, cx);
            pairs.push(Pair::new(string, replacement));
        }
    }
    if pairs.is_empty() {
        return Ok(());
    }
    change_content(&mut x.reply, *conf.last_modified);
    if x.head.method != Method::Head {
        x.body
            .stages
            .push(Box::new(Replace::new(pairs, *conf.once)));
    }
    Ok(())
}

impl BodyStage for Replace {
    fn chunk(&mut self, chunk: Chunk, out: &mut VecDeque<Chunk>) -> Result<(), Broken> {
        out.extend(self.take(chunk));
        Ok(())
    }

    fn resume(&mut self, out: &mut VecDeque<Chunk>) -> Result<bool, Broken> {
        let made = self.next();
        let going = made.is_some();
        out.extend(made.filter(|bytes| !bytes.is_empty()).map(Chunk::Owned));
        Ok(going)
    }

    fn end(&mut self, _: &mut VecDeque<Chunk>) -> Result<(), Broken> {
        self.finish();
        Ok(())
    }
}

/// Maximum number of strings of a location.
const PAIRS_MAX: usize = 255;
