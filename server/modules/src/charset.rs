//! `charset`, `source_charset`, `override_charset`, `charset_types`, `charset_map`.
//!
//! Adds the charset to responses. If the source has another charset, the body is converted by a configured table: byte
//! by byte, or between a single-byte charset and UTF-8.
//!
//! Source: nginx documentation, `ngx_http_charset_module`.

mod recode;

use std::rc::Rc;
use std::sync::Arc;

use conf::{ConfError, Contexts, Directive};
use engines::http::FieldId;
use server_base::errlog::{Level, Printable};
use server_base::mime::MimeTypes;
use server_http::assemble::ConfigBuilder;
use server_http::exchange::{Ctx, Exchange};
use server_http::module::Module;
use server_http::settings;
use server_http::value::Value;

use recode::{Builder, Direction, Recode, Table};

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "charset",
    directives: &[MAIN_PLAIN, PLAIN, ROWS],
    settings: &[
        <CharsetMain as server_http::settings_set::Conf>::def,
        <CharsetLoc as server_http::settings_set::Conf>::def,
    ],
    header_stage: Some(stage),
    stage_of_subrequests: true,
    finish: Some(check_tables),
    on_demand: true,
    ..Module::EMPTY
};

settings! {
    /// Settings that exist once.
    pub(crate) struct CharsetMain: Main / MAIN_PLAIN {}
    extra {
        /// All charsets of the configuration, as first written.
        names: Vec<Vec<u8>>,
        /// `charset_map`: two charsets by their index, and the table between them.
        tables: Vec<(usize, usize, Arc<Table>)>
    }
}

settings! {
    /// Settings of a location.
    pub(crate) struct CharsetLoc: Location / PLAIN {
        /// Whether a charset that the response has already is changed too.
        override_charset "override_charset": bool = false, "off", Contexts::HTTP_TO_IF;
        /// Media types of responses that get a charset, besides text/html; * for all.
        types "charset_types": MimeTypes = MimeTypes::of(DEFAULT_TYPES),
            "text/html text/xml text/plain text/vnd.wap.wml application/javascript application/rss+xml",
            Contexts::HTTP_SERVER_LOCATION;
    }
    extra {
        /// `charset`.
        charset: Option<CharsetName>,
        /// `source_charset`.
        source: Option<CharsetName>
    }
    merge inherit;
}

/// A charset as a directive names it.
#[derive(Clone)]
pub(crate) enum CharsetName {
    /// None.
    Off,
    /// Its index among the names.
    Known(usize),
    /// A variable has its name.
    Computed(Value),
}

fn inherit(own: &mut CharsetLoc, parent: Option<&CharsetLoc>) {
    match parent {
        Some(parent) => {
            own.charset
                .get_or_insert_with(|| parent.charset.clone().unwrap_or(CharsetName::Off));
            own.source
                .get_or_insert_with(|| parent.source.clone().unwrap_or(CharsetName::Off));
        }
        None => {
            own.charset.get_or_insert(CharsetName::Off);
            own.source.get_or_insert(CharsetName::Off);
        }
    }
}

conf::directives! {
    const ROWS: ConfigBuilder;

    /// Charset to name in Content-Type, and to change bodies of another one to.
    directive "charset": Contexts::HTTP_TO_IF, TAKE1, "off", "charset | off" => |b, d| {
        let choice = if d.arg(0) == b"off" {
            CharsetName::Off
        } else {
            choice(b, d)?
        };
        once(&mut b.conf_mut::<CharsetLoc>().charset, d, choice)
    };

    /// Charset that bodies have.
    directive "source_charset": Contexts::HTTP_TO_IF, TAKE1, "", "charset" => |b, d| {
        let choice = choice(b, d)?;
        once(&mut b.conf_mut::<CharsetLoc>().source, d, choice)
    };

    /// Table from one charset to another and back.
    block "charset_map": Contexts::HTTP, TAKE2, "", "charset1 charset2 { ... }" => charset_map;
}

fn once(
    slot: &mut Option<CharsetName>,
    d: &Directive,
    choice: CharsetName,
) -> Result<(), ConfError> {
    match slot.replace(choice) {
        None => Ok(()),
        Some(_) => Err(ConfError::directive(d, "is duplicate")),
    }
}

