//! Rows of answers of a scripted application or memcached server, with the result of each at a client.

use firstbyte_tests::backend::{Backend, Step};
use firstbyte_tests::client::request;
use firstbyte_tests::{Client, Server, peer};

/// A protocol of a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gateway {
    FastCgi,
    Scgi,
    Uwsgi,
    Memcached,
}

/// Result of a response at a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ClientResult {
    /// It came to its end; of a page of the server itself the status alone counts.
    Whole(u16, String),
    /// It began, and the client can see that its end is missing.
    Cut,
    /// Not even a head.
    Nothing,
}

/// A response of an application, and the expected result.
pub(crate) struct Row {
    what: String,
    gateway: Gateway,
    answer: Vec<u8>,
    expected: ClientResult,
    /// Text of a line of the error log about the request; empty: there is none from `error` on; `None`: there may be.
    log: Option<&'static str>,
    /// nginx has this result, too.
    is_nginx: bool,
}

impl Row {
    /// A response that is replaced by an error page.
    pub(crate) fn refused(
        gateway: Gateway,
        what: &str,
        answer: impl AsRef<[u8]>,
        log: &'static str,
    ) -> Self {
        Self::new(
            gateway,
            what,
            answer,
            ClientResult::Whole(502, String::new()),
            log,
        )
    }

    /// A response that is passed on.
    pub(crate) fn passed(
        gateway: Gateway,
        what: &str,
        answer: impl AsRef<[u8]>,
        body: &str,
    ) -> Self {
        let seen = ClientResult::Whole(200, body.to_owned());
        Self::new(gateway, what, answer, seen, "")
    }

    /// A response that is cut.
    pub(crate) fn cut(
        gateway: Gateway,
        what: &str,
        answer: impl AsRef<[u8]>,
        log: &'static str,
    ) -> Self {
        Self::new(gateway, what, answer, ClientResult::Cut, log)
    }

    /// Expects another status.
    pub(crate) fn status(mut self, status: u16) -> Self {
        self.expected = ClientResult::Whole(status, String::new());
        self
    }

    /// Expects this text in the log, too.
    pub(crate) fn logged(mut self, log: &'static str) -> Self {
        self.log = Some(log);
        self
    }

    /// The log line depends on which event comes first.
    pub(crate) fn logged_or_not(mut self) -> Self {
        self.log = None;
        self
    }

    /// nginx has another result, which was decided against.
    pub(crate) fn unlike_nginx(mut self) -> Self {
        self.is_nginx = false;
        self
    }

    /// The response, for memcached with the path of its request in place of `KEY`.
    fn answer_at(&self, at: usize) -> Vec<u8> {
        match self.gateway {
            Gateway::Memcached => {
                let text = String::from_utf8_lossy(&self.answer);
                text.replace("KEY", &format!("/{at}")).into_bytes()
            }
            _ => self.answer.clone(),
        }
    }

    fn new(
        gateway: Gateway,
        what: &str,
        answer: impl AsRef<[u8]>,
        expected: ClientResult,
        log: &'static str,
    ) -> Self {
        Self {
            what: what.to_owned(),
            gateway,
            answer: answer.as_ref().to_vec(),
            expected,
            log: Some(log),
            is_nginx: true,
        }
    }
}

/// Asks for each row by a location of its own, and fails with all that is not as expected.
#[track_caller]
pub(crate) fn all_are_as_expected(rows: Vec<Row>) {
    let backends: Vec<Backend> = (rows.iter().enumerate())
        .map(|(at, row)| {
            let mut steps = vec![Step::Until(end_of_request(row.gateway))];
            steps.push(Step::Send(row.answer_at(at)));
            // A close with unread bytes would be a reset.
            steps.extend([Step::HalfClose, Step::Hold]);
            Backend::scripted(move |_| steps.clone())
        })
        .collect();
    let locations: String = (rows.iter().zip(&backends).enumerate())
        .map(|(at, (row, backend))| location(row.gateway, &format!("= /{at}"), &backend.name()))
        .collect();
    let server = Server::http(&format!(
        "server {{ listen 127.0.0.1:%%PORT%%; {locations} }}"
    ))
    .start();
    let seen: Vec<ClientResult> = (0..rows.len()).map(|at| ask(server.port(), at)).collect();
    let log = server.error_log();
    let mut findings = Vec::new();
    for (at, (row, seen)) in rows.iter().zip(seen).enumerate() {
        if !row.is_nginx && !peer::is_firstbyte() {
            continue;
        }
        // nginx may still hold the head when it sees the fault.
        let held = !peer::is_firstbyte()
            && (&seen, &row.expected) == (&ClientResult::Nothing, &ClientResult::Cut);
        let what = format!("{:?}, {}", row.gateway, row.what);
        if seen != row.expected && !held {
            findings.push(format!("{what}: {seen:?}, not {:?}", row.expected));
        }
        let asked = format!("\"GET /{at} ");
        let lines: Vec<&str> = log.lines().filter(|line| line.contains(&asked)).collect();
        let told = match row.log {
            None => true,
            Some("") => !lines.iter().any(|line| line.contains("[error]")),
            Some(text) => lines.iter().any(|line| line.contains(text)),
        };
        if !told {
            findings.push(format!("{what}: not {:?} but {lines:#?}", row.log));
        }
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

/// How a location passes on, with as many parameters as an application needs.
pub(crate) fn location(gateway: Gateway, path: &str, name: &str) -> String {
    let told = |prefix: &str| {
        format!(
            "{prefix}_pass {name}; {prefix}_param REQUEST_METHOD $request_method;
             {prefix}_param CONTENT_LENGTH $content_length;"
        )
    };
    let inside = match gateway {
        Gateway::FastCgi => told("fastcgi"),
        Gateway::Scgi => format!("scgi_pass {name}; scgi_param SCGI 1;"),
        Gateway::Uwsgi => told("uwsgi"),
        Gateway::Memcached => {
            format!("set $memcached_key $uri; memcached_pass {name}; memcached_gzip_flag 2;")
        }
    };
    format!("location {path} {{ {inside} }}\n")
}

/// The last bytes of a request without a body; its last field is [`LAST`].
pub(crate) fn end_of_request(gateway: Gateway) -> Vec<u8> {
    match gateway {
        Gateway::FastCgi => firstbyte_tests::fastcgi::record(
            firstbyte_tests::fastcgi::STDIN,
            firstbyte_tests::fastcgi::ID,
            "",
        ),
        Gateway::Scgi => b"last\0,".to_vec(),
        Gateway::Uwsgi => b"last".to_vec(),
        Gateway::Memcached => b"\r\n".to_vec(),
    }
}

fn ask(port: u16, at: usize) -> ClientResult {
    let mut client = Client::connect(port);
    client.send(request("GET", &format!("/{at}"), &[LAST]));
    match client.try_response() {
        Ok(Some(response)) if response.status < 300 => {
            ClientResult::Whole(response.status, response.text())
        }
        Ok(Some(response)) => ClientResult::Whole(response.status, String::new()),
        Ok(None) => ClientResult::Nothing,
        Err(_) => ClientResult::Cut,
    }
}

/// The field that comes last in requests.
pub(crate) const LAST: &str = "X-End: last";
