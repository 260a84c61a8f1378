//! Modules that depend on the address of the client: `allow` and `deny`, `geo`, `set_real_ip_from`; and
//! `split_clients`.

use crate::site::Site;

const V4: &str = "192.0.2.1:4000";
const V6: &str = "[2001:db8::1]:4000";
const MAPPED: &str = "[::ffff:192.0.2.1]:4000";

#[test]
fn the_first_rule_that_fits_decides() {
    let mut site = Site::server(
        "location / {
             deny 192.0.2.7; allow 192.0.2.0/24; allow 2001:db8::/32; allow unix:; deny all;
         }",
    )
    .file("/www/f", "file");
    for (peer, status) in [
        (V4, 200),
        (MAPPED, 200),
        (V6, 200),
        ("unix:", 200),
        ("192.0.2.7:1", 403),
        ("[::ffff:192.0.2.7]:1", 403),
        ("192.0.3.1:1", 403),
        ("[2001:db9::1]:1", 403),
    ] {
        assert_eq!(site.come_from(peer).get("/f").status, status, "{peer}");
    }
}

#[test]
fn a_rule_is_about_its_kind_of_address() {
    let mut site = Site::server(
        "location /a { deny unix:; } location /b { deny ::/0; } location /c { deny 0.0.0.0/0; }
         location /d { deny all; } location /e { deny 192.0.2.7; }",
    );
    for (peer, denied) in [(V4, "cd"), (V6, "bd"), (MAPPED, "bcd"), ("unix:", "ad")] {
        site.come_from(peer);
        for name in ["a", "b", "c", "d", "e"] {
            let status = if denied.contains(name) { 403 } else { 404 };
            assert_eq!(
                site.get(&format!("/{name}")).status,
                status,
                "{peer} {name}"
            );
        }
    }
}

#[test]
fn rules_of_a_level_stand_in_for_those_around_it() {
    let mut site = Site::http(
        "deny all;
         server {
             root /www;
             location /in { }
             location /own { allow 192.0.2.1; }
             location /except { allow all; limit_except GET { deny all; } }
         }",
    );
    assert_eq!(site.get("/in").status, 403);
    assert_eq!(site.get("/own").status, 404);
    assert_eq!(site.get("/except").status, 404);
    let post = "POST /except HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(site.send(post).status, 403);
}

#[test]
fn any_handler_may_be_satisfied() {
    let mut site = Site::server(
        "location / { satisfy any; deny all; } location /a { satisfy any; allow all; }",
    );
    assert_eq!(site.get("/").status, 403);
    assert_eq!(site.get("/a").status, 404);
}

