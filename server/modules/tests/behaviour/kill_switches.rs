//! `kill_switch` of an experiment: the file, unreadable directories, reloads.

use std::fs;

use conf::os_error;
use server_base::errlog::{ErrorLog, Level, Sink};

use crate::experiments::{SHOW, site};
use crate::site::{NOW_S, Site};

#[test]
fn kill_switch_is_looked_at_by_a_task() {
    let dir = std::env::temp_dir().join(format!("firstbyte-switch-{}", std::process::id()));
    fs::create_dir_all(&dir).expect("the temporary directory is writable");
    let switch = dir.join("off");
    let text = format!(
        "experiment x {{ kill_switch {}; arm a; arm b; }}",
        switch.display()
    );
    let mut site = site(&text, "location / { return 200 [$experiment_x]; }");
    let (now_s, log) = (NOW_S as i64, ErrorLog::new(Vec::new()));
    assert_eq!(site.get("/").body, "[]", "nobody has looked");
    assert_eq!(site.run_tasks(now_s, &log), [Some(1000)]);
    assert_ne!(site.get("/").body, "[]");
    fs::write(&switch, "").expect("the directory is there");
    assert_ne!(site.get("/").body, "[]", "no request looks");
    site.run_tasks(now_s + 1, &log);
    let killed = site.get("/");
    assert_eq!(
        (killed.body.as_str(), killed.field("Set-Cookie")),
        ("[]", "")
    );
    // The state outlives a reload.
    let reloaded = crate::experiments::site(&text, SHOW);
    fs::remove_file(&switch).expect("it was made above");
    let experiment = |site: &Site| site.generation().http.experiments[0].live_since_ms();
    reloaded.run_tasks(now_s + 5, &log);
    assert_ne!(site.get("/").body, "[]");
    assert_eq!(experiment(&site), (NOW_S + 6) * 1000);
    site.run_tasks(now_s + 9, &log);
    assert_eq!(experiment(&reloaded), (NOW_S + 6) * 1000);
    fs::remove_dir(&dir).expect("it is empty");
}

#[test]
fn unreadable_kill_switch_ends_the_experiment_with_one_line() {
    let file = std::env::temp_dir().join(format!("firstbyte-no-dir-{}", std::process::id()));
    fs::write(&file, "").expect("the temporary directory is writable");
    let switch = file.join("off");
    let error = fs::metadata(&switch).expect_err("a file has no files");
    let text = format!(
        "experiment x {{ kill_switch {}; arm a; arm b; }}",
        switch.display()
    );
    let mut site = site(&text, "location / { return 200 [$experiment_x]; }");
    let out = file.with_extension("log");
    let log = fs::File::create(&out).expect("the temporary directory is writable");
    let log = ErrorLog::new(vec![Sink::file(std::sync::Arc::new(log), Level::Info)]);
    for second in 0..3 {
        site.run_tasks(NOW_S as i64 + second, &log);
        assert_eq!(site.get("/").body, "[]");
    }
    fs::remove_file(&file).expect("it was made above");
    site.run_tasks(NOW_S as i64 + 3, &log);
    assert_ne!(site.get("/").body, "[]");
    let lines = fs::read_to_string(&out).expect("it was made above");
    fs::remove_file(&out).expect("it was made above");
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    let text = format!(
        "stat() \"{}\" failed ({})",
        switch.display(),
        os_error(&error)
    );
    assert!(
        lines[0].contains(&text) && lines[1].contains("is off"),
        "{lines:?}"
    );
}