fn choice(b: &mut ConfigBuilder, d: &Directive) -> Result<CharsetName, ConfError> {
    if d.arg(0).starts_with(b"$") {
        return Value::compile(b, d, d.word(0)).map(CharsetName::Computed);
    }
    Ok(CharsetName::Known(
        b.conf_mut::<CharsetMain>().index(d.arg(0)),
    ))
}

impl CharsetMain {
    /// Returns the index of a name, after adding it if it is new.
    fn index(&mut self, name: &[u8]) -> usize {
        self.index_of(name).unwrap_or_else(|| {
            self.names.push(name.to_vec());
            self.names.len() - 1
        })
    }

    fn index_of(&self, name: &[u8]) -> Option<usize> {
        self.names.iter().position(|n| n.eq_ignore_ascii_case(name))
    }

    /// The table from one charset to another, and the direction in which it is used.
    fn table(&self, from: usize, to: usize) -> Option<(Arc<Table>, Direction)> {
        self.tables.iter().find_map(|(a, b, table)| match (*a, *b) {
            ends if ends == (from, to) => Some((Arc::clone(table), Direction::Forth)),
            ends if ends == (to, from) => Some((Arc::clone(table), Direction::Back)),
            _ => None,
        })
    }
}

fn charset_map(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let main = b.conf_mut::<CharsetMain>();
    let (from, to) = (main.index(d.arg(0)), main.index(d.arg(1)));
    let (shown_from, shown_to) = (d.arg_str(0), d.arg_str(1));
    if from == to {
        let text = format!(
            "\"charset_map\" between the same charsets \"{shown_from}\" and \"{shown_to}\""
        );
        return Err(ConfError::at(d, text));
    }
    if d.arg(0).eq_ignore_ascii_case(b"utf-8") {
        let text = "\"charset_map\" with \"utf-8\" charset should be given in the second column";
        return Err(ConfError::word(d, d.word(0), text));
    }
    if main.table(from, to).is_some() {
        let text = format!("duplicate \"charset_map\" between \"{shown_from}\" and \"{shown_to}\"");
        return Err(ConfError::at(d, text));
    }
    let mut builder = Builder::new(d.arg(1).eq_ignore_ascii_case(b"utf-8"));
    conf::each(b, d.items(), |_, line| {
        let [to] = line.args.as_slice() else {
            return Err(ConfError::at(line, "invalid parameters number"));
        };
        builder.add(&line.name.text, &to.text).map_err(|wrong| {
            let word = if wrong == recode::Wrong::From {
                &line.name
            } else {
                to
            };
            ConfError::invalid(line, word)
        })
    })?;
    b.conf_mut::<CharsetMain>()
        .tables
        .push((from, to, Arc::new(builder.finish())));
    Ok(())
}

/// Verifies that there is a table between the two charsets of each location.
fn check_tables(b: &mut ConfigBuilder) -> Result<(), ConfError> {
    let known = |choice: &Option<CharsetName>| {
        if let Some(CharsetName::Known(n)) = choice {
            Some(*n)
        } else {
            None
        }
    };
    let pairs: Vec<(usize, usize)> = b
        .location_confs_mut::<CharsetLoc>()
        .filter_map(|loc| Some((known(&loc.source)?, known(&loc.charset)?)))
        .filter(|(from, to)| from != to)
        .collect();
    let main = b.main_conf::<CharsetMain>();
    match pairs
        .iter()
        .find(|(from, to)| main.table(*from, *to).is_none())
    {
        Some((from, to)) => Err(ConfError::new(no_table(
            &main.names[*from],
            &main.names[*to],
        ))),
        None => Ok(()),
    }
}

fn no_table(from: &[u8], to: &[u8]) -> String {
    let (from, to) = (String::from_utf8_lossy(from), String::from_utf8_lossy(to));
    format!("no \"charset_map\" between the charsets \"{from}\" and \"{to}\"")
}

fn stage(x: &mut Exchange, cx: &mut Ctx<'_>) -> Result<(), u16> {
    let http = Rc::clone(&x.route.http);
    let main: &CharsetMain = http.main();
    let conf: &CharsetLoc = x.loc(&http);
    if x.is_subrequest() {
        adapt(x, cx, main, conf);
        return Ok(());
    }
    let to = match overridden(x, main) {
        Some(to) => to,
        None if applies(x, conf) => resolve(conf.charset.as_ref(), main, x, cx),
        None => None,
    };
    let Some(to) = to else { return Ok(()) };
    let from = if x.reply.charset.is_empty() {
        resolve(conf.source.as_ref(), main, x, cx)
    } else {
        Some(x.reply.charset.clone())
    };
    match from {
        Some(from) if !from.eq_ignore_ascii_case(&to) => change(x, main, &from, &to),
        Some(_) => {
            x.reply.content_type.remove_charset();
            name_charset(x, &to);
        }
        None => name_charset(x, &to),
    }
    Ok(())
}

