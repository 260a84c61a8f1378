//! Resolution of names, time of evaluation, and variables that need others.

use std::sync::Arc;

use conf::{Arity, ConfError, Directive};

use super::{Compute, MAX_DEPTH, Variable, append_by_name};
use crate::assemble::ConfigBuilder;
use crate::exchange::{Ctx, Exchange};
use crate::module::Module;
use crate::testing::{World, get, refused, row};
use crate::value::Value;

/// `via NAME VALUE` computes a variable from others, once; `ever` each time it is used. `put NAME` assigns a name
/// as `set` does, `quiet NAME` as other directives do.
const VARS: Module = Module {
    name: "vars",
    directives: &[&[
        row("via", Arity::TAKE2, |b, d| via(b, d, false)),
        row("ever", Arity::TAKE2, |b, d| via(b, d, true)),
        row("put", Arity::TAKE1, |b, d| {
            let target = b.vars.target(d.arg(0));
            target.map(drop).map_err(|text| ConfError::at(d, text))
        }),
        row("quiet", Arity::TAKE1, |b, d| {
            let target = b.vars.quiet_target(d.arg(0));
            target.map(drop).map_err(|text| ConfError::at(d, text))
        }),
        row("by_name", Arity::NOARGS, |b, _| {
            b.vars.by_name = true;
            Ok(())
        }),
    ]],
    variables: &[
        read("whole", |_, _, _, out| say(out, b"whole")),
        read("pre_whole", |_, _, _, out| say(out, b"one of all")),
        read("pre_", |_, _, suffix, out| {
            say(out, &[b"short ", suffix].concat())
        }),
        read("pre_long_", |_, _, suffix, out| {
            say(out, &[b"long ", suffix].concat())
        }),
        read("missing", |_, _, _, _| false),
        // How often it was read.
        read("count", |x, _, _, out| {
            x.response.bytes_sent += 1;
            say(out, x.response.bytes_sent.to_string().as_bytes())
        }),
    ],
    defaults: &[read("base", |_, _, _, out| say(out, b"of the module"))],
    ..Module::EMPTY
};

const fn read(name: &'static str, read: super::Read) -> Variable {
    Variable {
        name,
        read,
        write: None,
        doc: "",
    }
}

fn say(out: &mut Vec<u8>, text: &[u8]) -> bool {
    out.extend_from_slice(text);
    true
}

struct Via {
    value: Value,
    volatile: bool,
}

impl Compute for Via {
    fn compute(&self, x: &mut Exchange, cx: &mut Ctx<'_>) -> Option<Vec<u8>> {
        Some(self.value.to_vec(x, cx)).filter(|value| value != b"none")
    }

    fn volatile(&self) -> bool {
        self.volatile
    }
}

fn via(b: &mut ConfigBuilder, d: &Directive, volatile: bool) -> Result<(), ConfError> {
    let value = Value::compile(b, d, d.word(1))?;
    let defined = b.vars.define(d.arg(0), Arc::new(Via { value, volatile }));
    defined.map(drop).map_err(|text| ConfError::at(d, text))
}

/// A configuration in which this text is the root of all files, and a request.
struct Fixture {
    world: World,
    x: Exchange,
}

impl Fixture {
    fn new(text: &str, more: &str) -> Self {
        let world = World::with(&format!("root /{text}; {more} server {{ }}"), &[&VARS]);
        let x = world.exchange(&get("/"));
        Self { world, x }
    }

    /// The value of the text for the request.
    fn value(&mut self) -> String {
        let http = self.world.generation.http.clone();
        let root = self.x.core_loc(&http).root.as_ref();
        let path = &root.expect("the configuration has one").path;
        let value = path.to_vec(&mut self.x, &mut self.world.cx());
        String::from_utf8_lossy(&value[1..]).into_owned()
    }
}

fn value(text: &str, more: &str) -> String {
    Fixture::new(text, more).value()
}

#[test]
fn a_whole_name_comes_before_prefixes_and_the_longest_of_those_counts() {
    assert_eq!(value("$whole", ""), "whole");
    assert_eq!(value("$pre_x", ""), "short x");
    assert_eq!(value("$pre_long_x", ""), "long x");
    assert_eq!(value("$pre_lon", ""), "short lon");
    assert_eq!(value("$pre_whole", ""), "one of all");
    assert_eq!(value("$pre_", ""), "short ");
}

#[test]
fn names_have_no_case_and_end_where_no_name_goes_on() {
    assert_eq!(value("$WHOLE", ""), "whole");
    assert_eq!(value("${whole}s", ""), "wholes");
    assert_eq!(value("$whole-$whole", ""), "whole-whole");
    assert_eq!(value("a$pre_X", ""), "ashort x");
    assert_eq!(value("[$missing]", ""), "[]");
}

#[test]
fn a_name_that_nothing_defines_is_refused_and_one_defined_later_is_not() {
    let said = refused("root /$nobody; server { }", &[&VARS]);
    assert_eq!(said, "unknown \"nobody\" variable");
    assert_eq!(value("$later", "via later text;"), "text");
}

