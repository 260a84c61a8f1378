//! `geoip2`: values by their path, metadata of the file, and files that change.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use server_base::errlog::{ErrorLog, Level, Sink};

use crate::site::{NOW_S, Site};
use crate::testing::{BUILD_EPOCH, Field, mmdb};

fn database(name: &'static str) -> Vec<u8> {
    let all = Field::Map(vec![
        ("name", Field::Text(name)),
        ("double", Field::Double(-0.5)),
        ("float", Field::Float(1.25)),
        ("u16", Field::U16(7)),
        ("u64", Field::U64(u64::MAX)),
        ("u128", Field::U128(0x1_0000_0000_0000_0000)),
        ("i32", Field::I32(-7)),
        ("yes", Field::Bool(true)),
        ("bytes", Field::Bytes(b"raw")),
        (
            "list",
            Field::Array(vec![Field::Text("first"), Field::Text("last")]),
        ),
        ("with=sign", Field::Text("sign")),
    ]);
    let other = Field::Map(vec![("name", Field::Text("other"))]);
    mmdb(
        "Test",
        28,
        true,
        &[("192.0.2.0", 24, all), ("2001:db8::", 32, other)],
    )
}

fn site(lines: &str, value: &str) -> Site {
    let text = format!("geoip2 /db {{ {lines} }} server {{ return 200 \"{value}\"; }}");
    Site::http_with(&text, &[("/db", &database("first"))])
}

#[test]
fn a_value_is_told_by_its_type() {
    for (path, expected) in [
        ("name", "first"),
        ("double", "-0.50000"),
        ("float", "1.25000"),
        ("u16", "7"),
        ("u64", "18446744073709551615"),
        ("u128", "0x00000000000000010000000000000000"),
        ("i32", "-7"),
        ("yes", "1"),
        ("bytes", "raw"),
        ("list 0", "first"),
        ("list -1", "last"),
        ("list", ""),
        ("none", ""),
        ("", ""),
        ("default=d name", "first"),
        ("default=d none", "d"),
        ("default=d list", "d"),
        ("list with=sign", ""),
    ] {
        let answer = site(&format!("$v {path};"), "[$v]").get("/");
        assert_eq!(answer.body, format!("[{expected}]"), "{path}");
    }
    // A path may not begin like a parameter.
    assert_eq!(
        Site::refused_with("geoip2 /db { $v with=sign; }", &[("/db", &database(""))]),
        "invalid setting \"with=sign\" for \"$v\""
    );
}

#[test]
fn the_address_is_the_clients_or_what_a_variable_holds() {
    let mut site = site(
        "$own default=none name; $named default=none source=$arg_ip name;",
        "$own $named",
    );
    assert_eq!(site.get("/?ip=2001:db8::1").body, "first other");
    assert_eq!(site.get("/?ip=::ffff:192.0.2.9").body, "first first");
    assert_eq!(site.get("/?ip=x").body, "first none");
    assert_eq!(site.get("/").body, "first none");
    assert_eq!(
        site.come_from("unix:").get("/?ip=192.0.2.1").body,
        "none first"
    );
}

