//! Names and passwords: `auth_basic`, `auth_basic_user_file`, `auth_delay`, and their combination with `satisfy`.

use std::cell::{Cell, RefCell};

use base64ct::{Base64, Encoding};
use server_base::offload::{Full, Work};

use crate::site::{Answer, Site};

const USERS: &str = "# people\n\
    plain:{PLAIN}secret\n\
    des:sa3tHJ3/KuYvI:somebody\n\
    bcrypt:$2y$04$abcdefghijklmnopqrstuughE8Ev8uGFaUgY2cNEySvxngrb/Jzdm\n\
    odd:what is this\n\
    twice:{PLAIN}first\n\
    twice:{PLAIN}second";
const FILE: &str = "/etc/nginx/users";

fn site(locations: &str) -> Site {
    Site::server(&format!(
        "auth_basic \"closed site\"; auth_basic_user_file users; {locations}"
    ))
    .file(FILE, USERS)
    .file("/www/f", "file")
}

fn credentials(user: &str, password: &str) -> String {
    let text = Base64::encode_string(format!("{user}:{password}").as_bytes());
    format!("Authorization: Basic {text}\r\n")
}

fn get(site: &mut Site, target: &str, user: &str, password: &str) -> Answer {
    site.get_with(target, &credentials(user, password))
}

#[test]
fn a_name_and_its_password_are_asked_for() {
    let mut site = site("");
    let answer = site.get("/f");
    assert_eq!(
        (answer.status, answer.field("WWW-Authenticate")),
        (401, "Basic realm=\"closed site\"")
    );
    for (user, password, status) in [
        ("plain", "secret", 200),
        ("plain", "wrong", 401),
        ("plain", "", 401),
        ("des", "password", 200),
        ("des", "wrong", 401),
        ("bcrypt", "password", 200),
        ("bcrypt", "password", 200),
        ("bcrypt", "wrong", 401),
        ("odd", "what is this", 401),
        ("nobody", "secret", 401),
        ("", "secret", 401),
        ("# people", "", 401),
        ("twice", "first", 200),
        ("twice", "second", 401),
    ] {
        let answer = get(&mut site, "/f", user, password);
        assert_eq!(answer.status, status, "{user}:{password}");
        let asked = !answer.field("WWW-Authenticate").is_empty();
        assert_eq!(asked, status == 401, "{user}:{password}");
    }
}

#[test]
fn what_is_no_basic_authorization_counts_as_none() {
    let mut site = site("");
    for value in [
        "Digest username=plain",
        "Basic",
        "Basic ",
        "Basic !",
        "Basic cGxhaW4=",
        "cGxhaW46c2VjcmV0",
    ] {
        let answer = site.get_with("/f", &format!("Authorization: {value}\r\n"));
        assert_eq!(answer.status, 401, "{value}");
    }
    let answer = site.get_with("/f", "Authorization: bAsIc   cGxhaW46c2VjcmV0\r\n");
    assert_eq!(answer.status, 200);
}

#[test]
fn the_user_file_of_the_moment_counts() {
    let mut site = site("");
    assert_eq!(get(&mut site, "/f", "bcrypt", "password").status, 200);
    let mut site = site.file(
        FILE,
        "bcrypt:$2y$04$abcdefghijklmnopqrstuuMFdJu9yVgmagVAIC24fOZkaFqd3s9JC",
    );
    assert_eq!(get(&mut site, "/f", "bcrypt", "password").status, 401);
    assert_eq!(get(&mut site, "/f", "bcrypt", "a").status, 200);
    let mut site = site.file(FILE, "");
    assert_eq!(get(&mut site, "/f", "bcrypt", "a").status, 401);
}

#[test]
fn a_large_user_file_is_looked_through_to_its_end() {
    let filler: String = (0..20_000)
        .map(|n| format!("user{n}:{{PLAIN}}{n}\n"))
        .collect();
    assert!(filler.len() > 4 * 65536, "several pieces");
    let mut site = site("").large_file(FILE, &format!("{filler}last:{{PLAIN}}x"));
    for n in (0..20_000).step_by(1777) {
        let user = format!("user{n}");
        assert_eq!(
            get(&mut site, "/f", &user, &n.to_string()).status,
            200,
            "{user}"
        );
        assert_eq!(get(&mut site, "/f", &user, "x").status, 401, "{user}");
    }
    assert_eq!(get(&mut site, "/f", "last", "x").status, 200);
    assert_eq!(get(&mut site, "/f", "user", "x").status, 401);
}

