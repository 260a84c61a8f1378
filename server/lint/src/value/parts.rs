//! Text with variables, cut into its parts: `http://$host:8080` is `http://`, `$host`, `:8080`.
//!
//! Source: nginx documentation of variables; a name has letters, digits and `_`, `${name}` ends at its bracket, a capture is
//! one digit.

/// A part of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// Literal text.
    Text(String),
    /// A variable, or a capture by its number, without the `$`.
    Variable(String),
}

/// Cuts a value; a `$` that begins no variable is text.
pub(crate) fn parts(value: &str) -> Vec<Part> {
    let mut all = Vec::new();
    let mut text = String::new();
    let mut rest = value;
    while let Some(at) = rest.find('$') {
        text.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let (name, length) = name(after);
        if name.is_empty() {
            text.push('$');
        } else {
            if !text.is_empty() {
                all.push(Part::Text(std::mem::take(&mut text)));
            }
            all.push(Part::Variable(name.to_ascii_lowercase()));
        }
        rest = &after[length..];
    }
    text.push_str(rest);
    if !text.is_empty() {
        all.push(Part::Text(text));
    }
    all
}

/// The name a text begins with, and how much of the text it takes.
fn name(text: &str) -> (&str, usize) {
    if let Some(inside) = text.strip_prefix('{') {
        return match inside.find('}') {
            Some(end) => (&inside[..end], end + 2),
            None => ("", 0),
        };
    }
    if text.starts_with(|c: char| matches!(c, '1'..='9')) {
        return (&text[..1], 1);
    }
    let end = text
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .unwrap_or(text.len());
    (&text[..end], end)
}

/// The names of the variables in a value.
pub(crate) fn variables(value: &str) -> impl Iterator<Item = String> {
    parts(value).into_iter().filter_map(|part| match part {
        Part::Variable(name) => Some(name),
        Part::Text(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(value: &str) -> Vec<String> {
        let shown = parts(value).into_iter().map(|part| match part {
            Part::Text(text) => text,
            Part::Variable(name) => format!("<{name}>"),
        });
        shown.collect()
    }

    #[test]
    fn a_value_is_text_and_variables() {
        assert_eq!(
            shown("http://$Host:80${a}b$1x"),
            ["http://", "<host>", ":80", "<a>", "b", "<1>", "x"]
        );
        assert_eq!(shown("a$ b$"), ["a$ b$"]);
        assert_eq!(shown("${a"), ["${a"]);
        assert_eq!(shown(""), [""; 0]);
    }
}
