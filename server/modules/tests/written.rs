//! The line that a setting in effect comes from: inheritance declared by modules, and its lookup.

use std::path::PathBuf;
use std::sync::Arc;

use conf::{Contexts, Memory};
use server_http::assemble::{Level, all_rows};
use server_http::http::Http;
use server_http::{DirectiveLocations, LoadOptions};
use server_modules::MODULES;

const MAIN_FILE: &str = "/etc/nginx/nginx.conf";

/// A configuration, a directive to a line.
struct Site {
    http: Arc<Http>,
    written: DirectiveLocations,
}

impl Site {
    /// The text inside `http`, from line 3 on.
    fn new(inner: &str) -> Self {
        let text = format!("events {{}}\nhttp {{\n{inner}\n}}\n");
        let options = LoadOptions {
            conf_path: PathBuf::from(MAIN_FILE),
            prefix: PathBuf::from("/usr/share/nginx"),
            globals: None,
            error_log: None,
            access_log: PathBuf::from("/var/log/nginx/access.log"),
        };
        let source = Memory::default().with_file(MAIN_FILE, text);
        let (cycle, written) = server_http::load_with_locations(source, &options, MODULES)
            .unwrap_or_else(|refused| panic!("{}", refused.error.render(&refused.files)));
        Self {
            http: cycle.http.expect("every configuration has it"),
            written,
        }
    }

    /// The level of the block that is opened in a line.
    fn level(&self, line: u32) -> usize {
        let at = |id: &usize| self.http.locations[*id].at.line == line;
        let ids = 0..self.http.locations.len();
        ids.rev().find(at).expect("the line opens a block")
    }

    /// The lines in effect for a directive in the block that is opened in a line.
    fn lines(&self, name: &str, block: u32) -> Vec<u32> {
        let lines = self.written.in_effect(name, self.level(block), &self.http);
        lines.iter().map(|line| line.at.line).collect()
    }
}

#[test]
fn a_level_without_a_directive_has_that_of_the_level_around_it() {
    let site = Site::new(
        "etag off;
        server {
            index a;
            index b;
            location / {
                location /x { index c; }
            }
            location /y { etag on; }
        }",
    );
    assert_eq!(site.lines("etag", 8), [3], "two levels up");
    assert_eq!(site.lines("etag", 7), [3]);
    assert_eq!(site.lines("etag", 10), [10], "its own");
    assert_eq!(site.lines("index", 7), [5, 6], "all lines of a level");
    assert_eq!(site.lines("index", 8), [8], "in place of those around");
    assert_eq!(site.lines("root", 8), [0; 0], "nobody says it");
}

#[test]
fn directives_of_one_list_count_together() {
    let site = Site::new(
        "deny all;
        server {
            root /a;
            location /x { allow all; }
            location /y { alias /b/; }
            location /z { alias /b/; location /z/a { root /c; } }
        }",
    );
    assert_eq!(site.lines("deny", 4), [3]);
    assert_eq!(site.lines("deny", 6), [6], "allow stands in for it");
    assert_eq!(site.lines("root", 7), [7], "alias stands in for it");
    let settings = site.written.settings(site.level(7), &site.http, false);
    let names: Vec<&str> = settings.iter().map(|setting| setting.row.name).collect();
    assert_eq!(names, ["alias", "deny"]);
    let nested = site.level(8);
    let settings = site.written.settings(nested, &site.http, false);
    let said: Vec<(&str, &str)> = settings
        .iter()
        .map(|setting| (setting.row.name, setting.lines[0].value.as_str()))
        .collect();
    assert_eq!(said, [("deny", "all"), ("root", "/c")]);
}

#[test]
fn add_header_follows_add_header_inherit() {
    let site = Site::new(
        "add_header A 1;
        server {
            add_header B 2;
            location /own { add_header C 3; }
            location /both {
                add_header_inherit merge;
                add_header C 3;
            }
            location /none { add_header_inherit off; }
        }",
    );
    assert_eq!(site.lines("add_header", 4), [5]);
    assert_eq!(site.lines("add_header", 6), [6]);
    assert_eq!(
        site.lines("add_header", 7),
        [9, 5],
        "in the order in which they are sent"
    );
    assert_eq!(site.lines("add_header", 11), [0; 0]);
}