#[test]
fn realm_and_user_file_may_be_made_of_variables() {
    let mut site = site(
        "location /r { auth_basic $arg_realm; }
         location /u { auth_basic_user_file $arg_file; }",
    )
    .file("/www/r", "r")
    .file("/www/u", "u")
    .file("/elsewhere", "other:{PLAIN}x")
    .dir("/etc/nginx/dir");
    let answer = site.get("/r?realm=a%20b");
    assert_eq!(answer.field("WWW-Authenticate"), "Basic realm=\"a%20b\"");
    assert_eq!(site.get("/r?realm=off").status, 200);
    assert_eq!(
        get(&mut site, "/u?file=users", "plain", "secret").status,
        200
    );
    assert_eq!(
        get(&mut site, "/u?file=/elsewhere", "other", "x").status,
        200
    );
    // A missing file forbids access; an unreadable one is a server error.
    assert_eq!(get(&mut site, "/u?file=nx", "plain", "secret").status, 403);
    assert_eq!(get(&mut site, "/u?file=dir", "plain", "secret").status, 500);
    assert_eq!(
        get(&mut site, "/u?file=users/x", "plain", "secret").status,
        500
    );
    assert_eq!(get(&mut site, "/u", "plain", "secret").status, 500);
    // Without a name the file is not read.
    assert_eq!(site.get("/u?file=nx").status, 401);
}

