//! docs/directives.md, the table in docs/differences.md and the man page firstbyte.conf(5) agree with the tables of
//! directives.
//!
//! The documents are rendered from the rows and compared with the files. `FIRSTBYTE_UPDATE=1` writes them anew:
//! `FIRSTBYTE_UPDATE=1 cargo test -p firstbyte-modules --test directives`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use conf::{Contexts, DirectiveDef, nginx_directives};
use server_http::assemble::{ConfigBuilder, IGNORED, all_rows};
use server_modules::{MODULES, REFUSED};

#[test]
fn the_reference_is_what_the_tables_say() {
    let mut text = String::from(HEAD);
    for (module, rows) in by_module() {
        text.push_str(&section(module, &rows));
    }
    text.push_str(&status());
    expect_file("docs/directives.md", &text);
}

#[test]
fn the_man_page_is_what_the_tables_say() {
    let mut text = String::from(PAGE_HEAD);
    for (module, rows) in by_module() {
        text.push_str(&format!(".SH \"{}\"\n", module.to_uppercase()));
        rows.iter().for_each(|row| text.push_str(&entry(row)));
    }
    expect_file(
        "packaging/man/firstbyte.conf.5",
        &format!("{text}{PAGE_END}"),
    );
}

#[test]
fn the_table_of_directives_without_meaning_is_what_the_rows_say() {
    let text = std::fs::read_to_string(document("docs/differences.md"))
        .expect("docs/differences.md is there");
    let (before, rest) = text
        .split_once(BEGIN)
        .expect("the table has its begin mark");
    let (_, after) = rest.split_once(END).expect("the table has its end mark");
    let mut rows: Vec<_> = IGNORED.iter().collect();
    rows.sort_by_key(|row| row.name);
    let lines: String = rows
        .iter()
        .map(|row| format!("| `{}` | {} |\n", row.name, cell(row.doc)))
        .collect();
    expect_file(
        "docs/differences.md",
        &format!("{before}{BEGIN}{TABLE_HEAD}{lines}{END}{after}"),
    );
}

#[test]
fn directives_that_nginx_does_not_have_are_told_as_differences() {
    let text = std::fs::read_to_string(document("docs/differences.md"))
        .expect("docs/differences.md is there");
    for name in own() {
        assert!(
            text.contains(&format!("`{name}")),
            "docs/differences.md does not tell of `{name}`"
        );
    }
}

#[test]
fn every_row_has_its_line_of_documentation() {
    for (module, rows) in all_rows(MODULES) {
        for row in rows {
            assert!(
                !row.doc.trim().is_empty(),
                "{module}: {} has no documentation",
                row.name
            );
        }
    }
}

#[test]
fn rows_that_permit_off_alone_are_those_that_are_refused() {
    let rows = all_rows(MODULES)
        .into_iter()
        .flat_map(|(_, rows)| rows)
        .filter(|row| row.syntax == "off");
    let mut names: Vec<&str> = rows.map(|row| row.name).collect();
    names.sort_unstable();
    assert_eq!(names, REFUSED);
}

/// The rows of each module, modules in their order, rows by name.
fn by_module() -> Vec<(&'static str, Vec<&'static DirectiveDef<ConfigBuilder>>)> {
    let mut modules: Vec<(&'static str, Vec<&'static DirectiveDef<ConfigBuilder>>)> = Vec::new();
    for (module, rows) in all_rows(MODULES)
        .into_iter()
        .filter(|(module, _)| *module != WITHOUT_MEANING)
    {
        match modules.iter_mut().find(|(known, _)| *known == module) {
            Some((_, all)) => all.extend(rows),
            None => modules.push((module, rows.iter().collect())),
        }
    }
    for (_, rows) in &mut modules {
        rows.sort_by_key(|row| row.name);
    }
    modules
}

fn section(module: &str, rows: &[&DirectiveDef<ConfigBuilder>]) -> String {
    let mut text = format!("\n## {module}\n\n{SECTION_HEAD}");
    if module == "core" {
        // It belongs to the walk over the file, not to a table.
        text.push_str(&format!(
            "| `include` | `file \\| mask` |  | {} | Other files, read in place. |\n",
            Contexts::ANY
        ));
    }
    for row in rows {
        let (syntax, default) = (code(row.syntax), code(row.default));
        text.push_str(&format!(
            "| `{}` | {syntax} | {default} | {} | {} |\n",
            row.name,
            row.contexts,
            cell(row.doc)
        ));
    }
    text
}

/// A directive in the macros of man(7): its syntax, its effect, its default and place.
fn entry(row: &DirectiveDef<ConfigBuilder>) -> String {
    let block = match row.block {
        true if row.syntax.ends_with('}') => "",
        true => " { ... }",
        false => ";",
    };
    let default = match row.default.trim() {
        "" => String::new(),
        default => format!(" Default: \\fB{}\\fR.", roff(default)),
    };
    let syntax = roff(row.syntax.trim());
    let space = if syntax.is_empty() { "" } else { " " };
    format!(
        ".TP\n\\fB{}\\fR{space}{syntax}{block}\n{} In: {}.{default}\n",
        roff(row.name),
        roff(row.doc.trim()),
        row.contexts
    )
}

/// Text that roff prints unchanged, also at the begin of a line.
fn roff(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    if text.starts_with(['.', '\'']) {
        return format!("\\&{text}");
    }
    text
}

