//! Types of directive values: they turn the words of a directive into a value of a settings field.
//!
//! A row names a type; the type knows its arity and its syntax for the reference, and parses itself.

use conf::{Arity, ConfError, Directive};

use crate::config::ConfigContext;
use crate::files::TempDir;

/// A value that a directive's words can be parsed into.
pub trait FromArgs: Sized {
    /// The number of words.
    const ARITY: Arity = Arity::TAKE1;
    /// Syntax after the name, as the reference shows it.
    const SYNTAX: &'static str;

    /// Parses the words.
    ///
    /// # Errors
    /// nginx's wording for a value of this type.
    fn parse(cx: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError>;

    /// Parses the words of a repeated directive; `self` is the value set by the earlier one at this level.
    ///
    /// # Errors Most directives may be written once in a level; others return the errors of [`FromArgs::parse`].
    fn parse_again(self, _: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        Err(ConfError::directive(d, "is duplicate"))
    }
}

impl FromArgs for bool {
    const ARITY: Arity = Arity::FLAG;
    const SYNTAX: &'static str = "on | off";

    fn parse(_: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        conf::flag(d)
    }
}

/// Declares values of one number: `Name "syntax" = how it is read`.
macro_rules! numbers {
    ($($(#[$meta:meta])+ $name:ident $syntax:literal = $read:expr;)+) => {
        $($(#[$meta])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
        pub struct $name(pub u64);

        impl FromArgs for $name {
            const SYNTAX: &'static str = $syntax;

            fn parse(_: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
                $read(d).map(Self)
            }
        })+
    };
}

numbers! {
    /// A size in bytes: `10`, `8k`, `1m`.
    Size "size" = |d| conf::size(d).map(|n| n as u64);

    /// A size of a file or a body, up to 2^63-1: `10`, `8k`, `1m`, `2g`.
    Offset "size" = conf::offset;

    /// A time in milliseconds: `60`, `60s`, `1h 30m`, `100ms`.
    Millis "time" = conf::time_ms;

    /// A number.
    Number "number" = conf::number;
}

/// A number from `LEAST` to `MOST`.
#[derive(Clone, Copy, Debug)]
pub struct Between<const LEAST: u64, const MOST: u64>(pub u64);

impl<const LEAST: u64, const MOST: u64> FromArgs for Between<LEAST, MOST> {
    const SYNTAX: &'static str = "number";

    fn parse(_: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        conf::between(d, conf::number(d)?, LEAST, MOST).map(Self)
    }
}

/// Number and size of buffers: `4 8k`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffers {
    /// Number of buffers.
    pub number: u32,
    /// Size of each in bytes.
    pub size: u64,
}

impl FromArgs for Buffers {
    const ARITY: Arity = Arity::TAKE2;
    const SYNTAX: &'static str = "number size";

    fn parse(_: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        let (number, size) = conf::buffers(d)?;
        let number = u32::try_from(number)
            .ok()
            .filter(|n| *n <= MAX_BUFFERS)
            .ok_or_else(|| invalid(d))?;
        Ok(Self {
            number,
            size: size as u64,
        })
    }
}

/// Any text, variables not interpreted.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Text(pub Vec<u8>);

impl FromArgs for Text {
    const SYNTAX: &'static str = "string";

    fn parse(_: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        Ok(Self(d.arg(0).to_vec()))
    }
}

/// Permission bits of new files, by `dav_access` and similar directives.
#[derive(Clone, Copy, Debug)]
pub struct Access(pub u32);

impl FromArgs for Access {
    const ARITY: Arity = Arity::TAKE123;
    const SYNTAX: &'static str = "users:permissions ...";

    fn parse(_: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        let (mut access, mut user) = (0, 0o600);
        for word in &d.args {
            let (who, right) = word.as_str().split_once(':').unwrap_or_default();
            let shift = match who {
                "user" => {
                    user = 0;
                    6
                }
                "group" => 3,
                "all" => 0,
                _ => return Err(ConfError::invalid(d, word)),
            };
            let right = match right {
                "rw" => 6,
                "r" => 4,
                _ => return Err(ConfError::invalid(d, word)),
            };
            access |= right << shift;
        }
        Ok(Self(access | user))
    }
}

impl Access {
    /// Returns the permission bits for directories: read permission implies search permission.
    #[must_use]
    pub fn of_directories(self) -> u32 {
        self.0 | (self.0 & 0o444) >> 2
    }
}

/// `*_temp_path`.
impl FromArgs for TempDir {
    const ARITY: Arity = Arity::TAKE1234;
    const SYNTAX: &'static str = "path [level1 [level2 [level3]]]";

    fn parse(cx: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        let invalid = |n: usize| {
            let text = format!("\"{}\" directive invalid value", d.name());
            ConfError::word(d, d.word(n), text)
        };
        let mut levels = [0; 3];
        let mut digits = 0;
        for (level, n) in levels.iter_mut().zip(1..d.args.len()) {
            let number = conf::parse_number(d.arg(n)).filter(|n| (1..=DIGITS).contains(n));
            let number = number.ok_or_else(|| invalid(n))?;
            digits += number;
            *level = number as u8;
        }
        if digits > DIGITS {
            return Err(invalid(d.args.len() - 1));
        }
        let path = d.arg(0);
        let path = cx.full_path(path.strip_suffix(b"/").unwrap_or(path));
        Ok(Self { path, levels })
    }
}

/// Digits of the number of a temporary file, which name its subdirectories.
const DIGITS: u64 = 10;

/// Declares an enum that is one word of a fixed list.
#[macro_export]
macro_rules! keyword {
    ($(#[$meta:meta])* pub enum $name:ident { $( $(#[$vmeta:meta])+ $variant:ident = $word:literal ),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $( $(#[$vmeta])+ $variant, )+ }

        impl $crate::from_args::FromArgs for $name {
            const SYNTAX: &'static str = $crate::keyword!(@syntax $($word),+);

            fn parse(_: &mut dyn $crate::config::ConfigContext, d: &::conf::Directive) -> Result<Self, ::conf::ConfError> {
                $( if d.arg(0) == $word.as_bytes() { return Ok(Self::$variant); } )+
                Err(::conf::ConfError::invalid(d, d.word(0)))
            }
        }
    };
    (@syntax $first:literal $(, $rest:literal)*) => { concat!($first $(, " | ", $rest)*) };
}

/// The error for a value that is not of its type.
pub fn invalid(d: &Directive) -> ConfError {
    ConfError::word(
        d,
        d.word(0),
        format!("\"{}\" directive invalid value", d.name()),
    )
}

/// Maximum number of buffers of a directive.
const MAX_BUFFERS: u32 = 1024;