#[test]
fn a_level_takes_what_it_does_not_say_from_the_one_around_it() {
    let mut site = Site::http(
        "auth_basic outer; auth_basic_user_file users;
         server {
             root /www;
             location /off { auth_basic off; location /off/on { auth_basic inner; } }
             location /most { limit_except GET { auth_basic off; } }
         }",
    )
    .file(FILE, USERS)
    .file("/www/off", "x");
    assert_eq!(site.get("/off").status, 200);
    let answer = site.get("/off/on");
    assert_eq!(answer.field("WWW-Authenticate"), "Basic realm=\"inner\"");
    assert_eq!(site.get("/most").status, 401);
    let post = site.send("POST /most HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(post.status, 404);
    // Without a file there is nothing to compare with.
    let mut site = Site::server("auth_basic x;").file("/www/f", "file");
    assert_eq!(site.get("/f").status, 200);
}

#[test]
fn any_of_address_and_password_may_satisfy() {
    let mut site = site(
        "satisfy any;
         location /deny { deny all; }
         location /allow { allow all; }
         location /all { satisfy all; deny all; }",
    );
    for path in ["deny", "allow", "all"] {
        site = site.file(&format!("/www/{path}"), path);
    }
    let answer = site.get("/deny");
    assert_eq!(
        (answer.status, answer.field("WWW-Authenticate")),
        (401, "Basic realm=\"closed site\"")
    );
    let answer = get(&mut site, "/deny", "plain", "secret");
    assert_eq!((answer.status, answer.field("WWW-Authenticate")), (200, ""));
    assert_eq!(site.get("/allow").status, 200);
    assert_eq!(get(&mut site, "/all", "plain", "secret").status, 403);
}

#[test]
fn the_log_says_why() {
    let mut site = site("location /u { auth_basic_user_file nx; }");
    let log = site.logged(|site| {
        site.get("/f");
        get(site, "/f", "nobody", "x");
        get(site, "/f", "plain", "x");
        get(site, "/f", "odd", "x");
        get(site, "/u", "odd", "x");
    });
    for text in [
        "[info] ",
        "no user/password was provided for basic authentication",
        "user \"nobody\" was not found in \"/etc/nginx/users\"",
        "user \"plain\": password mismatch",
        "user \"odd\": unknown password format in the file",
        "open() \"/etc/nginx/nx\" failed (2: No such file or directory)",
    ] {
        assert!(log.contains(text), "{text}: {log}");
    }
    assert!(!log.contains("secret"), "{log}");
}

#[test]
fn the_user_is_known_by_name() {
    let mut site = site("add_header X-User $remote_user;");
    let answer = get(&mut site, "/f", "plain", "secret");
    assert_eq!(answer.field("X-User"), "plain");
}

#[test]
fn an_error_page_keeps_the_challenge() {
    let mut site =
        site("error_page 401 /login; location = /login { auth_basic off; return 200 log-in; }");
    let answer = site.get("/f");
    assert_eq!(
        (
            answer.status,
            answer.body.as_str(),
            answer.field("WWW-Authenticate")
        ),
        (401, "log-in", "Basic realm=\"closed site\"")
    );
}

#[test]
fn auth_delay_holds_back_every_refusal_alike() {
    let mut site = site(
        "auth_delay 2s;
         location /any { satisfy any; deny all; }
         location /deny { deny all; }
         location /page { error_page 401 /login; }
         location = /login { auth_basic off; return 200 log-in; }",
    )
    .file("/www/any", "any")
    .file("/www/page", "page");
    let waited = |answer: Answer| (answer.status, answer.waited_ms);
    for _ in 0..2 {
        assert_eq!(waited(site.get("/f")), (401, 2000));
        assert_eq!(waited(get(&mut site, "/f", "plain", "x")), (401, 2000));
        assert_eq!(waited(get(&mut site, "/f", "bcrypt", "x")), (401, 2000));
        assert_eq!(waited(get(&mut site, "/f", "nobody", "x")), (401, 2000));
        assert_eq!(waited(get(&mut site, "/f", "plain", "secret")), (200, 0));
        assert_eq!(waited(site.get("/any")), (401, 2000));
        assert_eq!(waited(get(&mut site, "/any", "plain", "secret")), (200, 0));
        assert_eq!(waited(get(&mut site, "/deny", "plain", "secret")), (403, 0));
        let page = site.get("/page");
        assert_eq!(
            (page.body.as_str(), page.field("WWW-Authenticate")),
            ("log-in", "Basic realm=\"closed site\"")
        );
        assert_eq!(waited(page), (401, 2000));
        // An early wake-up has no effect.
        site.wake_early();
    }
    let mut site = self::site("auth_delay 2s;");
    site.wake_early();
    let log = site.logged(|site| {
        site.get("/f");
    });
    assert_eq!(
        log.matches("delaying unauthorized request").count(),
        1,
        "{log}"
    );
}

thread_local! {
    /// Offloaded work in progress, and the number of all offloaded works.
    static WAITING: RefCell<Vec<Work>> = const { RefCell::new(Vec::new()) };
    static GIVEN: Cell<u32> = const { Cell::new(0) };
    static LOOKS: Cell<u32> = const { Cell::new(0) };
}

/// Accepts work, which is complete at the third poll.
fn take(work: Work) -> Result<(), Full> {
    WAITING.with_borrow_mut(|waiting| waiting.push(work));
    GIVEN.set(GIVEN.get() + 1);
    LOOKS.set(0);
    Ok(())
}

fn look() {
    LOOKS.set(LOOKS.get() + 1);
    if LOOKS.get() == 3 {
        WAITING.take().into_iter().for_each(|work| work());
    }
}

/// Returns the number of comparisons offloaded by a function.
fn given(meanwhile: impl FnOnce()) -> u32 {
    let before = GIVEN.get();
    meanwhile();
    GIVEN.get() - before
}

#[test]
fn a_refusal_costs_one_slow_comparison_whoever_is_named() {
    let mut site = site("");
    site.offload(take, look);
    for (user, password, status, slow) in [
        ("nobody", "password", 401, 1),
        ("bcrypt", "wrong", 401, 1),
        ("plain", "wrong", 401, 1),
        ("odd", "what is this", 401, 1),
        ("des", "wrong", 401, 0),
        ("plain", "secret", 200, 0),
        ("bcrypt", "password", 200, 1),
        ("bcrypt", "password", 200, 0),
        // This password matches another user's hash.
        ("nobody", "password", 401, 1),
    ] {
        let mut answered = 0;
        let given = given(|| answered = get(&mut site, "/f", user, password).status);
        assert_eq!((answered, given), (status, slow), "{user}:{password}");
    }
    // Without a slow hash in the file nothing is slow.
    let mut site = site.file(FILE, "plain:{PLAIN}secret\ndes:sa3tHJ3/KuYvI");
    for user in ["plain", "des", "nobody"] {
        let given = given(|| assert_eq!(get(&mut site, "/f", user, "x").status, 401));
        assert_eq!(given, 0, "{user}");
    }
}

#[test]
fn an_exchange_that_waits_for_a_comparison_goes_on_where_it_was() {
    let mut site = site(
        "location /any { satisfy any; deny all; }
         location /late { auth_delay 2s; }
         location /page { error_page 401 /login; }
         location = /login { auth_basic off; return 200 log-in; }",
    )
    .file("/www/any", "any");
    site.offload(take, look);
    let answer = get(&mut site, "/f", "bcrypt", "password");
    assert_eq!((answer.status, answer.waited_ms), (200, 3));
    let answer = get(&mut site, "/f", "bcrypt", "wrong");
    assert_eq!((answer.status, answer.waited_ms), (401, 3));
    assert_eq!(
        answer.field("WWW-Authenticate"),
        "Basic realm=\"closed site\""
    );
    assert_eq!(get(&mut site, "/any", "bcrypt", "wrong").status, 401);
    let mut site = site.file(
        FILE,
        "bcrypt:$2y$04$abcdefghijklmnopqrstuuMFdJu9yVgmagVAIC24fOZkaFqd3s9JC",
    );
    assert_eq!(get(&mut site, "/any", "bcrypt", "a").status, 200);
    assert_eq!(get(&mut site, "/page", "bcrypt", "b").body, "log-in");
    // The delay has begun before the comparison.
    let answer = get(&mut site, "/late", "bcrypt", "c");
    assert_eq!((answer.status, answer.waited_ms), (401, 2000));
    let mut site = self::site("");
    site.offload(take, look);
    let log = site.logged(|site| {
        get(site, "/f", "bcrypt", "d");
    });
    assert_eq!(log.matches("password mismatch").count(), 1, "{log}");
}

#[test]
fn too_many_comparisons_are_refused() {
    let mut site = site("");
    site.offload(|_| Err(Full), || {});
    let log = site.logged(|site| {
        assert_eq!(get(site, "/f", "bcrypt", "e").status, 503);
        assert_eq!(get(site, "/f", "nobody", "e").status, 503);
        assert_eq!(get(site, "/f", "plain", "secret").status, 200);
    });
    let text = "too many password comparisons are waiting";
    assert_eq!(log.matches(text).count(), 2, "{log}");
}
