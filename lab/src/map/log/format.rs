//! Formats of access logs: the text of `log_format` as literals and variables.
//!
//! Source: nginx documentation, `ngx_http_log_module`, `log_format`.

/// How a server escapes the values of variables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Escape {
    /// Quotes, backslashes, control bytes and bytes above 126 as `\xHH`; an absent value as `-`.
    #[default]
    Default,
    /// As in a JSON string; an absent value is empty.
    Json,
    /// No escapes.
    None,
}

/// A part of a format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Bytes of each line.
    Text(Vec<u8>),
    /// The value of a variable; its name is in lower case, without `$`.
    Variable(String),
}

/// The format of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    pub(super) escape: Escape,
    pub(super) parts: Vec<Part>,
}

impl Format {
    /// Parses the words of a `log_format` after its name: `escape=...` or nothing, then strings of a format.
    ///
    /// # Errors
    /// A sentence: the escaping is unknown, a `$` has no name, or a brace is not closed.
    pub fn of_words<'w>(words: impl IntoIterator<Item = &'w [u8]>) -> Result<Self, String> {
        let mut words = words.into_iter().peekable();
        let mut escape = Escape::Default;
        if let Some(name) = words.peek().and_then(|word| word.strip_prefix(ESCAPE)) {
            escape = Escape::of_name(name)?;
            words.next();
        }
        let mut parts = Vec::new();
        for word in words {
            // A variable ends with its word.
            parse(word, &mut parts)?;
        }
        Ok(Self { escape, parts })
    }

    /// Parses a format of a command line: `escape=...` and a space, or nothing, then the text.
    ///
    /// # Errors
    /// As [`Self::of_words`].
    pub fn of_option(text: &str) -> Result<Self, String> {
        let text = text.as_bytes();
        let space = memchr::memchr(b' ', text).filter(|_| text.starts_with(ESCAPE));
        match space {
            Some(at) => Self::of_words([&text[..at], text[at..].trim_ascii_start()]),
            None => Self::of_words([text]),
        }
    }

    /// Whether a variable is in the format.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        let is_it = |part: &Part| matches!(part, Part::Variable(own) if own == name);
        self.parts.iter().any(is_it)
    }
}

impl Escape {
    fn of_name(name: &[u8]) -> Result<Self, String> {
        match name {
            b"default" => Ok(Self::Default),
            b"json" => Ok(Self::Json),
            b"none" => Ok(Self::None),
            _ => {
                let shown = String::from_utf8_lossy(name);
                Err(format!("unknown log format escaping \"{shown}\""))
            }
        }
    }
}

/// Appends the parts of one word.
fn parse(word: &[u8], parts: &mut Vec<Part>) -> Result<(), String> {
    let mut rest = word;
    while !rest.is_empty() {
        let text = memchr::memchr(b'$', rest).unwrap_or(rest.len());
        if text > 0 {
            push_text(&rest[..text], parts);
            rest = &rest[text..];
            continue;
        }
        let is_braced = rest.get(1) == Some(&b'{');
        let name = &rest[1 + usize::from(is_braced)..];
        let length = name.iter().take_while(|byte| is_name(**byte)).count();
        let (name, behind) = name.split_at(length);
        let shown = String::from_utf8_lossy(name).to_ascii_lowercase();
        rest = match is_braced {
            false => behind,
            true => behind
                .strip_prefix(b"}")
                .ok_or_else(|| format!("the closing bracket in \"{shown}\" variable is missing"))?,
        };
        if name.is_empty() {
            let shown = String::from_utf8_lossy(word);
            return Err(format!("a \"$\" without a name in \"{shown}\""));
        }
        parts.push(Part::Variable(shown));
    }
    Ok(())
}

/// Texts of two words are one.
fn push_text(text: &[u8], parts: &mut Vec<Part>) {
    match parts.last_mut() {
        Some(Part::Text(before)) => before.extend_from_slice(text),
        _ => parts.push(Part::Text(text.to_vec())),
    }
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

const ESCAPE: &[u8] = b"escape=";

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Part {
        Part::Text(text.into())
    }

    fn variable(name: &str) -> Part {
        Part::Variable(name.to_owned())
    }

    #[test]
    fn formats_are_texts_and_variables() {
        let format = Format::of_option("a $b${c}d[$E_1]").expect("it is one");
        let (b, c, e) = (variable("b"), variable("c"), variable("e_1"));
        let parts = vec![text("a "), b, c, text("d["), e, text("]")];
        assert_eq!(format.parts, parts);
        assert_eq!(format.escape, Escape::Default);
        assert!(format.has("e_1") && !format.has("d"));
    }

    #[test]
    fn words_join_and_end_variables() {
        let words: [&[u8]; 4] = [b"escape=json", b"{\"a\":\"$a\",", b"\"b\":$b", b"c}"];
        let format = Format::of_words(words).expect("it is one");
        let (a, b) = (variable("a"), variable("b"));
        let parts = vec![text("{\"a\":\""), a, text("\",\"b\":"), b, text("c}")];
        assert_eq!((format.parts, format.escape), (parts, Escape::Json));
    }

    #[test]
    fn each_escaping_has_its_name() {
        for (name, escape) in [
            ("default", Escape::Default),
            ("json", Escape::Json),
            ("none", Escape::None),
        ] {
            let format = Format::of_option(&format!("escape={name} $a")).expect("it is one");
            assert_eq!((format.escape, format.parts.len()), (escape, 1));
        }
    }

    #[test]
    fn wrong_formats_are_refused_as_by_nginx() {
        for (format, why) in [
            ("$", "without a name"),
            ("a $ b", "without a name"),
            ("${}", "without a name"),
            ("${a", "the closing bracket in \"a\" variable is missing"),
            ("${a b}", "the closing bracket in \"a\" variable is missing"),
            ("escape=html $a", "unknown log format escaping \"html\""),
        ] {
            let error = Format::of_option(format).expect_err(format);
            assert!(error.contains(why), "{format}: {error}");
        }
    }
}
