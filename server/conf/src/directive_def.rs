//! Directive tables and the walk that applies them.
//!
//! A [`DirectiveDef`] defines a directive: its contexts, the number of its arguments, whether it has a block, and its effect.
//! [`walk`] takes the items of a text in order and, for each, checks the table in nginx's order (name and context, block,
//! arguments) with nginx's wording, then calls the row. `include` is part of the walk. [`walk_block`] walks a block that may be
//! large: its items are parsed one after the other. [`each`] walks blocks of data, not of directives (`types`, `map`, `geo`).
//!
//! Source: nginx development guide, "Configuration directives".

use std::collections::HashMap;

use crate::parse::{Part, Reader};
use crate::{Arity, ConfError, Contexts, Directive, FileText, Item, Loader, Word, unbuilt};

/// The function of a row that applies its directive.
pub type Apply<B> = fn(&mut B, &Directive) -> Result<(), ConfError>;

/// One directive of the table, or one of its forms: a name may have several rows with different contexts.
pub struct DirectiveDef<B: 'static> {
    /// The name.
    pub name: &'static str,
    /// The contexts that allow it.
    pub contexts: Contexts,
    /// Number of its arguments.
    pub arity: Arity,
    /// Whether it has a block instead of a semicolon.
    pub block: bool,
    /// The default value as nginx documents it, "" when there is none.
    pub default: &'static str,
    /// One line for the documentation.
    pub doc: &'static str,
    /// The arguments, as in nginx's documentation, without the name.
    pub syntax: &'static str,
    /// Called with each directive that passed the checks.
    pub apply: Apply<B>,
}

/// Declares a table of directives; their doc comments are the documentation.
///
/// ```text
/// conf::directives! {
///     /// What the table is.
///     pub(super) const ROWS: ConfigBuilder;
///
///     /// What the directive does.
///     directive "name": contexts, ARITY, "default", "syntax" => function;
///
///     /// What the block is.
///     block "name": contexts, ARITY, "", "{ ... }" => function;
/// }
/// ```
#[macro_export]
macro_rules! directives {
    (
        $(#[$meta:meta])*
        $vis:vis const $rows:ident: $builder:ty;
        $(
            $(#[doc = $doc:literal])+
            $form:ident $name:literal: $contexts:expr, $arity:ident, $default:literal, $syntax:literal => $apply:expr;
        )*
    ) => {
        $(#[$meta])*
        $vis const $rows: &[$crate::DirectiveDef<$builder>] = &[
            $( $crate::DirectiveDef {
                name: $name,
                contexts: $contexts,
                arity: $crate::Arity::$arity,
                block: $crate::directives!(@$form),
                default: $default,
                doc: concat!($($doc),+),
                syntax: $syntax,
                apply: $apply,
            }, )*
        ];
    };
    (@directive) => {
        false
    };
    (@block) => {
        true
    };
}

/// The target of a walk: the owner of the table and the loader.
pub trait Builder: Sized + 'static {
    /// The directives it knows.
    fn table(&self) -> &Table<Self>;

    /// The loader that reads includes.
    fn loader(&mut self) -> &mut Loader;

    /// Called with each directive that passed the checks, before its row is.
    fn applying(&mut self, _directive: &Directive, _row: &'static DirectiveDef<Self>) {}

    /// Whether the row of this name in a context reads its block by [`walk_block`]. Then that is not parsed before the row
    /// is called, and [`Directive::items`] is empty. By default no row does.
    fn reads_block(&self, _name: &str, _context: Contexts) -> bool {
        false
    }

    /// Called for a name that has no row at all. By default an error, which distinguishes a directive of nginx that is
    /// not built from an unknown name.
    ///
    /// # Errors
    /// When the directive cannot be passed over.
    fn unknown(&mut self, directive: &Directive, context: Contexts) -> Result<(), ConfError> {
        Err(unbuilt::unknown(
            directive,
            context,
            self.table().names(context),
        ))
    }
}

/// The rows of all modules, by name.
pub struct Table<B: 'static> {
    rows: HashMap<&'static str, Vec<&'static DirectiveDef<B>>>,
}

impl<B: 'static> Table<B> {
    /// A table of the rows of all `modules`; rows of one name keep the order they are given in.
    pub fn from(modules: &[&'static [DirectiveDef<B>]]) -> Self {
        let mut rows: HashMap<_, Vec<_>> = HashMap::new();
        for row in modules.iter().copied().flatten() {
            rows.entry(row.name).or_default().push(row);
        }
        Self { rows }
    }

    /// The rows of a name.
    pub fn lookup(&self, name: &str) -> &[&'static DirectiveDef<B>] {
        self.rows.get(name).map_or(&[], Vec::as_slice)
    }

    /// The names allowed in a context, in no particular order.
    pub fn names(&self, context: Contexts) -> impl Iterator<Item = &'static str> {
        self.rows()
            .filter(move |row| row.contexts.contains(context))
            .map(|row| row.name)
    }

    /// All rows; in no particular order.
    pub fn rows(&self) -> impl Iterator<Item = &'static DirectiveDef<B>> {
        self.rows.values().flatten().copied()
    }
}

