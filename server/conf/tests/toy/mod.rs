//! A small language for tests: a few directives of nginx with a type each, applied into a log of lines.
//!
//! The names, contexts and types are nginx's own, so that what is expected here can be compared with nginx.

use std::path::Path;
use std::sync::LazyLock;

use conf::{
    Arity, Builder, ConfError, Contexts, Directive, DirectiveDef, Loader, Memory, Setting, Table,
    each, walk, walk_block, walk_file,
};

/// The main file of every test.
pub(crate) const MAIN_FILE: &str = "/etc/nginx/nginx.conf";

/// The state that the directives are applied to.
pub(crate) struct Toy {
    terse: bool,
    /// One line a directive, as `http/server/sendfile = true`.
    pub(crate) log: Vec<String>,
    loader: Loader,
    /// The open blocks, outermost first.
    blocks: Vec<Block>,
}

#[derive(Default)]
struct Block {
    path: String,
    sendfile: Setting<bool>,
    client_max_body_size: Setting<u64>,
    client_body_buffer_size: Setting<usize>,
    send_timeout: Setting<u64>,
    default_type: Setting<String>,
    max_ranges: Setting<u64>,
    large_client_header_buffers: Setting<(u64, usize)>,
    gzip_comp_level: Setting<u64>,
    if_modified_since: Setting<&'static str>,
}

impl Builder for Toy {
    fn table(&self) -> &Table<Self> {
        static TABLE: LazyLock<Table<Toy>> = LazyLock::new(|| Table::from(&[CORE, HTTP]));
        &TABLE
    }

    fn loader(&mut self) -> &mut Loader {
        &mut self.loader
    }

    fn reads_block(&self, name: &str, context: Contexts) -> bool {
        context == Contexts::MAIN && name == "http"
    }

    fn unknown(&mut self, directive: &Directive, context: Contexts) -> Result<(), ConfError> {
        if self.terse {
            return Err(ConfError::at(directive, "unknown directive"));
        }
        Err(conf::unknown(
            directive,
            context,
            self.table().names(context),
        ))
    }
}

impl Toy {
    /// A builder over these files.
    pub(crate) fn new(files: Memory) -> Self {
        Self {
            log: Vec::new(),
            loader: Loader::new(files, "/etc/nginx"),
            blocks: vec![Block::default()],
            terse: false,
        }
    }

    /// Names no other names for an unknown one, which takes longer than all the rest.
    #[allow(dead_code, reason = "only the fuzz target has no use for suggestions")]
    pub(crate) fn terse(mut self) -> Self {
        self.terse = true;
        self
    }

    /// Loads the main file and applies it.
    pub(crate) fn load(&mut self) -> Result<(), ConfError> {
        let file = self.loader.load(Path::new(MAIN_FILE))?;
        walk_file(self, &file, Contexts::MAIN)
    }

    /// Applies the argument of `-g`.
    pub(crate) fn command_line(&mut self, text: &[u8]) -> Result<(), ConfError> {
        let items = self.loader.command_line(text);
        walk(self, &items, Contexts::MAIN)
    }

    /// The log and the warnings, or the error rendered.
    pub(crate) fn render(&self, result: Result<(), ConfError>) -> String {
        let warnings = self.loader.warnings().iter();
        let mut lines: Vec<_> = warnings
            .map(|(level, text)| format!("[{}] {text}", level.as_str()))
            .collect();
        match result {
            Ok(()) => lines.extend(self.log.iter().cloned()),
            Err(error) => lines.push(error.render(self.loader.files())),
        }
        lines.join("\n")
    }

    fn block(&mut self) -> &mut Block {
        self.blocks
            .last_mut()
            .expect("the outermost block is never closed")
    }

    fn inside(
        &mut self,
        d: &Directive,
        f: impl FnOnce(&mut Self) -> Result<(), ConfError>,
    ) -> Result<(), ConfError> {
        let args: Vec<_> = d.args.iter().map(|word| word.as_str()).collect();
        let path = format!(
            "{}{}/",
            self.block().path,
            [&[d.name()], args.as_slice()].concat().join(" ")
        );
        self.blocks.push(Block {
            path,
            ..Block::default()
        });
        let result = f(self);
        self.blocks.pop();
        result
    }

    fn note(&mut self, d: &Directive, value: impl std::fmt::Debug) {
        let line = format!("{}{} = {value:?}", self.block().path, d.name());
        self.log.push(line);
    }

    fn data(&mut self, d: &Directive) -> Result<(), ConfError> {
        each(self, d.items(), |toy, d| {
            let args = words(d)?;
            toy.note(d, args);
            Ok(())
        })
    }
}