/// Returns the charset that the upstream server named in `X-Accel-Charset`; `Some(None)` for an unknown charset.
fn overridden(x: &Exchange, main: &CharsetMain) -> Option<Option<Vec<u8>>> {
    let name = &x.upstream.as_ref()?.charset;
    if name.is_empty() || x.reply.content_type.is_empty() {
        return None;
    }
    let mut known = main.names.iter();
    let known = known.find(|known| known.eq_ignore_ascii_case(name));
    if known.is_none() {
        let name = Printable(name);
        let text = format_args!("unknown charset \"{name}\" to override");
        x.log(Level::Error, text);
    }
    Some(known.cloned())
}

/// Converts the body of a subrequest to the charset of the enclosing response.
fn adapt(x: &mut Exchange, cx: &mut Ctx<'_>, main: &CharsetMain, conf: &CharsetLoc) {
    let to = x.subrequests.charset().to_vec();
    let from = if x.reply.charset.is_empty() {
        resolve(conf.source.as_ref(), main, x, cx)
    } else {
        Some(x.reply.charset.clone())
    };
    if let Some(from) = from.filter(|from| !to.is_empty() && !from.eq_ignore_ascii_case(&to)) {
        change(x, main, &from, &to);
    }
}

/// Returns the charset that the response will have, for the producer of its body.
pub(crate) fn upcoming(x: &mut Exchange, cx: &mut Ctx<'_>) -> Vec<u8> {
    let http = Rc::clone(&x.route.http);
    let conf: &CharsetLoc = x.loc(&http);
    let named = if applies(x, conf) {
        resolve(conf.charset.as_ref(), http.main(), x, cx)
    } else {
        None
    };
    named.unwrap_or_else(|| x.reply.charset.clone())
}

/// Whether a charset may be added to the response.
fn applies(x: &Exchange, conf: &CharsetLoc) -> bool {
    if x.reply.content_type.is_empty() {
        return false;
    }
    if x.reply.charset.is_empty() {
        conf.types.matches(x.reply.content_type.media_type())
    } else {
        *conf.override_charset
    }
}

/// Returns the name of a charset, if there is one.
fn resolve(
    choice: Option<&CharsetName>,
    main: &CharsetMain,
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
) -> Option<Vec<u8>> {
    match choice? {
        CharsetName::Off => None,
        CharsetName::Known(n) => Some(main.names[*n].clone()),
        CharsetName::Computed(value) => Some(value.to_vec(x, cx)).filter(|name| !name.is_empty()),
    }
}

fn name_charset(x: &mut Exchange, name: &[u8]) {
    x.reply.charset.clear();
    // As nginx: on a redirect old browsers would take it for that of the next page.
    if !matches!(x.reply.status, 301 | 302) {
        x.reply.charset.extend_from_slice(name);
    }
}

/// Adds the converting body stage, if there is a table.
fn change(x: &mut Exchange, main: &CharsetMain, from: &[u8], to: &[u8]) {
    if x.reply
        .fields
        .get(FieldId::ContentEncoding)
        .is_some_and(|coding| !coding.is_empty())
    {
        return;
    }
    let table = main
        .index_of(from)
        .zip(main.index_of(to))
        .and_then(|(from, to)| main.table(from, to));
    let Some((table, direction)) = table else {
        return x.log(Level::Error, format_args!("{}", no_table(from, to)));
    };
    x.reply.content_type.remove_charset();
    name_charset(x, to);
    if table.changes_length() {
        x.reply.content_length = None;
    }
    x.body.stages.push(Box::new(Recode::new(table, direction)));
}

/// Default of `charset_types`.
const DEFAULT_TYPES: &[&str] = &[
    "text/html",
    "text/xml",
    "text/plain",
    "text/vnd.wap.wml",
    "application/javascript",
    "application/rss+xml",
];