#[test]
fn variables_of_modules_cannot_be_defined_anew_but_for_their_defaults() {
    for line in ["via whole x;", "put whole;", "quiet whole;", "via WHOLE x;"] {
        let said = refused(&format!("{line} server {{ }}"), &[&VARS]);
        assert!(
            said.ends_with("variable") && said.starts_with("the duplicate \""),
            "{line}: {said}"
        );
    }
    assert_eq!(value("$base", ""), "of the module");
    assert_eq!(value("$base", "via base own;"), "own");
    assert_eq!(
        value("$base", "put base;"),
        "of the module",
        "until it is set"
    );
    assert_eq!(value("$pre_x", "put pre_x;"), "short x", "until it is set");
    assert_eq!(
        value("$pre_x", "quiet pre_x;"),
        "",
        "nobody sets it by that name"
    );
}

#[test]
fn a_variable_that_is_set_has_that_value() {
    for (name, before) in [("own", ""), ("base", "of the module"), ("pre_x", "short x")] {
        let mut asked = Fixture::new(&format!("${name}"), &format!("put {name};"));
        assert_eq!(asked.value(), before);
        asked.x.vars.set_slot(0, Some(b"set".to_vec()));
        assert_eq!(asked.value(), "set");
    }
}

#[test]
fn reading_what_set_has_not_set_is_worth_a_warning() {
    let mut set = Fixture::new("$own", "put own;");
    assert_eq!(set.value(), "");
    let said = set.world.said();
    assert!(
        said.contains("using uninitialized \"own\" variable"),
        "{said}"
    );
    let mut quiet = Fixture::new("$own", "quiet own;");
    assert_eq!(quiet.value(), "");
    assert_eq!(quiet.world.said(), "");
    let mut off = Fixture::new("$own", "uninitialized_variable_warn off; put own;");
    off.value();
    assert_eq!(off.world.said(), "");
}

#[test]
fn a_variable_is_computed_once_for_a_request_unless_it_is_volatile() {
    assert_eq!(value("$once$once", "via once $count;"), "11");
    assert_eq!(value("$ever$ever", "ever ever $count;"), "12");
    // A missing value is not looked up again either.
    let mut none = Fixture::new(
        "$none$none$count",
        "via none ${n}one; via n $count$empty; quiet empty;",
    );
    assert_eq!(none.value(), "1one1one2");
    let mut nothing = Fixture::new("[$nothing]", "via nothing none;");
    assert_eq!(nothing.value(), "[]");
}

#[test]
fn the_same_variable_defined_twice_has_the_later_definition() {
    assert_eq!(value("$own", "via own first; via own second;"), "second");
}

/// `v0`, and each variable after it computed from the one before, `length` in all.
fn chain(length: usize) -> String {
    let mut lines = "via v0 end;".to_owned();
    for n in 1..length {
        lines += &format!("via v{n} $v{};", n - 1);
    }
    lines
}

#[test]
fn variables_may_need_one_another_up_to_a_depth() {
    let most = usize::from(MAX_DEPTH);
    let mut fine = Fixture::new(&format!("$v{}", most - 1), &chain(most));
    assert_eq!(fine.value(), "end");
    assert_eq!((fine.world.said().as_str(), fine.x.vars.depth), ("", 0));
    let mut deep = Fixture::new(&format!("$v{most}"), &chain(most + 1));
    assert_eq!(deep.value(), "");
    let said = deep.world.said();
    assert!(
        said.contains("cycle while evaluating variable \"v0\""),
        "{said}"
    );
    assert_eq!(deep.x.vars.depth, 0, "the next has all of it");
}

#[test]
fn variables_that_need_each_other_have_no_value() {
    let mut asked = Fixture::new("[$a]$whole", "via a $b; via b $a;");
    assert_eq!(asked.value(), "[]whole");
    assert_eq!(
        asked.world.said().matches("cycle while evaluating").count(),
        1
    );
}

#[test]
fn variables_are_found_by_name_while_serving_where_somebody_asks_for_that() {
    let find = |more: &str, name: &str| {
        let mut asked = Fixture::new("", more);
        let mut out = Vec::new();
        let found = append_by_name(
            name.as_bytes(),
            &mut asked.x,
            &mut asked.world.cx(),
            &mut out,
        );
        found.then(|| String::from_utf8_lossy(&out).into_owned())
    };
    let more = "by_name; via own text; via base anew; put set; put pre_x;";
    for (name, expected) in [
        ("whole", Some("whole")),
        ("pre_long_y", Some("long y")),
        ("pre_y", Some("short y")),
        ("pre_x", Some("short x")),
        ("own", Some("text")),
        ("base", Some("anew")),
        ("missing", None),
        ("nobody", None),
    ] {
        assert_eq!(find(more, name).as_deref(), expected, "{name}");
    }
    assert_eq!(find("", "whole"), None, "nobody has asked");
}
