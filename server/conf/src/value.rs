//! Typed values: flags, numbers, sizes, times, choices.
//!
//! Each type comes twice: `parse_x` turns bytes into a value or `None`; `x` reads the first argument of a directive and reports
//! its errors in nginx's words. Sizes are powers of 1024; a time without a unit is seconds.
//!
//! Source: nginx documentation, "Configuration file measurement units".

use crate::{ConfError, Directive, Level, Loader, Word};

/// `on` or `off`, in any case.
pub fn parse_flag(text: &[u8]) -> Option<bool> {
    parse_enum(text, &[("on", true), ("off", false)])
}

/// Decimal digits, at least one, up to 2^63 - 1.
pub fn parse_number(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter()
        .try_fold(0, |value, byte| append_digit(value, *byte))
}

/// Decimal digits, at least one, as a number of a type that holds it.
///
/// Unlike `str::parse` it takes no `+`; nginx takes none either.
pub fn parse_digits<T: TryFrom<u64>>(text: &str) -> Option<T> {
    T::try_from(parse_number(text.as_bytes())?).ok()
}

fn append_digit(value: u64, byte: u8) -> Option<u64> {
    let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
    value
        .checked_mul(10)?
        .checked_add(digit)
        .filter(|value| *value <= NUMBER_MAX)
}

/// A size in bytes, with `k` or `m` in either case.
pub fn parse_size(text: &[u8]) -> Option<usize> {
    usize::try_from(parse_scaled(text, b"km")?).ok()
}

/// An offset in bytes, with `k`, `m` or `g` in either case.
pub fn parse_offset(text: &[u8]) -> Option<u64> {
    parse_scaled(text, b"kmg")
}

fn parse_scaled(text: &[u8], units: &[u8]) -> Option<u64> {
    let last = text.last()?.to_ascii_lowercase();
    let (digits, scale) = match units.iter().position(|unit| *unit == last) {
        Some(index) => (&text[..text.len() - 1], 1 << (10 * (index + 1))),
        None => (text, 1),
    };
    parse_number(digits)?
        .checked_mul(scale)
        .filter(|bytes| *bytes <= NUMBER_MAX)
}

/// A time in milliseconds: `M`, `w`, `d`, `h`, `m`, `s`, `ms` in this order, as `1h 30m` or `500ms`.
pub fn parse_time_ms(text: &[u8]) -> Option<u64> {
    parse_time(text, 1000)
}

/// A time in seconds: `y`, `M`, `w`, `d`, `h`, `m`, `s` in this order.
pub fn parse_time_s(text: &[u8]) -> Option<u64> {
    parse_time(text, 1)
}

/// Units from the longest, with their seconds. Only whole seconds have years, only milliseconds `ms`.
const TIME_UNITS: &[(u8, u64)] = &[
    (b'y', 31_536_000),
    (b'M', 2_592_000),
    (b'w', 604_800),
    (b'd', 86_400),
    (b'h', 3600),
    (b'm', 60),
    (b's', 1),
];

fn parse_time(text: &[u8], per_second: u64) -> Option<u64> {
    // A unit may not follow itself or a shorter unit; `next` is the largest unit that is still allowed. Nothing may follow
    // `ms`, or a blank after a number without a unit, which is in seconds.
    let milliseconds = per_second != 1;
    let ms_rank = TIME_UNITS.len();
    let seconds_rank = ms_rank - 1;
    let mut next = usize::from(milliseconds);
    let (mut total, mut value) = (0_u64, 0_u64);
    let mut digits = false;
    let mut rest = text;
    while let [byte, after @ ..] = rest {
        rest = after;
        if byte.is_ascii_digit() {
            value = append_digit(value, *byte)?;
            digits = true;
            continue;
        }
        let (rank, scale) = if *byte == b'm' && rest.first() == Some(&b's') {
            rest = &rest[1..];
            (milliseconds.then_some(ms_rank)?, 1)
        } else if *byte == b' ' {
            (
                if next <= seconds_rank {
                    ms_rank
                } else {
                    return None;
                },
                per_second,
            )
        } else {
            let rank = TIME_UNITS.iter().position(|(unit, _)| unit == byte)?;
            (rank, TIME_UNITS[rank].1 * per_second)
        };
        if rank < next {
            return None;
        }
        next = rank + 1;
        total = add_scaled(total, value, scale)?;
        value = 0;
        while let [b' ', after @ ..] = rest {
            rest = after;
        }
    }
    if digits {
        add_scaled(total, value, per_second)
    } else {
        None
    }
}

fn add_scaled(total: u64, value: u64, scale: u64) -> Option<u64> {
    total
        .checked_add(value.checked_mul(scale)?)
        .filter(|sum| *sum <= NUMBER_MAX)
}

/// The value of a name, compared without case.
pub fn parse_enum<T: Copy>(text: &[u8], names: &[(&str, T)]) -> Option<T> {
    names
        .iter()
        .find(|(name, _)| name.as_bytes().eq_ignore_ascii_case(text))
        .map(|(_, value)| *value)
}

/// The bits of all the names, or the first word that is none of them.
///
/// # Errors
/// The index of the word that is no name.
pub fn parse_mask(words: &[Word], names: &[(&str, u32)]) -> Result<u32, usize> {
    words.iter().enumerate().try_fold(0, |mask, (index, word)| {
        match parse_enum(&word.text, names) {
            Some(bits) => Ok(mask | bits),
            None => Err(index),
        }
    })
}

/// The first argument as it is.
///
/// # Errors
/// None; the signature is that of the other readers.
pub fn text(d: &Directive) -> Result<Vec<u8>, ConfError> {
    Ok(d.arg(0).to_vec())
}