/// A row; with a `{}` after the arity it has a block.
macro_rules! row {
    ($name:expr, $contexts:expr, $arity:ident, $apply:expr) => {
        row!($name, $contexts, $arity, false, $apply)
    };
    ($name:expr, $contexts:expr, $arity:ident {}, $apply:expr) => {
        row!($name, $contexts, $arity, true, $apply)
    };
    ($name:expr, $contexts:expr, $arity:ident, $block:literal, $apply:expr) => {
        DirectiveDef {
            name: $name,
            contexts: $contexts,
            arity: Arity::$arity,
            block: $block,
            default: "",
            doc: "",
            syntax: concat!("<", stringify!($arity), ">"),
            apply: $apply,
        }
    };
}

/// A row whose value is read and noted.
macro_rules! noted {
    ($name:literal, $contexts:expr, $arity:ident, $read:expr) => {
        row!($name, $contexts, $arity, |toy, d| {
            let value = $read(d)?;
            toy.note(d, value);
            Ok(())
        })
    };
}

/// A row whose value is kept in the block, where it may be set once, and noted.
macro_rules! set {
    ($name:ident, $contexts:expr, $arity:ident, $read:expr) => {
        row!(stringify!($name), $contexts, $arity, |toy, d| {
            toy.block().$name.set_with(d, $read)?;
            let value = toy.block().$name.get().cloned();
            toy.note(d, value.expect("it has just been set"));
            Ok(())
        })
    };
}

const CORE: &[DirectiveDef<Toy>] = &[
    noted!("daemon", Contexts::MAIN, FLAG, conf::flag),
    row!("events", Contexts::MAIN, NOARGS {}, |toy, d| {
        toy.inside(d, |toy| walk(toy, d.items(), Contexts::EVENTS))
    }),
    noted!("worker_connections", Contexts::EVENTS, TAKE1, conf::number),
];

const LEVELS: Contexts = Contexts::HTTP_SERVER_LOCATION;

const HTTP: &[DirectiveDef<Toy>] = &[
    row!("http", Contexts::MAIN, NOARGS {}, |toy, d| {
        toy.inside(d, |toy| walk_block(toy, d, Contexts::HTTP))
    }),
    row!("server", Contexts::HTTP, NOARGS {}, |toy, d| {
        toy.inside(d, |toy| walk(toy, d.items(), Contexts::SERVER))
    }),
    row!(
        "location",
        Contexts::SERVER.or(Contexts::LOCATION),
        TAKE12 {},
        |toy, d| { toy.inside(d, |toy| walk(toy, d.items(), Contexts::LOCATION)) }
    ),
    row!("types", LEVELS, NOARGS {}, |toy, d| toy
        .inside(d, |toy| toy.data(d))),
    row!("map", Contexts::HTTP, TAKE2 {}, |toy, d| toy
        .inside(d, |toy| toy.data(d))),
    noted!("server_name", Contexts::SERVER, ONE_MORE, words),
    set!(sendfile, Contexts::HTTP_TO_IF, FLAG, conf::flag),
    set!(client_max_body_size, LEVELS, TAKE1, conf::offset),
    set!(client_body_buffer_size, LEVELS, TAKE1, conf::size),
    set!(send_timeout, LEVELS, TAKE1, conf::time_ms),
    set!(default_type, LEVELS, TAKE1, text),
    set!(max_ranges, LEVELS, TAKE1, conf::number),
    set!(
        large_client_header_buffers,
        Contexts::HTTP_SERVER,
        TAKE2,
        conf::buffers
    ),
    set!(gzip_comp_level, LEVELS, TAKE1, level),
    set!(if_modified_since, LEVELS, TAKE1, validation),
    row!("gzip_proxied", LEVELS, ONE_MORE, |toy, d| {
        let value = conf::mask(toy.loader(), d, &[("off", 1), ("expired", 2), ("any", 4)])?;
        toy.note(d, value);
        Ok(())
    }),
];

fn words(d: &Directive) -> Result<Vec<String>, ConfError> {
    Ok(d.args.iter().map(|word| word.as_str().to_owned()).collect())
}

fn text(d: &Directive) -> Result<String, ConfError> {
    Ok(d.arg_str(0).to_owned())
}

fn level(d: &Directive) -> Result<u64, ConfError> {
    let level = conf::number(d)?;
    conf::between(d, level, 1, 9)
}

fn validation(d: &Directive) -> Result<&'static str, ConfError> {
    conf::choice(
        d,
        &[("off", "off"), ("exact", "exact"), ("before", "before")],
    )
}
