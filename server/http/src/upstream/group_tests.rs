//! Groups that are used before and after they are defined; messages are nginx's.

use conf::{Arity, Directive};
use server_upstream::group::Server;
use server_upstream::route::UpstreamAddr;

use super::*;
use crate::module::Module;
use crate::testing::{World, refused, row};

/// `pass HOST [PORT]` uses a constant address with the default port 80, `gateway` one without default; `group NAME`
/// defines a group of one server, `spare NAME` one of a backup server.
const MODULE: Module = Module {
    name: "groups",
    directives: &[&[
        row("pass", Arity::TAKE12, |b, d| pass(b, d, 80)),
        row("gateway", Arity::TAKE12, |b, d| pass(b, d, 0)),
        row("group", Arity::TAKE1, |b, d| group(b, d, false)),
        row("spare", Arity::TAKE1, |b, d| group(b, d, true)),
        row("unresolved_is_error", Arity::NOARGS, |b, _| {
            b.conf_mut::<Groups>().unresolved_is_error = Some(true);
            Ok(())
        }),
    ]],
    settings: &[<Groups as Conf>::def, <GroupValues as Conf>::def],
    finish: Some(finish),
    ..Module::EMPTY
};

fn pass(b: &mut ConfigBuilder, d: &Directive, default_port: u16) -> Result<(), ConfError> {
    let port = d.args.get(1).and_then(|port| port.as_str().parse().ok());
    let groups = b.conf_mut::<Groups>();
    groups.add(d, d.arg_str(0), port, default_port).map(drop)
}

fn group(b: &mut ConfigBuilder, d: &Directive, is_backup: bool) -> Result<(), ConfError> {
    let id = b.conf_mut::<Groups>().define(d)?;
    let server = Server {
        addresses: vec![UpstreamAddr::Inet(([192, 0, 2, 1], 8080).into())],
        is_backup,
        ..Server::new()
    };
    b.conf_mut::<Groups>().get_mut(id).servers.push(server);
    Ok(())
}

/// The groups of a configuration: name, `*` for one that is defined, addresses or `-`.
fn groups(text: &str) -> String {
    let world = World::with(text, &[&MODULE]);
    let shown = world.generation.main::<Groups>().iter().map(|group| {
        let mark = if group.is_defined { "*" } else { "" };
        let name = String::from_utf8_lossy(&group.name).into_owned();
        let servers = group.servers.iter();
        let all: Vec<_> = servers
            .flat_map(|s| s.addresses.iter().map(ToString::to_string))
            .collect();
        match all.is_empty() {
            true => format!("{name}{mark}=-"),
            false => format!("{name}{mark}={}", all.join(",")),
        }
    });
    shown.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_use_finds_the_group_wherever_it_is_defined() {
    for (text, told) in [
        ("group a; pass a;", "a*=192.0.2.1:8080"),
        ("pass a; group a;", "a*=192.0.2.1:8080"),
        ("pass A; gateway a; group a;", "A*=192.0.2.1:8080"),
        ("pass 192.0.2.7;", "192.0.2.7=192.0.2.7:80"),
        (
            "pass 192.0.2.7; pass 192.0.2.7 80;",
            "192.0.2.7=192.0.2.7:80",
        ),
        (
            "pass 192.0.2.7; pass 192.0.2.7 81;",
            "192.0.2.7=192.0.2.7:80 192.0.2.7=192.0.2.7:81",
        ),
        ("pass [::1] 9;", "[::1]=[::1]:9"),
        ("pass unix:/a; pass unix:/a;", "unix:/a=unix:/a"),
        ("pass none.test;", "none.test=-"),
        (
            "pass 192.0.2.7; group 192.0.2.7;",
            "192.0.2.7*=192.0.2.1:8080",
        ),
    ] {
        assert_eq!(groups(text), told, "{text}");
    }
}

#[test]
fn what_is_wrong_with_groups_is_told_as_by_nginx() {
    for (text, told) in [
        ("group a; group A;", "duplicate upstream \"A\""),
        ("group a; pass a 80;", "upstream \"a\" may not have port 80"),
        ("pass a 81; group a;", "upstream \"a\" may not have port 81"),
        ("gateway a;", "no port in upstream \"a\""),
        ("gateway 192.0.2.1;", "no port in upstream \"192.0.2.1\""),
        ("spare a;", "no servers in upstream \"a\""),
        (
            "unresolved_is_error; pass none.test;",
            "host not found in upstream \"none.test\"",
        ),
    ] {
        assert_eq!(refused(text, &[&MODULE]), told, "{text}");
    }
}

#[test]
fn an_address_made_of_variables_means_a_group_an_address_or_a_name() {
    let world = World::with("group a; pass 192.0.2.7; pass b.test 81;", &[&MODULE]);
    let told = |host: &str, port: Option<u16>, default| match world
        .generation
        .main::<Groups>()
        .target(host, port, default)
    {
        Ok(Target::Group(id)) => format!("group {}", id.0),
        Ok(Target::Addresses(all)) => all[0].to_string(),
        Ok(Target::Name(name, port)) => format!("{name}?{port}"),
        Err(why) => why,
    };
    for (host, port, default, expected) in [
        ("a", None, 80, "group 0"),
        ("A", None, 80, "group 0"),
        ("a", Some(80), 80, "a?80"),
        ("192.0.2.7", None, 80, "group 1"),
        ("192.0.2.7", Some(80), 80, "group 1"),
        ("192.0.2.7", Some(81), 80, "192.0.2.7:81"),
        ("[2001:db8::1]", None, 443, "[2001:db8::1]:443"),
        ("b.test", Some(81), 80, "group 2"),
        ("b.test", None, 80, "b.test?80"),
        ("unix:/run/a", None, 80, "unix:/run/a"),
        ("c.test", None, 0, "no port in upstream \"c.test\""),
    ] {
        assert_eq!(told(host, port, default), expected, "{host} {port:?}");
    }
}
