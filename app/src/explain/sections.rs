//! The parts of the report that are not steps: listener, server, location and response.

use engines::http::FieldId;
use server_http::assemble::Level;
use server_http::conf_core::CoreSrv;
use server_http::exchange::State;
use server_http::names::NameMatch;
use server_http::trace::{Event, FileKind, Noted};

use super::listener::Taken;
use super::report::{Answer, Listener, Server, Step};
use super::request::Run;
use super::steps::{Teller, lossy_text, status_line};

/// The socket, and the `listen` of the chosen server.
pub(super) fn listener_of(run: &Run, taken: Taken, teller: &Teller<'_>) -> Listener {
    let port = &teller.http.ports[taken.port];
    let entry = port.addr(run.x.client.local);
    let listens = entry.listens.iter();
    let own = listens.filter(|(server, _)| *server == run.x.route.server);
    Listener {
        address: match entry.addr {
            Some(addr) => format!("{addr}, on the socket of {}", port.listen.addr),
            None => port.listen.addr.to_string(),
        },
        at: own
            .filter_map(|(_, at)| *at)
            .find_map(|at| teller.place(at)),
        others: taken.others,
    }
}

/// The server, and why it was chosen.
pub(super) fn server_of(run: &Run, teller: &Teller<'_>) -> Server {
    let x = &run.x;
    let server = &teller.http.servers[x.route.server];
    let level = server.location;
    let confs: &CoreSrv = server.confs.get();
    let how = run.events.iter().find_map(|noted| match noted.event {
        Event::Server(how) => Some(how),
        _ => None,
    });
    let name = how.and_then(|how| how.name(&confs.names, &x.target.host));
    let written = |name: &str| {
        let lines = teller
            .written
            .at_level("server_name", Level::Location(level));
        let mut lines = lines.filter(|line| {
            let bare = |word: &String| word.trim_start_matches('~').eq_ignore_ascii_case(name);
            line.args.iter().any(bare)
        });
        lines.next().and_then(|line| teller.place(line.at))
    };
    let text = name.map(|name| lossy_text(&name.text)).unwrap_or_default();
    let host = lossy_text(&x.target.host);
    let (match_kind, why) = match how {
        Some(NameMatch::Only) => ("only", "the only server of this address".to_owned()),
        Some(NameMatch::Exact) => ("exact", format!("its name is \"{text}\"")),
        Some(NameMatch::Head(_) | NameMatch::Tail(_)) => (
            "wildcard",
            format!("its wildcard \"{text}\" is the longest match"),
        ),
        Some(NameMatch::Regex(_)) => ("regex", format!("its expression \"~{text}\" matches")),
        Some(NameMatch::Default) => ("default", default_reason(run, &host, teller)),
        None => (
            "none",
            "the handshake or the request was rejected before its host selected a server"
                .to_owned(),
        ),
    };
    Server {
        name: lossy_text(&confs.name),
        at: teller.place(teller.http.locations[level].at),
        match_kind,
        why,
        name_at: name.and_then(|name| written(&String::from_utf8_lossy(&name.text))),
    }
}

/// Returns the reason why a server is its address's default.
fn default_reason(run: &Run, host: &str, teller: &Teller<'_>) -> String {
    let x = &run.x;
    let entry = teller.http.ports[x.route.port].addr(x.client.local);
    let listens = entry.listens.iter();
    let own = listens.filter(|(server, _)| *server == x.route.server);
    let mut lines = own.filter_map(|(_, at)| teller.written.at((*at)?));
    let says = |word: &String| word == "default_server" || word == "default";
    let why = match lines.any(|line| line.args.iter().any(says)) {
        true => "it is the default_server",
        false => "it is the first of this address",
    };
    format!("no server has the name \"{host}\"; {why}")
}

/// Response to the client, after these steps.
pub(super) fn answer_of(run: &Run, steps: &[Step]) -> Answer {
    let x = &run.x;
    let mut answer = Answer {
        status: None,
        reason: String::new(),
        file: None,
        location: None,
        text: None,
        own_page: false,
        fields: Vec::new(),
    };
    if let Some(why) = run.greeting.refused {
        answer.reason = why.to_owned();
        return answer;
    }
    answer.reason = match x.progress.state {
        State::Responding => String::new(),
        State::Aborted => format!("the connection is closed ({})", x.reply.status),
        _ if run.passed.is_asked() => "the upstream server is not contacted".to_owned(),
        _ => "the request waits for a service that is not contacted".to_owned(),
    };
    if x.progress.state != State::Responding {
        return answer;
    }
    let head = &x.response.head;
    answer.status = Some(head.status);
    answer.reason = match decisive(steps) {
        Some(step) => format!("{} {}", step.step, step.text),
        None => status_line(head.status),
    };
    answer.location = head.get(FieldId::Location).map(lossy_text);
    let fields = head.fields.iter().filter(|field| field.id != FieldId::Date);
    answer.fields = fields
        .map(|field| {
            (
                lossy_text(head.bytes(field.name)),
                lossy_text(head.bytes(field.value)),
            )
        })
        .collect();
    // A body is shown only if it is short and no stage changes it.
    answer.file = file_of(&run.events);
    answer.own_page =
        own_page(&run.events) && answer.location.is_none() && !x.body.chunks.is_empty();
    if let Some(chunk) = x.body.chunks.front()
        && x.body.chunks.len() == 1
        && x.body.stages.is_empty()
        && answer.file.is_none()
        && !answer.own_page
        && answer.location.is_none()
        && chunk.bytes().len() <= TEXT_MAX
        && let Ok(text) = std::str::from_utf8(chunk.bytes())
    {
        answer.text = Some(text.to_owned());
    }
    answer
}

/// Returns the step that decided the response: the directive that set the status, if any.
fn decisive(steps: &[Step]) -> Option<&Step> {
    let last = steps
        .iter()
        .rposition(|step| DECISIVE.contains(&step.step))?;
    let mut before = steps[..last].iter().rev().filter(|step| step.step != "log");
    let directive = before.next().filter(|step| REFUSING.contains(&step.step));
    match steps[last].step {
        "status" => directive.or(steps.get(last)),
        _ => steps.get(last),
    }
}

/// Returns the file of the body: the last opened one, unless a later step decided.
fn file_of(events: &[Noted]) -> Option<String> {
    let mut file = None;
    for noted in events {
        match &noted.event {
            Event::File("open", path, Ok(FileKind::File(_))) => file = Some(lossy_text(path)),
            Event::Status(_) | Event::Redirect(..) | Event::Named(_) => file = None,
            _ => {}
        }
    }
    file
}

/// Returns whether a status was the last event: then the server makes its own page.
fn own_page(events: &[Noted]) -> bool {
    let last = events.iter().rev().find_map(|noted| match noted.event {
        Event::Status(_) => Some(true),
        Event::Answered(_) | Event::Redirect(..) | Event::Named(_) | Event::ErrorPage(..) => {
            Some(false)
        }
        _ => None,
    });
    last == Some(true)
}

/// Steps that end with a response; the last of them decides.
const DECISIVE: [&str; 3] = ["content", "return", "status"];
/// Directives that a status can follow at once.
const REFUSING: [&str; 3] = ["deny", "rewrite", "try_files"];

/// The longest body that is shown, in bytes.
const TEXT_MAX: usize = 512;