/// Applies the items of a text or block that is in `context` (one context) to the builder.
///
/// # Errors
/// The first error met, in the order of the text.
pub fn walk<B: Builder>(
    builder: &mut B,
    items: &[Item],
    context: Contexts,
) -> Result<(), ConfError> {
    items
        .iter()
        .try_for_each(|item| walk_item(builder, item, context))
}

/// Reads a file and walks it, see [`walk`].
///
/// # Errors
/// The first error met, in the order of the text.
pub fn walk_file<B: Builder>(
    builder: &mut B,
    file: &FileText,
    context: Contexts,
) -> Result<(), ConfError> {
    walk_rest(builder, file.reader(), context).map(drop)
}

/// Walks the block of the directive that is applied, see [`walk`]. The block may be parsed already or not.
///
/// # Errors
/// The first error met, in the order of the text.
pub fn walk_block<B: Builder>(
    builder: &mut B,
    d: &Directive,
    context: Contexts,
) -> Result<(), ConfError> {
    match builder.loader().take_open() {
        Some(reader) => {
            let reader = walk_rest(builder, reader, context)?;
            builder.loader().put_open(reader);
            Ok(())
        }
        None => walk(builder, d.items(), context),
    }
}

/// Walks the rest of the innermost open block of a text, or of the text.
fn walk_rest<B: Builder>(
    builder: &mut B,
    mut reader: Reader,
    context: Contexts,
) -> Result<Reader, ConfError> {
    let depth = reader.depth();
    loop {
        match reader.next(&|name| builder.reads_block(name, context)) {
            Part::Item(item) => walk_item(builder, &item, context)?,
            Part::Open(d) => {
                builder.loader().put_open(reader);
                apply(builder, &d, context)?;
                let read = builder.loader().take_open();
                reader = read.ok_or_else(|| ConfError::at(&d, "its block was lost"))?;
                // A row may have no use for the block, as one that is parsed with its directive.
                while reader.depth() > depth {
                    reader.next(&|_| false);
                }
            }
            Part::End => return Ok(reader),
        }
    }
}

fn walk_item<B: Builder>(builder: &mut B, item: &Item, context: Contexts) -> Result<(), ConfError> {
    match item {
        Item::Error(error) => Err(error.clone()),
        Item::Directive(d) if d.name == *"include" => {
            check_form(builder, d, false, Arity::TAKE1, "file | mask")?;
            include(builder, d, &mut |builder, file| {
                walk_file(builder, file, context)
            })
        }
        Item::Directive(d) => apply(builder, d, context),
    }
}

/// Passes each directive of a block of data to `f`; follows includes and refuses blocks.
///
/// # Errors
/// The first error met, in the order of the text.
pub fn each<B: Builder>(
    builder: &mut B,
    items: &[Item],
    mut f: impl FnMut(&mut B, &Directive) -> Result<(), ConfError>,
) -> Result<(), ConfError> {
    items
        .iter()
        .try_for_each(|item| each_item(builder, item, &mut f))
}