fn status() -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut table = String::from("| directive | of nginx's | status |\n|---|---|---|\n");
    let mut all: Vec<_> = nginx_directives().collect();
    all.sort_by_key(|(name, ..)| *name);
    for (name, modules, _) in &all {
        let status = status_of(name);
        *counts.entry(status).or_default() += 1;
        let modules = modules.replace("ngx_", "").replace("_module", "");
        table.push_str(&format!("| `{name}` | {modules} | {status} |\n"));
    }
    let count = |status: &str| counts.get(status).copied().unwrap_or_default();
    let (built, accepted) = (count("built"), count("accepted"));
    let (refused, missing) = (count("refused"), count("not built"));
    let own = own()
        .iter()
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ");
    format!(
        "{STATUS_HEAD}Of {} directives {built} are built, {accepted} accepted, {refused} refused, {missing} not built. \
         Directives of firstbyte alone: {own}.\n\n{table}",
        all.len()
    )
}

fn status_of(name: &str) -> &'static str {
    let is_built = |(module, rows): &(&str, &[DirectiveDef<ConfigBuilder>])| {
        *module != WITHOUT_MEANING && rows.iter().any(|row| row.name == name)
    };
    if REFUSED.contains(&name) {
        return "refused";
    }
    if name == "include" || all_rows(MODULES).iter().any(is_built) {
        return "built";
    }
    if IGNORED.iter().any(|row| row.name == name) {
        "accepted"
    } else {
        "not built"
    }
}

/// Directives that nginx does not have, by name.
fn own() -> Vec<&'static str> {
    let rows = all_rows(MODULES);
    let names = rows.iter().flat_map(|(_, rows)| *rows).map(|row| row.name);
    let mut own: Vec<&str> = names
        .filter(|name| conf::known_to_nginx(name).is_none())
        .collect();
    own.sort_unstable();
    own.dedup();
    own
}

/// Text as a cell of a table.
fn cell(text: &str) -> String {
    text.trim().replace('|', "\\|")
}

/// Text as code in a cell; nothing for nothing.
fn code(text: &str) -> String {
    if text.trim().is_empty() {
        String::new()
    } else {
        format!("`{}`", cell(text))
    }
}

fn document(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(name)
}

/// Compares a document with its expected text, or writes it.
#[track_caller]
fn expect_file(name: &str, expected: &str) {
    let path = document(name);
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    if found == expected {
        return;
    }
    if std::env::var_os("FIRSTBYTE_UPDATE").is_some_and(|value| value == "1") {
        return std::fs::write(&path, expected).expect("the document can be written");
    }
    let same = found
        .lines()
        .zip(expected.lines())
        .take_while(|(a, b)| a == b)
        .count();
    panic!(
        "{name} is out of date from line {}, FIRSTBYTE_UPDATE=1 writes it anew; expected there:\n{}",
        same + 1,
        expected.lines().nth(same).unwrap_or("the end")
    );
}

/// The name of [`all_rows`] for the rows that are accepted without meaning.
const WITHOUT_MEANING: &str = "without meaning here";

const HEAD: &str = "# Directives

With this page you can look up the arguments, the default and the place of each directive.

```nginx
location /files/ {
    root    /srv/www;
    expires 1h;
}
```

[nginx's documentation](https://nginx.org/en/docs/dirindex.html) explains the meaning of its directives. This page has the directives
that are built. [differences.md](differences.md) has deliberate differences. The end of this page has the status of every directive of
nginx.

The page is generated from the tables of directives: `FIRSTBYTE_UPDATE=1 cargo test -p firstbyte-modules --test directives`
writes it. The same test fails if it is out of date.
";

const SECTION_HEAD: &str =
    "| directive | arguments | default | place | effect |\n|---|---|---|---|---|\n";

const STATUS_HEAD: &str = "
## Status against nginx

- **built**: it has a row above. Directives that nginx also has in `stream` or `mail` are built for `http` alone.
- **accepted**: its place and its arguments are checked, and it has no effect;
  [differences.md](differences.md#directives-accepted-without-meaning) has the reasons.
- **refused**: it has a row above, and is an error unless its value is `off`.
- **not built**: a configuration with it is refused, with file, line and nginx's module.

";

const PAGE_HEAD: &str = r#".\" Generated from the tables of directives; see server/modules/tests/directives.rs.
.TH FIRSTBYTE.CONF 5 "" "firstbyte" "File Formats"
.SH NAME
firstbyte.conf \- directives of the web server firstbyte
.SH DESCRIPTION
The configuration is written in the language of nginx.conf. A directive is a name and its arguments, ended by a
semicolon or followed by a block of directives in braces; # begins a comment. A directive of nginx that is not listed
here is not built: a configuration that has it is refused, with file and line. nginx's documentation,
https://nginx.org/en/docs/dirindex.html, explains the directives.
.P
.B include
.I file
.RI | " mask" ;
is allowed anywhere and reads other files in place.
"#;

const PAGE_END: &str = ".SH SEE ALSO\n.BR firstbyte (8)\n";

const TABLE_HEAD: &str = "| directive | reason |\n|---|---|\n";
const BEGIN: &str = "<!-- directives without meaning: begin, generated -->\n";
const END: &str = "<!-- directives without meaning: end -->\n";