#[test]
fn geo_takes_the_longest_prefix() {
    let mut site = Site::http(
        "geo $geo { 192.0.0.0/8 outer; 192.0.2.0/24 inner; 2001:db8::/32 six; default other; }
         geo $bare { 10.0.0.0/8 ten; 255.255.255.255 none; }
         server { return 200 \"$geo [$bare]\"; }",
    );
    for (peer, expected) in [
        (V4, "inner []"),
        (MAPPED, "inner []"),
        ("192.1.2.3:1", "outer []"),
        ("10.1.2.3:1", "other [ten]"),
        (V6, "six []"),
        ("[2001:db9::1]:1", "other []"),
        ("unix:", "other [none]"),
    ] {
        assert_eq!(site.come_from(peer).get("/").body, expected, "{peer}");
    }
}

#[test]
fn geo_takes_an_address_from_a_variable() {
    let mut site = Site::http(
        "geo $arg_ip $geo { default default; 127.0.0.0/8 loopback; ::1 six; }
         geo $arg_ip $last { default default; 255.255.255.255 none; }
         server { return 200 \"$geo $last\"; }",
    );
    for (ip, expected) in [
        ("127.0.0.1", "loopback default"),
        ("::1", "six default"),
        ("::ffff:127.0.0.1", "loopback default"),
        ("192.0.2.1", "default default"),
        ("nowhere", "default none"),
        ("255.255.255.255", "default none"),
        ("", "default none"),
    ] {
        assert_eq!(site.get(&format!("/?ip={ip}")).body, expected, "{ip}");
    }
}

#[test]
fn geo_deletes_and_includes() {
    let mut site = Site::http(
        "geo $arg_ip $gone { 127.0.0.0/8 loopback; 0.0.0.0/0 world; delete 127.0.0.0/8; }
         geo $arg_ip $included { include nets.conf; 0.0.0.0/0 world; }
         server { return 200 \"$gone $included\"; }",
    );
    assert_eq!(site.get("/?ip=127.0.0.1").body, "world included");
    assert_eq!(site.get("/?ip=1.0.0.1").body, "world world");
}

#[test]
fn geo_takes_a_list_in_any_order() {
    let in_order = |n: usize| n;
    let in_none = |n: usize| n * 617 % 1000;
    let list = |form: fn(usize) -> String, order: fn(usize) -> usize| -> String {
        (0..1000).map(|n| form(order(n))).collect()
    };
    let network = |n: usize| format!("10.{}.{}.0/24 {};\n", n >> 8, n & 255, n % 3);
    let range = |n: usize| format!("10.{0}.{1}.0-10.{0}.{1}.255 {2};\n", n >> 8, n & 255, n % 3);
    let mut site = Site::http(&format!(
        "geo $arg_ip $a {{ {} }} geo $arg_ip $b {{ {} }}
         geo $arg_ip $c {{ ranges; {} }} geo $arg_ip $d {{ ranges; {} }}
         server {{ return 200 \"$a $b $c $d\"; }}",
        list(network, in_order),
        list(network, in_none),
        list(range, in_order),
        list(range, in_none),
    ));
    for n in 0..1000 {
        let ip = format!("10.{}.{}.{}", n >> 8, n & 255, n % 256);
        let value = n % 3;
        let expected = format!("{value} {value} {value} {value}");
        assert_eq!(site.get(&format!("/?ip={ip}")).body, expected, "{ip}");
    }
    assert_eq!(site.get("/?ip=10.3.232.0").body, "   ");
}

#[test]
fn geo_by_ranges() {
    let mut site = Site::http(
        "geo $arg_ip $geo {
             ranges;
             default default;
             127.0.0.0-127.255.255.255 loopback;
             127.0.0.1-127.0.0.2 inner;
             10.10.3.0-10.11.2.255 foo;
             10.12.3.0-10.13.2.255 foo2;
             delete 10.10.3.0-10.11.2.255;
         }
         geo $arg_ip $bare { ranges; 1.0.0.0-1.0.0.0 one; }
         server { return 200 \"$geo [$bare]\"; }",
    );
    for (ip, expected) in [
        ("127.0.0.0", "loopback []"),
        ("127.0.0.2", "inner []"),
        ("127.0.0.3", "loopback []"),
        ("::ffff:127.9.9.9", "loopback []"),
        ("10.11.2.1", "default []"),
        ("10.13.2.255", "foo2 []"),
        ("10.13.3.0", "default []"),
        ("1.0.0.0", "default [one]"),
        ("::1", "default []"),
        ("", "default []"),
    ] {
        assert_eq!(site.get(&format!("/?ip={ip}")).body, expected, "{ip}");
    }
}

#[test]
fn geo_believes_proxies() {
    let mut site = Site::http(
        "geo $once { proxy 192.0.2.1; default default; 127.0.0.0/8 loopback; 10.0.0.0/8 ten; }
         geo $deep {
             proxy_recursive; proxy 192.0.2.1; proxy 127.0.0.1;
             default default; 127.0.0.0/8 loopback; 10.0.0.0/8 ten;
         }
         server { return 200 \"$once $deep\"; }",
    );
    let mut via = |xff: &str| {
        site.get_with("/", &format!("X-Forwarded-For: {xff}\r\n"))
            .body
    };
    assert_eq!(via("10.0.0.1"), "ten ten");
    assert_eq!(via("10.0.0.1, 127.0.0.1"), "loopback ten");
    assert_eq!(via("unknown"), "default default");
    site.come_from("203.0.113.1:1");
    let answer = site.get_with("/", "X-Forwarded-For: 10.0.0.1\r\n");
    assert_eq!(answer.body, "default default");
}

#[test]
fn geo_is_computed_once_unless_volatile() {
    let mut site = Site::http(
        "geo $arg_ip $kept { 192.0.2.1 one; 192.0.2.2 two; }
         geo $arg_ip $anew { volatile; 192.0.2.1 one; 192.0.2.2 two; }
         server { set $a $kept$anew; set $args ip=192.0.2.2; return 200 \"$kept $anew\"; }",
    );
    assert_eq!(site.get("/?ip=192.0.2.1").body, "one two");
}

#[test]
fn clients_are_split_by_the_hash_of_a_text() {
    let mut site = Site::http(
        "split_clients $arg_a $part { 51.2% one; 10% two; * three; }
         split_clients \"$arg_a\" $rest { 0.01% rare; }
         server { return 200 \"$part [$rest]\"; }",
    );
    // Hashes of the texts: 446,775,395, then 2,456,313,694 and 3,369,748,723. The hash of an empty text is 0.
    assert_eq!(site.get("/?a=ab").body, "one []");
    assert_eq!(site.get("/?a=a").body, "two []");
    assert_eq!(site.get("/?a=192.0.2.1").body, "three []");
    assert_eq!(site.get("/").body, "one [rare]");
}

/// The variables of an address, in a site that trusts two networks.
const SHOW: &str =
    "return 200 \"$remote_addr:$remote_port via $realip_remote_addr:$realip_remote_port\";";
const TRUST: &str =
    "set_real_ip_from 192.0.2.0/24; set_real_ip_from 10.0.0.0/8; set_real_ip_from unix:;";

#[test]
fn a_trusted_proxy_names_the_client() {
    let mut site = Site::server(&format!("{TRUST} {SHOW}"));
    assert_eq!(site.get("/").body, "192.0.2.1:4000 via 192.0.2.1:4000");
    let mut named = |value: &str| site.get_with("/", &format!("X-Real-IP: {value}\r\n")).body;
    assert_eq!(named("203.0.113.9"), "203.0.113.9: via 192.0.2.1:4000");
    assert_eq!(named("203.0.113.9:80"), "203.0.113.9:80 via 192.0.2.1:4000");
    assert_eq!(
        named("[2001:db8::9]:80"),
        "2001:db8::9:80 via 192.0.2.1:4000"
    );
    assert_eq!(named("unknown"), "192.0.2.1:4000 via 192.0.2.1:4000");
    site.come_from("unix:");
    let answer = site.get_with("/", "X-Real-IP: 203.0.113.9\r\n");
    assert_eq!(answer.body, "203.0.113.9: via unix::");
    site.come_from("198.51.100.1:5");
    let answer = site.get_with("/", "X-Real-IP: 203.0.113.9\r\n");
    assert_eq!(answer.body, "198.51.100.1:5 via 198.51.100.1:5");
}

#[test]
fn the_field_that_names_the_client_can_be_chosen() {
    let show = "add_header X-IP $remote_addr; ";
    let mut site = Site::server(&format!(
        "{TRUST}
         location /own {{ real_ip_header X-Client; {show} }}
         location /last {{ real_ip_header X-Forwarded-For; {show} }}
         location /deep {{ real_ip_header X-Forwarded-For; real_ip_recursive on; {show} }}"
    ))
    .file("/www/own", "")
    .file("/www/last", "")
    .file("/www/deep", "");
    let mut ip = |target: &str, fields: &str| {
        let answer = site.get_with(target, fields);
        answer.field("X-IP").to_owned()
    };
    assert_eq!(ip("/own", "x-client: 203.0.113.9\r\n"), "203.0.113.9");
    let fields = "X-Forwarded-For: 203.0.113.9\r\nX-Forwarded-For: 203.0.113.8, 10.0.0.1\r\n";
    assert_eq!(ip("/last", fields), "10.0.0.1");
    assert_eq!(ip("/deep", fields), "203.0.113.8");
    let fields = "X-Forwarded-For: 203.0.113.9\r\nX-Forwarded-For: 10.0.0.1\r\n";
    assert_eq!(ip("/deep", fields), "203.0.113.9");
}

#[test]
fn the_client_is_named_once_and_before_rules_ask() {
    let mut site = Site::server(
        "set_real_ip_from 192.0.2.1;
         set_real_ip_from 203.0.113.9;
         location / { real_ip_header X-Client; deny 203.0.113.9; }",
    )
    .file("/www/f", "");
    let fields = "X-Real-IP: 203.0.113.9\r\nX-Client: 203.0.113.8\r\n";
    assert_eq!(site.get_with("/f", fields).status, 403);
    assert_eq!(site.get_with("/f", "X-Client: 203.0.113.9\r\n").status, 403);
    assert_eq!(site.get_with("/f", "X-Client: 203.0.113.8\r\n").status, 200);
    // The next request of the same client starts with the address of its connection again.
    assert_eq!(site.get("/f").status, 200);
}
