//! The regular expressions of a configuration, and the subject of each.

use conf::Word;

use crate::regex::Regex;
use crate::tree::{Id, Tree};
use crate::value::{Contents, DECODED_URI};

/// An expression as it is written.
pub(crate) struct Use {
    /// Its directive.
    pub(crate) id: Id,
    /// Which of its arguments it is in; `None`: its name, for an entry of a table.
    pub(crate) argument: Option<usize>,
    /// The expression.
    pub(crate) pattern: Vec<u8>,
    /// Letters match in both cases.
    pub(crate) caseless: bool,
    /// The text that it is matched against.
    pub(crate) subject: Subject,
}

/// The text that an expression is matched against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Subject {
    /// The decoded URI.
    Uri,
    /// The name of the host.
    Host,
    /// A value with variables.
    Value(String),
    /// Something that no capture is taken of.
    Other,
}

impl Use {
    /// The expression as a tree, if it is understood.
    pub(crate) fn regex(&self) -> Option<Regex> {
        Regex::parse(&self.pattern, self.caseless)
    }
}

/// Directives with expressions among their arguments that begin with `~`, or `~*` for both cases.
const MARKED: [&str; 5] = [
    "valid_referers",
    "proxy_redirect",
    "proxy_cookie_domain",
    "proxy_cookie_path",
    "server_name",
];

/// The expression in `~...` or `~*...`.
fn marked(word: &Word) -> Option<(&[u8], bool)> {
    let rest = word.text.strip_prefix(b"~")?;
    Some(match rest.strip_prefix(b"*") {
        Some(rest) => (rest, true),
        None => (rest, false),
    })
}

/// The expressions of a directive.
pub(crate) fn of(tree: &Tree, id: Id) -> Vec<Use> {
    let node = tree.node(id);
    let args = &node.directive.args;
    let new = |argument, pattern: &[u8], caseless, subject| Use {
        id,
        argument,
        pattern: pattern.to_vec(),
        caseless,
        subject,
    };
    // An entry of a `map` has its pattern in place of the directive's name.
    if node.data {
        let table = node.parent.filter(|table| tree.name(*table) == "map");
        let Some((table, (pattern, caseless))) = table.zip(marked(&node.directive.name)) else {
            return Vec::new();
        };
        let subject = Subject::Value(tree.arg(table, 0).to_owned());
        return vec![new(None, pattern, caseless, subject)];
    }
    match tree.name(id) {
        "location" => {
            let joined = |mark: &str| {
                args.first()
                    .is_some_and(|word| word.as_str().starts_with(mark))
            };
            match args.as_slice() {
                [modifier, pattern] if *modifier == *"~" || *modifier == *"~*" => {
                    vec![new(
                        Some(1),
                        &pattern.text,
                        *modifier == *"~*",
                        Subject::Uri,
                    )]
                }
                // nginx takes `location ~pattern` without a space too.
                [word] if joined("~") => {
                    let (pattern, caseless) = marked(word).unwrap_or_default();
                    vec![new(Some(0), pattern, caseless, Subject::Uri)]
                }
                _ => Vec::new(),
            }
        }
        "rewrite" if args.len() > 1 => vec![new(Some(0), &args[0].text, false, Subject::Uri)],
        "fastcgi_split_path_info" if !args.is_empty() => {
            vec![new(Some(0), &args[0].text, false, Subject::Uri)]
        }
        "if" => condition(tree, id)
            .map(|test| {
                new(
                    Some(test.argument),
                    &test.pattern,
                    test.caseless,
                    Subject::Value(test.variable),
                )
            })
            .into_iter()
            .collect(),
        name if MARKED.contains(&name) => args
            .iter()
            .enumerate()
            .filter_map(|(index, word)| {
                let (pattern, caseless) = marked(word)?;
                let host = name == "server_name";
                let subject = if host { Subject::Host } else { Subject::Other };
                Some(new(Some(index), pattern, caseless || host, subject))
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// `if ($variable ~ expression)`.
pub(crate) struct Condition {
    /// With its `$`.
    pub(crate) variable: String,
    /// `!~` or `!~*`.
    pub(crate) negated: bool,
    caseless: bool,
    pub(crate) argument: usize,
    pattern: Vec<u8>,
}

/// The condition of an `if`, when it is one with an expression.
pub(crate) fn condition(tree: &Tree, id: Id) -> Option<Condition> {
    // The parentheses are part of the words: `($a`, `~`, `b)`, or words of their own.
    let mut words: Vec<(usize, Vec<u8>)> = Vec::new();
    for (index, word) in tree.args(id).iter().enumerate() {
        words.push((index, word.text.to_vec()));
    }
    let (_, first) = words.first_mut()?;
    let stripped = first.strip_prefix(b"(").map(<[u8]>::to_vec)?;
    *first = stripped;
    let (index, last) = words.last_mut()?;
    if !(tree.args(id)[*index].quoted) {
        let stripped = last.strip_suffix(b")").map(<[u8]>::to_vec)?;
        *last = stripped;
    }
    words.retain(|(index, text)| !text.is_empty() || tree.args(id)[*index].quoted);
    let [(_, variable), (_, operator), (argument, pattern)] = words.as_slice() else {
        return None;
    };
    let (negated, caseless) = match operator.as_slice() {
        b"~" => (false, false),
        b"~*" => (false, true),
        b"!~" => (true, false),
        b"!~*" => (true, true),
        _ => return None,
    };
    Some(Condition {
        variable: String::from_utf8(variable.clone()).ok()?,
        negated,
        caseless,
        argument: *argument,
        pattern: pattern.clone(),
    })
}

/// The possible contents of a subject that is no value with variables.
pub(crate) fn contents(subject: &Subject) -> Option<Contents> {
    match subject {
        Subject::Uri => Some(DECODED_URI),
        Subject::Host => crate::value::of_variable("host"),
        Subject::Value(_) | Subject::Other => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::tree;

    fn patterns(text: &str) -> Vec<String> {
        let tree = tree(&format!("http {{ {text} }}"));
        let mut all = Vec::new();
        for id in 0..tree.len() {
            for found in of(&tree, id) {
                let case = if found.caseless { "*" } else { "" };
                all.push(format!("{}{case}", String::from_utf8_lossy(&found.pattern)));
            }
        }
        all
    }

    #[test]
    fn expressions_are_found_where_they_stand() {
        assert_eq!(
            patterns(r"location ~ \.php$ { } location ~* a { } location /~ { }"),
            [r"\.php$", "a*"]
        );
        assert_eq!(
            patterns("rewrite ^/a /b; server_name ~^a b;"),
            ["^/a", "^a*"]
        );
        assert_eq!(
            patterns("map $a $b { ~*c d; e f; } types { ~a b; }"),
            ["c*"]
        );
    }

    #[test]
    fn conditions_are_read_with_their_parentheses() {
        assert_eq!(
            patterns("if ($a ~ b) { } if ( $a !~* 'b' ) { } if ($a = b) { }"),
            ["b", "b*"]
        );
        assert_eq!(
            patterns("if ($a ~ '(b)') { } if ($a ~ (b|c)) { }"),
            ["(b)", "(b|c)"]
        );
        assert_eq!(patterns("if ($a) { } if (-f b) { }"), [""; 0]);
    }
}
