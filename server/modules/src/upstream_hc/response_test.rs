//! `match`: named tests of responses.
//!
//! Source: nginx documentation, `match`.

use std::sync::Arc;

use conf::{ConfError, Directive, Word};
use server_base::regex::Regex;
use server_http::assemble::ConfigBuilder;
use server_http::upstream::health::ResponseTest;
use server_http::upstream::health::response_test::{
    FieldCondition, FieldTest, StatusTest, TextTest,
};
use server_http::value::Value;

use super::Drafts;

/// One `match` block.
pub(super) fn block(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let name: Box<[u8]> = d.arg(0).into();
    if b.conf_mut::<Drafts>().tests.contains_key(&name) {
        let text = format!("duplicate match \"{}\"", d.arg_str(0));
        return Err(ConfError::word(d, d.word(0), text));
    }
    let mut test = ResponseTest {
        name: name.clone(),
        ..ResponseTest::default()
    };
    conf::each(b, d.items(), |b, line| add(&mut test, b, line))?;
    b.conf_mut::<Drafts>().tests.insert(name, Arc::new(test));
    Ok(())
}

/// Adds one line.
fn add(test: &mut ResponseTest, b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let words: Vec<&[u8]> = d.args.iter().map(|word| word.text.as_slice()).collect();
    match (d.name.text.as_slice(), words.as_slice()) {
        (b"status", [_, ..]) => {
            conf::once(d, test.status.is_some())?;
            test.status = Some(status(d)?);
        }
        (b"header", words) => test.fields.push(field(b, d, words)?),
        (b"body", [b"~", _]) => test.body.push(text(b, d, 1, false)?),
        (b"body", [b"!~", _]) => test.body.push(text(b, d, 1, true)?),
        (b"require", [_, ..]) => {
            for word in &d.args {
                if word.text.first() != Some(&b'$') {
                    return Err(ConfError::parameter(d, word));
                }
                test.require.push(Value::compile(b, d, word)?);
            }
        }
        (b"status" | b"body" | b"require", _) => return Err(number_of_parameters(d)),
        _ => {
            let text = format!("unknown test \"{}\" in match", d.name());
            return Err(ConfError::at(d, text));
        }
    }
    Ok(())
}

fn number_of_parameters(d: &Directive) -> ConfError {
    ConfError::at(d, format!("invalid test \"{}\" in match", d.name()))
}

/// Parses `[!] status[-status] ...`.
fn status(d: &Directive) -> Result<StatusTest, ConfError> {
    let is_negated = d.arg(0) == b"!";
    let words = &d.args[usize::from(is_negated)..];
    if words.is_empty() {
        return Err(number_of_parameters(d));
    }
    let ranges = words.iter().map(|word| range(d, word));
    Ok(StatusTest {
        ranges: ranges.collect::<Result<_, _>>()?,
        is_negated,
    })
}

fn range(d: &Directive, word: &Word) -> Result<(u16, u16), ConfError> {
    let status = |text: &[u8]| {
        let number = conf::parse_number(text).and_then(|number| u16::try_from(number).ok());
        number.filter(|status| (100..=599).contains(status))
    };
    let text = word.text.as_slice();
    let mut ends = text.splitn(2, |byte| *byte == b'-');
    let first = ends.next().and_then(status);
    let last = ends.next().map_or(first, status);
    first
        .zip(last)
        .filter(|(first, last)| first <= last)
        .ok_or_else(|| {
            let text = format!("invalid status \"{}\"", word.as_str());
            ConfError::word(d, word, text)
        })
}

/// Parses a condition on a field: `NAME`, `! NAME`, `NAME = VALUE`, `NAME ~ EXPRESSION` and their negations.
fn field(b: &mut ConfigBuilder, d: &Directive, words: &[&[u8]]) -> Result<FieldTest, ConfError> {
    let (name, condition) = match *words {
        [name] if name != b"!" => (name, FieldCondition::Present),
        [b"!", name] => (name, FieldCondition::Absent),
        [name, b"=", value] => (name, FieldCondition::Equals(value.into())),
        [name, b"!=", value] => (name, FieldCondition::Differs(value.into())),
        [name, b"~", _] => (name, FieldCondition::Text(text(b, d, 2, false)?)),
        [name, b"!~", _] => (name, FieldCondition::Text(text(b, d, 2, true)?)),
        _ => return Err(number_of_parameters(d)),
    };
    Ok(FieldTest {
        name: name.into(),
        condition,
    })
}

/// Compiles the expression in a word.
fn text(
    b: &mut ConfigBuilder,
    d: &Directive,
    at: usize,
    is_negated: bool,
) -> Result<TextTest, ConfError> {
    let word = d.word(at);
    Ok(TextTest {
        regex: Regex::compile(b, d, word, &word.text, false)?,
        is_negated,
    })
}