type Visit<'a, B> = &'a mut dyn FnMut(&mut B, &Directive) -> Result<(), ConfError>;

fn each_item<B: Builder>(builder: &mut B, item: &Item, f: Visit<'_, B>) -> Result<(), ConfError> {
    match item {
        Item::Error(error) => Err(error.clone()),
        Item::Directive(d) if d.block.is_some() => Err(ConfError::at(d, "unexpected \"{\"")),
        Item::Directive(d) if d.name == *"include" => {
            check_form(builder, d, false, Arity::TAKE1, "file | mask")?;
            include(builder, d, &mut |builder, file| {
                file.each(|item| each_item(builder, item, f))
            })
        }
        Item::Directive(d) => f(builder, d),
    }
}

type OnFile<'a, B> = &'a mut dyn FnMut(&mut B, &FileText) -> Result<(), ConfError>;

/// Reads the files an `include` names one after the other, each only when the one before has been applied.
fn include<B: Builder>(
    builder: &mut B,
    d: &Directive,
    on_file: OnFile<'_, B>,
) -> Result<(), ConfError> {
    for path in builder.loader().include_paths(d)? {
        let file = builder.loader().enter(d, &path)?;
        let result = on_file(builder, &file);
        builder.loader().leave();
        result?;
    }
    Ok(())
}

fn apply<B: Builder>(builder: &mut B, d: &Directive, context: Contexts) -> Result<(), ConfError> {
    let rows = builder.table().lookup(d.name());
    if rows.is_empty() {
        return builder.unknown(d, context);
    }
    let Some(row) = rows
        .iter()
        .copied()
        .find(|row| row.contexts.contains(context))
    else {
        let allowed = rows
            .iter()
            .fold(Contexts::NONE, |all, row| all | row.contexts);
        return Err(ConfError::directive(d, "is not allowed here")
            .with_hint(format!("it is allowed in: {allowed}")));
    };
    check_form(builder, d, row.block, row.arity, row.syntax)?;
    builder.applying(d, row);
    (row.apply)(builder, d)
}

/// Block or semicolon, then the number of arguments.
fn check_form<B: Builder>(
    builder: &B,
    d: &Directive,
    block: bool,
    arity: Arity,
    syntax: &str,
) -> Result<(), ConfError> {
    let error = match (block, d.block.is_some()) {
        (false, true) => ConfError::at(
            d,
            format!("directive \"{}\" is not terminated by \";\"", d.name()),
        ),
        (true, false) => ConfError::at(
            d,
            format!("directive \"{}\" has no opening \"{{\"", d.name()),
        ),
        _ if !arity.accepts(d.args.len()) => ConfError::at(
            d,
            format!("invalid number of arguments in \"{}\" directive", d.name()),
        ),
        _ => return Ok(()),
    };
    Err(match missing_semicolon(builder, d) {
        Some(line) => error.with_hint(format!("is a \";\" missing at the end of line {line}?")),
        None if !arity.accepts(d.args.len()) && !syntax.is_empty() => {
            error.with_hint(format!("syntax: {} {syntax}", d.name()))
        }
        None => error,
    })
}

/// The line that seems to lack its semicolon: the next one begins with the name of a directive.
fn missing_semicolon<B: Builder>(builder: &B, d: &Directive) -> Option<u32> {
    let known = |word: &Word| {
        let name = word.as_str();
        !word.quoted
            && (!builder.table().lookup(name).is_empty() || unbuilt::known_to_nginx(name).is_some())
    };
    let before = std::iter::once(&d.name).chain(&d.args);
    let next = before
        .zip(&d.args)
        .find(|(word, next)| next.pos.line > word.pos.line && known(next));
    next.map(|(word, _)| word.pos.line)
}

#[cfg(test)]
#[path = "directive_def_tests.rs"]
mod tests;