#[test]
fn proxies_name_the_client_unless_a_variable_does() {
    let text = "geoip2_proxy 192.0.2.0/24; geoip2_proxy_recursive on;
                geoip2 /db { $own name; $named source=$remote_addr name; }
                server { return 200 \"$own $named\"; }";
    let mut site = Site::http_with(text, &[("/db", &database("first"))]);
    let fields = "X-Forwarded-For: 2001:db8::1, 192.0.2.2\r\n";
    assert_eq!(site.get_with("/", fields).body, "other first");
}

#[test]
fn a_later_line_takes_a_variables_place() {
    let mut site = site("$v u16; $v name;", "$v");
    assert_eq!(site.get("/").body, "first");
}

#[test]
fn a_file_tells_of_itself() {
    let lines =
        "$built metadata build_epoch; $checked metadata last_check; $changed metadata last_change;";
    let mut site = site(lines, "$built $checked $changed");
    let log = ErrorLog::new(Vec::new());
    assert_eq!(site.run_tasks(NOW_S as i64, &log), [None]);
    assert_eq!(site.get("/").body, format!("{BUILD_EPOCH} {NOW_S} {NOW_S}"));
}

#[test]
fn wrong_lines_are_refused() {
    let data = database("first");
    for (lines, said) in [
        ("nonsense 1;", "invalid setting \"nonsense\""),
        ("$ name;", "invalid variable name \"$\""),
        (
            "auto_reload;",
            "invalid number of arguments for auto_reload",
        ),
        (
            "auto_reload 5m 5m;",
            "invalid number of arguments for auto_reload",
        ),
        (
            "auto_reload soon;",
            "invalid interval for auto_reload \"soon\"",
        ),
        ("$v metadata;", "invalid number of arguments for \"$v\""),
        ("$v metadata a b;", "invalid number of arguments for \"$v\""),
        ("$v metadata other;", "invalid metadata field \"other\""),
        (
            "$v default=1 default=2 name;",
            "default has already been declared for \"$v\"",
        ),
        (
            "$v source=$uri source=$uri name;",
            "source has already been declared for \"$v\"",
        ),
        (
            "$v source=uri name;",
            "invalid source variable name \"uri\"",
        ),
        (
            "$v default= name;",
            "invalid setting \"default=\" for \"$v\"",
        ),
        ("$v other=1 name;", "invalid setting \"other=1\" for \"$v\""),
        ("$uri name;", "the duplicate \"uri\" variable"),
    ] {
        let text = format!("geoip2 /db {{ {lines} }}");
        assert_eq!(
            Site::refused_with(&text, &[("/db", &data)]),
            said,
            "{lines}"
        );
    }
    let twice = "geoip2 /db { } geoip2 /db { }";
    assert_eq!(
        Site::refused_with(twice, &[("/db", &data)]),
        "Duplicate GeoIP2 mmdb - /db"
    );
    assert_eq!(
        Site::refused_with("geoip2 /db { }", &[("/db", b"1,2,US")]),
        "MMDB_open(\"/db\") failed - it is not a MaxMind DB file"
    );
    assert_eq!(
        Site::refused_with("geoip2 db { }", &[("/db", &data)]),
        "MMDB_open(\"/usr/share/nginx/db\") failed - 2: No such file or directory"
    );
}

/// A file of the temporary directory that is removed when dropped.
struct TempPath(PathBuf);

impl TempPath {
    fn new(name: &str) -> Self {
        let name = format!("firstbyte-geoip2-{}-{name}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    /// Puts another file in its place, as programs that update databases do.
    fn replace(&self, bytes: &[u8]) {
        let other = self.0.with_extension("new");
        fs::write(&other, bytes).expect("the temporary directory is writable");
        fs::rename(other, &self.0).expect("both are in one directory");
    }
}

impl Drop for TempPath {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn a_changed_file_is_taken_at_the_next_look() {
    let place = TempPath::new("db");
    let path = place.0.to_str().expect("the name is ASCII").to_owned();
    let log_place = TempPath::new("log");
    let file = fs::File::create(&log_place.0).expect("the temporary directory is writable");
    let log = ErrorLog::new(vec![Sink::file(Arc::new(file), Level::Info)]);
    let said = || fs::read_to_string(&log_place.0).expect("it was made above");

    let text = format!(
        "geoip2 {path} {{ auto_reload 5m; $v name; $checked metadata last_check; }} server {{ return 200 \"$v $checked\"; }}"
    );
    let mut site = Site::http_with(&text, &[(&path, &database("first"))]);
    assert_eq!(site.run_tasks(100, &log), [Some(300_000)]);
    assert_eq!(site.get("/").body, "first 100");
    assert_eq!(said(), "");

    place.replace(&database("second"));
    assert_eq!(site.run_tasks(400, &log), [Some(300_000)]);
    assert_eq!(site.get("/").body, "second 400");
    assert!(said().contains(&format!(
        "[info] {0}#{0}: Reload MMDB \"{path}\"",
        std::process::id()
    )));

    // The same file is not read again; a broken or missing one leaves the old data.
    let before = said().lines().count();
    site.run_tasks(700, &log);
    assert_eq!(
        (site.get("/").body.as_str(), said().lines().count()),
        ("second 700", before)
    );
    place.replace(b"broken");
    site.run_tasks(1000, &log);
    assert_eq!(site.get("/").body, "second 1000");
    assert!(said().contains(&format!(
        "[error] {0}#{0}: MMDB_open(\"{path}\") failed to reload - it is not",
        std::process::id()
    )));
    fs::remove_file(&place.0).expect("it is there");
    site.run_tasks(1300, &log);
    assert_eq!(site.get("/").body, "second 1300");
    assert!(said().contains(&format!(
        "stat() \"{path}\" failed (2: No such file or directory)"
    )));
    place.replace(&database("third"));
    site.run_tasks(1600, &log);
    assert_eq!(site.get("/").body, "third 1600");
}

#[test]
fn an_interval_of_zero_is_none() {
    let site = site("auto_reload 0;", "");
    let log = ErrorLog::new(Vec::new());
    assert_eq!(site.run_tasks(1, &log), [None]);
}
