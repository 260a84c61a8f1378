//! Tests of the words and statements that the lexer reads.

use super::*;

/// The words of the first statement and how it ended.
fn first(text: &str) -> (Vec<String>, End) {
    let origin = Origin::file("/a.conf");
    let statement = Lexer::new(&Arc::new(text.into()), 0, &origin)
        .statement()
        .expect("the text is well formed");
    let words = statement.name.iter().chain(&statement.args);
    let words = words.map(|word| word.as_str().to_owned());
    (words.collect(), statement.end)
}

fn words(text: &str) -> Vec<String> {
    first(text).0
}

fn error(text: &str) -> String {
    let origin = Origin::file("/a.conf");
    let text = Arc::new(text.into());
    let mut lexer = Lexer::new(&text, 0, &origin);
    loop {
        match lexer.statement() {
            Ok(statement) => assert_ne!(statement.end, End::Eof, "no error in {text:?}"),
            Err(error) => return error.to_string(),
        }
    }
}

#[test]
fn blanks_of_every_kind_separate_words() {
    assert_eq!(words("a b\tc\r\nd\n;"), ["a", "b", "c", "d"]);
    assert_eq!(first("a;"), (vec!["a".into()], End::Semicolon));
    assert_eq!(first("server{"), (vec!["server".into()], End::Open));
    assert_eq!(first("}"), (vec![], End::Close));
    assert_eq!(first(" # nothing\n"), (vec![], End::Eof));
}

#[test]
fn a_sharp_starts_a_comment_only_where_a_word_could_start() {
    assert_eq!(words("a # b;\n c#d ;"), ["a", "c#d"]);
    assert_eq!(words("#\"\na;"), ["a"]);
    assert_eq!(words("a '#' \"#\";"), ["a", "#", "#"]);
}

#[test]
fn quotes_are_removed_and_keep_what_they_hold() {
    assert_eq!(
        words("a \"b ; {c} 'd'\" 'e\" f' \"\" '';"),
        ["a", "b ; {c} 'd'", "e\" f", "", ""]
    );
    assert_eq!(words("a 'b\nc';"), ["a", "b\nc"]);
}

#[test]
fn a_quote_inside_a_word_is_an_ordinary_byte() {
    assert_eq!(words("a b\"c d'e;"), ["a", "b\"c", "d'e"]);
}

#[test]
fn escapes_are_resolved_and_others_kept() {
    assert_eq!(
        words(r#"a \"b \'c d\\e f\tg h\ri j\nk;"#),
        ["a", "\"b", "'c", "d\\e", "f\tg", "h\ri", "j\nk"]
    );
    assert_eq!(
        words(r"a \.php$ \d+ b\ c d\;e f\{g;"),
        ["a", r"\.php$", r"\d+", r"b\ c", r"d\;e", r"f\{g"]
    );
    assert_eq!(
        words(r#"a "b\"c" 'd\'e' "f\\";"#),
        ["a", "b\"c", "d'e", "f\\"]
    );
    assert_eq!(words("a \\#b;"), ["a", "\\#b"]);
}

#[test]
fn a_brace_after_a_dollar_opens_no_block() {
    assert_eq!(
        words("a ${b}c d${e} \"${f}\";"),
        ["a", "${b}c", "d${e}", "${f}"]
    );
    assert_eq!(first("a $b{"), (vec!["a".into(), "$b".into()], End::Open));
    assert_eq!(
        first("a ${{b};"),
        (vec!["a".into(), "${{b}".into()], End::Semicolon)
    );
    assert_eq!(
        first(r"a $\{;"),
        (vec!["a".into(), r"$\{".into()], End::Semicolon)
    );
}

#[test]
fn a_closing_brace_inside_a_word_is_an_ordinary_byte() {
    assert_eq!(words("a b}c d};"), ["a", "b}c", "d}"]);
}

#[test]
fn a_quote_may_be_followed_by_a_blank_a_mark_or_a_parenthesis_only() {
    assert_eq!(words("if (a = \"b\") {"), ["if", "(a", "=", "b", ")"]);
    assert_eq!(first("a \"b\"{"), (vec!["a".into(), "b".into()], End::Open));
    assert_eq!(error("a \"b\"c;"), "unexpected \"c\" in /a.conf:1");
    assert_eq!(error("a 'b'}"), "unexpected \"}\" in /a.conf:1");
    assert_eq!(error("a 'b'#\n;"), "unexpected \"#\" in /a.conf:1");
}

#[test]
fn marks_without_words_are_unexpected() {
    assert_eq!(error(" ;"), "unexpected \";\" in /a.conf:1");
    assert_eq!(error("\n{"), "unexpected \"{\" in /a.conf:2");
    assert_eq!(error("a;;"), "unexpected \";\" in /a.conf:1");
    assert_eq!(error("a b\n}"), "unexpected \"}\" in /a.conf:2");
}

#[test]
fn a_text_that_ends_inside_a_statement_is_an_error_at_its_last_line() {
    let expected = "unexpected end of file, expecting \";\" or \"}\" in /a.conf:";
    for (text, line) in [
        ("a", 1),
        ("a ", 1),
        ("a\n", 2),
        ("a 'b", 1),
        ("a 'b\n\n", 3),
        ("a 'b'", 1),
        ("a \\", 1),
        ("a #", 1),
    ] {
        assert_eq!(error(text), format!("{expected}{line}"), "{text:?}");
    }
}

#[test]
fn the_command_line_ends_with_a_wording_of_its_own() {
    let error = Lexer::new(&Arc::new(b"a".to_vec()), 0, &Origin::CommandLine)
        .statement()
        .expect_err("no semicolon");
    assert_eq!(
        error.to_string(),
        "unexpected end of parameter, expecting \";\" in command line"
    );
}

#[test]
fn the_length_of_a_word_is_limited() {
    let longest = "x".repeat(WORD_MAX - 1);
    assert_eq!(words(&format!("a {longest};"))[1].len(), WORD_MAX - 1);
    assert_eq!(
        error(&format!("a\n{longest}x;")),
        "too long parameter \"xxxxxxxxxx...\" started in /a.conf:2"
    );
    let message = "too long parameter, probably missing terminating \"'\" character in /a.conf:2";
    assert_eq!(error(&format!("a\n'\n{longest};")), message);
    let comment = format!("#{longest}{longest}\na;");
    assert_eq!(words(&comment), ["a"]);
}

#[test]
fn words_know_their_place() {
    let origin = Origin::file("/a.conf");
    let statement = Lexer::new(&Arc::new(b"\n a\n\t'b\nc' d;".to_vec()), 7, &origin)
        .statement()
        .expect("well formed");
    let words = statement.name.iter().chain(&statement.args);
    let places: Vec<_> = words
        .map(|w| (w.pos.file, w.pos.line, w.pos.column, w.raw_len, w.quoted))
        .collect();
    assert_eq!(
        places,
        [(7, 2, 2, 1, false), (7, 3, 2, 5, true), (7, 4, 4, 1, false)]
    );
    assert_eq!(statement.line, 4);
}