#[test]
fn what_does_not_reach_inner_levels_is_not_shown_there() {
    let site = Site::new(
        "server {
            try_files /a =404;
            stub_status;
            location / {
                empty_gif;
                if ($arg_a) { expires 1h; }
                limit_except GET { deny all; }
                location /x { }
            }
        }",
    );
    assert_eq!(site.lines("try_files", 3), [4]);
    assert_eq!(site.lines("try_files", 6), [0; 0]);
    assert_eq!(site.lines("stub_status", 6), [0; 0]);
    assert_eq!(
        site.lines("empty_gif", 8),
        [7],
        "an if block has the handler"
    );
    assert_eq!(site.lines("empty_gif", 9), [7], "limit_except has it too");
    assert_eq!(site.lines("empty_gif", 10), [0; 0], "a location has not");
    let line = site.written.installs_handler(site.level(8), &site.http);
    assert_eq!(line.map(|line| line.at.line), Some(7));
}

#[test]
fn steps_and_blocks_are_no_settings() {
    let site = Site::new(
        "types_hash_max_size 512;
        log_format a b;
        server {
            server_name x;
            set $a b;
            location / { return 204; expires 1h; }
        }",
    );
    let settings = site.written.settings(site.level(8), &site.http, false);
    let names: Vec<&str> = settings.iter().map(|setting| setting.row.name).collect();
    assert_eq!(names, ["expires"]);
    let all = site.written.settings(site.level(8), &site.http, true);
    let etag = all.iter().find(|setting| setting.row.name == "etag");
    assert!(etag.is_some_and(|etag| etag.lines.is_empty() && etag.row.default == "on"));
    let named = site
        .written
        .at_level("server_name", Level::Location(site.level(5)));
    assert_eq!(
        named.map(|line| line.text()).collect::<Vec<_>>(),
        ["server_name x"]
    );
}

#[test]
fn a_directive_is_shown_as_it_was_written() {
    let site =
        Site::new("server { location ~ \"\\.a{1}$\" { add_header A 'b \"c\"'; types { } } }");
    let id = site.level(3);
    let text = |name| {
        let lines = site.written.in_effect(name, id, &site.http);
        lines.first().map(|line| line.text()).unwrap_or_default()
    };
    assert_eq!(text("add_header"), "add_header A 'b \"c\"'");
    assert_eq!(text("types"), "types { ... }");
    let own = site.written.at(site.http.locations[id].at);
    assert_eq!(
        own.map(|line| line.text()).as_deref(),
        Some("location ~ \"\\.a{1}$\"")
    );
}

/// A new directive that is not permitted in `http` declares how inner levels inherit it, since nginx's rules differ
/// there.
#[test]
fn directives_of_inner_levels_say_how_they_are_inherited() {
    let modules = MODULES.iter().flat_map(|module| module.inherits);
    let core = server_http::assemble::INHERITS;
    let declared: Vec<&str> = modules.chain(core).map(|(name, _)| *name).collect();
    let rows: Vec<_> = all_rows(MODULES)
        .into_iter()
        .flat_map(|(_, rows)| rows)
        .collect();
    for name in &declared {
        assert!(
            rows.iter().any(|row| row.name == *name),
            "no directive is called {name}"
        );
    }
    let levels = [
        "server",
        "location",
        "limit_except",
        "listen",
        "server_name",
    ];
    for row in rows {
        let inner = row.contexts.contains(Contexts::SERVER | Contexts::LOCATION);
        let outer = row.contexts.contains(Contexts::HTTP | Contexts::MAIN);
        let idle = server_http::assemble::IGNORED
            .iter()
            .any(|idle| idle.name == row.name);
        if inner && !outer && !idle && !levels.contains(&row.name) {
            assert!(
                declared.contains(&row.name),
                "the module of {} has no line for it in `inherits`",
                row.name
            );
        }
    }
}