/// Checks that a directive is not written twice in a level; `is_set`: it has been written there before.
///
/// # Errors
/// `"x" directive is duplicate`
pub fn once(d: &Directive, is_set: bool) -> Result<(), ConfError> {
    match is_set {
        true => Err(ConfError::directive(d, "is duplicate")),
        false => Ok(()),
    }
}

/// Returns whether a directive has the argument `name` at `index`, after its required ones.
///
/// # Errors A different argument: `invalid parameter`.
pub fn has_option(d: &Directive, index: usize, name: &[u8]) -> Result<bool, ConfError> {
    match d.args.get(index) {
        None => Ok(false),
        Some(word) if word.text.as_slice() == name => Ok(true),
        Some(word) => Err(ConfError::parameter(d, word)),
    }
}

/// `on` or `off`.
///
/// # Errors
/// `invalid value "v" in "x" directive, it must be "on" or "off"`
pub fn flag(d: &Directive) -> Result<bool, ConfError> {
    parse_flag(d.arg(0)).ok_or_else(|| {
        let (value, name) = (d.arg_str(0), d.name());
        let message = format!(
            "invalid value \"{value}\" in \"{name}\" directive, it must be \"on\" or \"off\""
        );
        ConfError::word(d, d.word(0), message)
    })
}

/// A number.
///
/// # Errors
/// `"x" directive invalid number`
pub fn number(d: &Directive) -> Result<u64, ConfError> {
    read(d, parse_number(d.arg(0)), 0, "invalid number")
}

/// A size in bytes.
///
/// # Errors
/// `"x" directive invalid value`
pub fn size(d: &Directive) -> Result<usize, ConfError> {
    read(d, parse_size(d.arg(0)), 0, "invalid value")
}

/// An offset in bytes.
///
/// # Errors
/// `"x" directive invalid value`
pub fn offset(d: &Directive) -> Result<u64, ConfError> {
    read(d, parse_offset(d.arg(0)), 0, "invalid value")
}

/// A time in milliseconds.
///
/// # Errors
/// `"x" directive invalid value`
pub fn time_ms(d: &Directive) -> Result<u64, ConfError> {
    read(d, parse_time_ms(d.arg(0)), 0, "invalid value")
}

/// A time in seconds.
///
/// # Errors
/// `"x" directive invalid value`
pub fn time_s(d: &Directive) -> Result<u64, ConfError> {
    read(d, parse_time_s(d.arg(0)), 0, "invalid value")
}

/// A number of buffers and their size in bytes, neither of them zero.
///
/// # Errors
/// `"x" directive invalid value`
pub fn buffers(d: &Directive) -> Result<(u64, usize), ConfError> {
    let count = parse_number(d.arg(0)).filter(|count| *count > 0);
    let count = read(d, count, 0, "invalid value")?;
    let size = parse_size(d.arg(1)).filter(|size| *size > 0);
    Ok((count, read(d, size, 1, "invalid value")?))
}

fn read<T>(d: &Directive, value: Option<T>, index: usize, what: &str) -> Result<T, ConfError> {
    value.ok_or_else(|| {
        ConfError::word(
            d,
            d.word(index),
            format!("\"{}\" directive {what}", d.name()),
        )
    })
}

/// A number that is at least `low`.
///
/// # Errors
/// `value must be equal to or greater than N`
pub fn at_least(d: &Directive, value: u64, low: u64) -> Result<u64, ConfError> {
    if value >= low {
        return Ok(value);
    }
    Err(ConfError::word(
        d,
        d.word(0),
        format!("value must be equal to or greater than {low}"),
    ))
}

/// A number from `low` to `high`.
///
/// # Errors
/// `value must be between N and M`
pub fn between(d: &Directive, value: u64, low: u64, high: u64) -> Result<u64, ConfError> {
    if (low..=high).contains(&value) {
        return Ok(value);
    }
    Err(ConfError::word(
        d,
        d.word(0),
        format!("value must be between {low} and {high}"),
    ))
}

/// One of the names.
///
/// # Errors
/// `invalid value "v"`
pub fn choice<T: Copy>(d: &Directive, names: &[(&str, T)]) -> Result<T, ConfError> {
    parse_enum(d.arg(0), names)
        .ok_or_else(|| ConfError::invalid(d, d.word(0)).with_hint(one_of(names)))
}

/// The bits of all the arguments; a name given twice is a warning.
///
/// # Errors
/// `invalid value "v"`
pub fn mask(loader: &mut Loader, d: &Directive, names: &[(&str, u32)]) -> Result<u32, ConfError> {
    mask_more(loader, d, names, 0)
}

/// Reads the bits of a directive like [`mask`], in addition to those of earlier directives of this name. A name that shares a
/// bit with earlier ones is ignored.
///
/// # Errors
/// See [`mask`].
pub fn mask_more(
    loader: &mut Loader,
    d: &Directive,
    names: &[(&str, u32)],
    before: u32,
) -> Result<u32, ConfError> {
    let mut all = before;
    for word in &d.args {
        let bits = parse_enum(&word.text, names)
            .ok_or_else(|| ConfError::invalid(d, word).with_hint(one_of(names)))?;
        if all & bits != 0 {
            let message = format!("duplicate value \"{}\"", word.as_str());
            loader.warn(Level::Warn, ConfError::word(d, word, message));
        } else {
            all |= bits;
        }
    }
    Ok(all)
}

fn one_of<T>(names: &[(&str, T)]) -> String {
    let names: Vec<_> = names.iter().map(|(name, _)| *name).collect();
    format!("it can be: {}", names.join(", "))
}

/// The largest number anything may be: nginx's are signed.
const NUMBER_MAX: u64 = i64::MAX as u64;

#[cfg(test)]
#[path = "value_tests.rs"]
mod tests;
