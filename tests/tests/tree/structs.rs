//! Sizes of structs. Many public fields are parts without names, and several flags are a state without a name.

use std::path::PathBuf;

use firstbyte_tests::source::{code, is_test_file, read, rust_files, shipped_lines, shown};

/// The most fields of a struct that other modules see.
const PUBLIC_FIELDS_MAX: usize = 24;
/// The most fields of type `bool` of a struct: several that encode one state are an enum.
const BOOLS_MAX: usize = 4;
/// Larger structs, with their public fields and their bools. The list and its numbers only shrink.
const LARGER: [(&str, usize, usize); 0] = [];

/// A struct of the source, or the table of a module's settings (`settings!`).
#[derive(Debug, PartialEq)]
struct Struct {
    line: usize,
    name: String,
    public: usize,
    bools: usize,
}

/// The structs of a text without options of a command line.
fn structs(text: &str) -> Vec<Struct> {
    let lines: Vec<&str> = shipped_lines(text).map(|(_, line)| line).collect();
    let mut found = Vec::new();
    let mut is_options = false;
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at].trim_start();
        let indent = lines[at].len() - line.len();
        let head = without_visibility(line).strip_prefix("struct ");
        let Some(head) = head.filter(|head| head.starts_with(char::is_alphabetic)) else {
            // Attributes and documentation may stand between `derive` and the struct.
            is_options = line.starts_with("#[derive(") && is_command_line(line)
                || is_options && (line.starts_with('#') || line.starts_with("//"));
            at += 1;
            continue;
        };
        let name = head.split(|c: char| !c.is_alphanumeric() && c != '_');
        let mut one = Struct {
            line: at + 1,
            name: name.take(1).collect(),
            public: 0,
            bools: 0,
        };
        let is_table = head[one.name.len()..].starts_with(':');
        while at < lines.len() && !lines[at].ends_with(['{', ';', '}']) {
            at += 1;
        }
        if lines.get(at).is_some_and(|line| line.ends_with('{')) {
            at = count(&mut one, &lines, at + 1, indent, is_table);
            if is_table
                && lines
                    .get(at + 1)
                    .is_some_and(|line| line.trim() == "extra {")
            {
                at = count(&mut one, &lines, at + 2, indent, is_table);
            }
        }
        if !is_options {
            found.push(one);
        }
        is_options = false;
        at += 1;
    }
    found
}

/// Counts the fields from a line to the brace at this indent, and returns the line of the brace.
fn count(one: &mut Struct, lines: &[&str], first: usize, indent: usize, is_table: bool) -> usize {
    for (at, line) in lines.iter().enumerate().skip(first) {
        let words = line.trim_start();
        let depth = line.len() - words.len();
        if words.starts_with('}') && depth <= indent {
            return at;
        }
        let field = without_visibility(words);
        let is_public = is_table || field.len() < words.len();
        let Some((name, kind)) = code(field).split_once(": ") else {
            continue;
        };
        // The name of a table's field is followed by its directive.
        let is_name = |c: char| c.is_alphanumeric() || "_ \"#".contains(c);
        if depth != indent + 4 || !name.chars().all(is_name) || name.starts_with('#') {
            continue;
        }
        one.public += usize::from(is_public);
        let kind = kind.split([',', ';']).next().unwrap_or_default();
        let kind = kind.split(" =").next().unwrap_or_default();
        let is_bool = ["bool", "Cell<bool>", "AtomicBool"].contains(&kind);
        // Flags of a table are directives: their names and values are nginx's.
        one.bools += usize::from(is_bool && !name.contains('"'));
    }
    lines.len()
}

fn without_visibility(line: &str) -> &str {
    let rest = line.strip_prefix("pub");
    let inner = rest.and_then(|rest| rest.strip_prefix('('));
    let rest = inner
        .and_then(|inner| inner.split_once(')'))
        .map_or(rest, |(_, rest)| Some(rest));
    rest.and_then(|rest| rest.strip_prefix(' ')).unwrap_or(line)
}

fn is_command_line(derive: &str) -> bool {
    ["Args", "Parser"].iter().any(|name| {
        let named = derive.split(|c: char| !c.is_alphanumeric());
        named.into_iter().any(|word| word == *name)
    })
}

#[test]
fn structs_have_few_fields_and_fewer_flags() {
    let shipped = |path: &PathBuf| {
        let name = shown(path);
        !is_test_file(path) && !name.contains("/examples/") && !name.contains("benches/")
    };
    let mut findings = Vec::new();
    let mut needed = Vec::new();
    for path in rust_files("").into_iter().filter(shipped) {
        for one in structs(&read(&path)) {
            let place = format!("{}:{}: {}", shown(&path), one.line, one.name);
            let key = format!("{} {}", shown(&path), one.name);
            let known = LARGER.iter().find(|(known, ..)| *known == key);
            let allowed = known.map_or((PUBLIC_FIELDS_MAX, BOOLS_MAX), |(_, public, bools)| {
                (*public, *bools)
            });
            let is_larger = one.public > PUBLIC_FIELDS_MAX || one.bools > BOOLS_MAX;
            if is_larger && (one.public, one.bools) != allowed {
                let (public, bools) = (one.public, one.bools);
                findings.push(format!("{place}: {public} public fields, {bools} bools"));
            }
            if is_larger {
                needed.push(key);
            }
        }
    }
    let unneeded = LARGER
        .iter()
        .filter(|(key, ..)| !needed.iter().any(|one| one == key));
    findings.extend(unneeded.map(|(key, ..)| format!("{key}: no longer needed")));
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

#[test]
fn fields_of_structs_and_tables_are_counted() {
    let of = |text: &str| -> Vec<(String, usize, usize)> {
        let found = structs(text).into_iter();
        found.map(|one| (one.name, one.public, one.bools)).collect()
    };
    let text = "\
/// One.
pub(crate) struct One<T> {
    /// Named: in a comment.
    pub a: Vec<T>,
    pub(super) b: bool,
    c: Cell<bool>,
    pub r#d: Option<bool>,
}

struct Two(bool, bool);

struct Three<T>
where
    T: Four,
{
    a: AtomicBool, // Not counted: b: bool
}
";
    let counted = [("One", 3, 2), ("Two", 0, 0), ("Three", 0, 1)];
    assert_eq!(
        of(text),
        counted.map(|(name, public, bools)| (name.to_owned(), public, bools))
    );
    let table = "\
settings! {
    /// Settings.
    pub struct Loc: Location.part / PLAIN {
        /// A directive: on or off.
        a \"directive_a\": bool = true, \"on\", HS;
        b \"directive_b\": Size = Size(1), \"1\", HS;
    }
    extra {
        /// Read at once.
        c: bool,
        d: Vec<u8> = inherited
    }
}
part! {
    /// A part.
    pub struct Part() {
        pub a: bool = true,
        pub(super) b: Option<u8> => keep,
    }
}
";
    let counted = [("Loc", 4, 1), ("Part", 2, 1)];
    assert_eq!(
        of(table),
        counted.map(|(name, public, bools)| (name.to_owned(), public, bools))
    );
    let options = "\
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = \"Options\")]
/// Options.
pub struct Options {
    #[arg(long)]
    pub a: bool,
}

#[derive(Clone)]
pub struct ArgsOf {
    pub a: bool,
}
";
    assert_eq!(of(options), [("ArgsOf".to_owned(), 1, 1)]);
}
