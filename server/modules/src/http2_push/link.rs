//! Preloads in a `Link` field: `</style.css>; rel=preload; as=style, </script.js>; rel=preload; nopush`.
//!
//! Read as nginx reads it, save that commas and semicolons inside of quotes belong to the text there. A field is read as
//! far as it can be.
//!
//! Source: RFC 8288 section 3; W3C Preload, section "Server Push (HTTP/2)"; nginx 1.24.

/// Calls `found` with the target of each link to push.
pub(super) fn preloads(field: &[u8], mut found: impl FnMut(&[u8])) {
    let mut rest = field;
    loop {
        let Some(after) = rest.trim_ascii_start().strip_prefix(b"<") else {
            return;
        };
        let Some(end) = after.iter().position(|byte| *byte == b'>') else {
            return;
        };
        let target = after[..end].trim_ascii();
        let (parameters, more) = split(after[end + 1..].trim_ascii_start(), b',');
        let pushed = match parameters.split_first() {
            None => false,
            Some((b';', parameters)) => is_preload(parameters),
            Some(_) => return,
        };
        if pushed && !target.is_empty() && !target.starts_with(b"//") {
            found(target);
        }
        match more {
            Some(more) => rest = more,
            None => return,
        }
    }
}

/// Whether one of the relations is `preload` and there is no `nopush`.
fn is_preload(parameters: &[u8]) -> bool {
    let mut preload = false;
    let mut rest = Some(parameters);
    while let Some(text) = rest {
        let (parameter, more) = split(text, b';');
        rest = more;
        let parameter = parameter.trim_ascii();
        if is_first_word(parameter, b"nopush") {
            return false;
        }
        if let Some((name, relations)) = parameter.split_at_checked(4)
            && name.eq_ignore_ascii_case(b"rel=")
        {
            preload |= has_preload(relations.trim_ascii_start());
        }
    }
    preload
}

/// Whether `preload` is the relation, or one of those in quotes.
fn has_preload(relations: &[u8]) -> bool {
    let Some(quoted) = relations.strip_prefix(b"\"") else {
        return is_first_word(relations, b"preload");
    };
    let Some(end) = quoted.iter().position(|byte| *byte == b'"') else {
        return false;
    };
    let mut words = quoted[..end].split(|byte| *byte == b' ');
    words.any(|word| word.eq_ignore_ascii_case(b"preload"))
}

fn is_first_word(text: &[u8], word: &[u8]) -> bool {
    let first = text.split(|byte| *byte == b' ').next();
    first.is_some_and(|first| first.eq_ignore_ascii_case(word))
}

/// Splits a text at the first `at` outside of quotes.
fn split(text: &[u8], at: u8) -> (&[u8], Option<&[u8]>) {
    let mut quoted = false;
    for (n, byte) in text.iter().enumerate() {
        if *byte == b'"' {
            quoted = !quoted;
        } else if *byte == at && !quoted {
            return (&text[..n], Some(&text[n + 1..]));
        }
    }
    (text, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links_in(field: &str) -> Vec<String> {
        let mut all = Vec::new();
        preloads(field.as_bytes(), |target| {
            all.push(String::from_utf8_lossy(target).into_owned());
        });
        all
    }

    #[test]
    fn preload_is_found_among_parameters() {
        for field in [
            "</a>; rel=preload",
            "</a>;rel=preload;as=style",
            "< /a >; as=script; rel=preload",
            "</a>; rel=\"preload\"",
            "</a>; rel=\"foo preload\"; crossorigin",
            "</a>; REL=PRELOAD",
            "</a>; title=\"a, b; nopush\"; rel=preload",
            "</a>; rel=preload; nopushed",
        ] {
            assert_eq!(links_in(field), ["/a"], "{field}");
        }
    }

    #[test]
    fn others_are_not_pushed() {
        for field in [
            "",
            "</a>",
            "/a; rel=preload",
            "</a; rel=preload",
            "<>; rel=preload",
            "</a> rel=preload",
            "</a>; rel=preloadX",
            "</a>; rel=\"preloadX\"",
            "</a>; rel=\"preload",
            "</a>; rel=prefetch",
            "</a>; rel=preload; nopush",
            "</a>; nopush; rel=preload",
            "<//other.example/a>; rel=preload",
        ] {
            assert_eq!(links_in(field), [""; 0], "{field}");
        }
    }

    #[test]
    fn each_link_of_a_field_counts_for_itself() {
        let field = "</a>; rel=preload, </b>, </c>; rel=preload; nopush, </d>;rel=preload";
        assert_eq!(links_in(field), ["/a", "/d"]);
        assert_eq!(links_in("</a>; rel=preload, b, </c>; rel=preload"), ["/a"]);
    }
}
